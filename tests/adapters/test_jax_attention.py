"""JAX's attention against the NumPy reference, and what is declared about it."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.adapters.attention import Attention
from hardmask.adapters.numpy_attention import subjects as numpy_subjects
from hardmask.conformance.attention.calls import AttentionReturned, call_attention, limit_of, takes
from hardmask.conformance.attention.plan import AttentionCase, Shape
from hardmask.spec.attention.problem import Problem
from hardmask.spec.formats import FORMATS

pytestmark = pytest.mark.jax

SHAPE: Shape = (2, 4, 2, 3, 5, 4, 4)
ALIKE: Shape = (2, 2, 2, 3, 5, 4, 4)
REFERENCE = numpy_subjects()[0]
BY_LENGTHS = "jax.dot_product_attention[jit,lengths]"
BY_FLAG = "jax.dot_product_attention[jit,causal]"


def found(name: str) -> Attention:
    from hardmask.adapters.jax_attention import subjects

    return next(s for s in subjects() if s.id == name)


def problem(dtype: str, mask: str, shape: Shape = SHAPE) -> Problem:
    return AttentionCase(dtype, shape, mask, "plain", 3).build()


def close(subject: Attention, p: Problem, steps: float) -> bool:
    assert takes(subject, p)
    assert not limit_of(subject, p)
    for method in subject.methods:
        mine, its = call_attention(subject, method, p), call_attention(REFERENCE, method, p)
        assert isinstance(mine, AttentionReturned), mine
        assert isinstance(its, AttentionReturned)
        for name in mine.raw:
            far = np.abs(mine.values(name) - its.values(name)).max(initial=0)
            if not far <= steps * FORMATS[p.dtype].u * (1 + np.abs(its.values(name)).max(initial=0)):
                return False
    return True


@pytest.mark.parametrize(
    ("name", "dtype", "mask", "shape"),
    [
        ("jax.dot_product_attention[eager]", "float32", "keys alone", SHAPE),
        ("jax.dot_product_attention[eager]", "float16", "keys alone", SHAPE),
        ("jax.dot_product_attention[jit]", "float32", "heads alike", SHAPE),
        ("jax.dot_product_attention[jit]", "bfloat16", "heads alike", SHAPE),
        ("jax.dot_product_attention[jit,-inf]", "float32", "causal top-left", SHAPE),
        (BY_LENGTHS, "float32", "padding", SHAPE),
        (BY_FLAG, "float32", "causal top-left", SHAPE),
    ],
)
def test_it_is_attention(name: str, dtype: str, mask: str, shape: Shape) -> None:
    p = problem(dtype, mask, shape)
    assert not p.empty.any()
    assert close(found(name), p, 16)


def test_jax_computes_float64_in_float32() -> None:
    subject, p = found("jax.dot_product_attention[eager]"), problem("float64", "full")
    assert not close(subject, p, 1e6)
    assert close(subject, p, 16 * FORMATS["float32"].u / FORMATS["float64"].u)
    assert call_attention(subject, "forward", p).raw["output"].dtype == np.float64  # type: ignore[union-attr]


def test_jax_refuses_float16_under_jit_as_declared() -> None:
    subject = found("jax.dot_product_attention[jit]")
    assert "F16_F16_F32" in subject.unsupported["float16"]
    fault = call_attention(subject, "forward", problem("float16", "full"))
    assert "F16_F16_F32" in fault.sentence  # type: ignore[union-attr]


def test_an_empty_query_gets_the_mean_of_all_values_and_nothing_is_declared_to_excuse_it() -> None:
    subject, p = found("jax.dot_product_attention[eager]"), problem("float32", "one empty query", ALIKE)
    assert subject.contract == "zero"
    assert p.empty.any()
    answer = call_attention(subject, "forward", p)
    assert isinstance(answer, AttentionReturned)
    mean = np.broadcast_to(p.wide("v").mean(axis=2, keepdims=True), answer.raw["output"].shape)
    assert np.allclose(answer.values("output")[p.empty], mean[p.empty], rtol=1e-5)


def test_an_empty_query_is_nan_where_minus_infinity_is_added() -> None:
    answer = call_attention(
        found("jax.dot_product_attention[jit,-inf]"), "forward", p := problem("float32", "one empty query")
    )
    assert isinstance(answer, AttentionReturned)
    assert np.isnan(answer.values("output")[p.empty]).all()


def test_the_flag_of_jax_aligns_to_the_top_left() -> None:
    subject = found(BY_FLAG)
    assert subject.causal == "top-left"
    assert not takes(subject, problem("float32", "causal bottom-right"))
