"""Flax's attention against the NumPy reference, and what it is declared not to take."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.adapters.attention import Attention
from hardmask.adapters.numpy_attention import subjects as numpy_subjects
from hardmask.conformance.attention.calls import AttentionReturned, call_attention, limit_of
from hardmask.conformance.attention.plan import AttentionCase, Shape
from hardmask.spec.attention.problem import Problem
from hardmask.spec.formats import FORMATS

pytestmark = pytest.mark.flax

SHAPE: Shape = (2, 2, 2, 3, 5, 4, 4)
REFERENCE = numpy_subjects()[0]


def found(name: str) -> Attention:
    from hardmask.adapters.flax_attention import subjects

    return next(s for s in subjects() if s.id == f"flax.linen.{name}")


def problem(dtype: str, mask: str, shape: Shape = SHAPE) -> Problem:
    return AttentionCase(dtype, shape, mask, "plain", 3).build()


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("dot_product_attention[eager]", "float32"),
        ("dot_product_attention[jit]", "float64"),
        ("dot_product_attention[jit]", "float16"),
        ("MultiHeadDotProductAttention[jit]", "float32"),
        ("MultiHeadDotProductAttention[jit]", "bfloat16"),
    ],
)
def test_it_is_attention(name: str, dtype: str) -> None:
    subject, p = found(name), problem(dtype, "causal top-left")
    assert not limit_of(subject, p)
    for method in subject.methods:
        mine, its = call_attention(subject, method, p), call_attention(REFERENCE, method, p)
        assert isinstance(mine, AttentionReturned), mine
        assert isinstance(its, AttentionReturned)
        for array in mine.raw:
            far = np.abs(mine.values(array) - its.values(array)).max()
            assert far <= 16 * FORMATS[dtype].u * (1 + np.abs(its.values(array)).max())


def test_an_empty_query_gets_the_mean_of_all_values_and_nothing_is_declared_to_excuse_it() -> None:
    subject, p = found("dot_product_attention[eager]"), problem("float32", "one empty query")
    assert subject.contract == "zero"
    answer = call_attention(subject, "forward", p)
    assert isinstance(answer, AttentionReturned)
    mean = np.broadcast_to(p.wide("v").mean(axis=2, keepdims=True), answer.raw["output"].shape)
    assert np.allclose(answer.values("output")[p.empty], mean[p.empty], rtol=1e-5)


def test_the_layer_has_one_width_and_scale_and_as_many_heads_of_keys_as_of_queries() -> None:
    layer = found("MultiHeadDotProductAttention[jit]")
    assert limit_of(layer, problem("float32", "full", (1, 1, 1, 2, 3, 4, 3))) == "values of another width"
    assert limit_of(layer, problem("float32", "full", (1, 2, 1, 2, 3, 4, 4))) == "grouped heads"
    assert limit_of(layer, AttentionCase("float32", SHAPE, "full", "plain", 1, scale=0.3).build()) == "scale"
    assert limit_of(layer, problem("float32", "full", (1, 1, 1, 2, 3, 0, 0))) == "head width"
