"""Properties that hold for every row, searched for a counterexample with Hypothesis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.spec.formats import FORMATS
from hardmask.spec.oracle import engine_for
from hardmask.spec.oracle.referee import enclose, exceeding
from hardmask.spec.rounding import derivative_budget, model, weights_budget

TIERS = {"float64": "strict", "float32": "strict", "float16": "mixed", "bfloat16": "mixed"}


@dataclass(frozen=True)
class Row:
    """One masked row with a vector, all exact in its dtype, as arrays of shape (1, n)."""

    dtype: str
    scores: np.ndarray
    mask: np.ndarray
    vector: np.ndarray


def numbers(dtype: str, largest: float) -> st.SearchStrategy[float]:
    """Finite numbers of a format up to a size: near each other, tied, and of any magnitude."""
    form = FORMATS[dtype]
    width = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 32}[dtype]
    bound = float(np.float64(largest).astype(form.dtype).astype(np.float64))
    wild = st.floats(-bound, bound, width=width)
    near = st.integers(-40, 40).map(lambda k: k / 4)
    return st.one_of(near, st.floats(-100, 100, width=width), wild)


@st.composite
def rows(draw: st.DrawFn, dtype: str) -> Row:
    form = FORMATS[dtype]
    n = draw(st.integers(1, 9))
    mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    scores = draw(st.lists(numbers(dtype, form.max), min_size=n, max_size=n))
    # Products of a vector with itself and with n weights stay finite.
    vector = draw(st.lists(numbers(dtype, min(form.max / 64, 2.0**400)), min_size=n, max_size=n))
    stored = [np.clip(np.array([x]), -form.max, form.max).astype(form.dtype) for x in (scores, vector)]
    return Row(dtype, stored[0], np.array([mask]), stored[1])


def wide(x: Any) -> np.ndarray:
    return np.asarray(x).astype(np.float64)


@pytest.mark.parametrize("dtype", TIERS)
def test_no_row_takes_the_reference_beyond_its_budget(dtype: str) -> None:
    """The reference is correct, so a counterexample would be a budget that is too small."""

    @settings(max_examples=300)
    @given(rows(dtype))
    def check(row: Row) -> None:
        engine, rounding = engine_for(dtype), model(TIERS[dtype], dtype)
        exact = engine.weights(wide(row.scores), row.mask)
        budget = weights_budget(rounding, wide(row.scores), exact)
        returned = softmax_where(row.scores, row.mask).weights
        verdicts = exceeding(
            wide(row.scores)[0].tolist(),
            row.mask[0].tolist(),
            list(range(row.mask.shape[1])),
            wide(returned)[0].tolist(),
            budget.error[0].tolist(),
        )
        assert not any(verdicts)
        bounds = derivative_budget(rounding, exact, budget.error, wide(row.vector))
        pulled = softmax_where_derivative(row.scores, row.mask, row.vector)
        for bound in (bounds.vjp, bounds.jvp):
            error, slack = engine.derivative(exact, wide(row.vector)).distance(wide(pulled))
            assert (error - slack <= bound).all()

    check()


@pytest.mark.parametrize("dtype", TIERS)
def test_the_engines_enclose_the_truth_of_every_row(dtype: str) -> None:
    @settings(max_examples=150)
    @given(rows(dtype))
    def check(row: Row) -> None:
        engine = engine_for(dtype)
        exact = engine.weights(wide(row.scores), row.mask)
        derivative = engine.derivative(exact, wide(row.vector))
        scores, mask, vector = wide(row.scores)[0].tolist(), row.mask[0].tolist(), wide(row.vector)[0].tolist()
        for claimed, true in (
            (exact.weights, enclose(scores, mask, bits=300)),
            (derivative, enclose(scores, mask, vector, bits=300)),
        ):
            for i, t in enumerate(true):
                middle = np.longdouble(claimed.value[0, i]) + np.longdouble(claimed.low[0, i])
                low, high = t.floats()
                gap = max(abs(float(middle - low)), abs(float(middle - high)))
                # The endpoints are rounded outwards to float64: at most one unit in the last place of the truth.
                assert gap <= claimed.error[0, i] + 2.0**-52 * abs(high) + 2.0**-1074

    check()
