"""The budgets without an oracle contain those with one, whatever the answer within its budget is."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.conformance.cases import Case
from hardmask.spec.batch import Batch
from hardmask.spec.formats import DTYPES, HALVES
from hardmask.spec.oracle import engine_for
from hardmask.spec.rounding import TIERS, derivative_budget, model, weights_budget
from hardmask.spec.rounding.above import budget_above, derivative_above, weights_above

CASES = [(dtype, tier) for dtype in DTYPES for tier in TIERS if dtype in HALVES or tier not in ("mixed-2", "half-ops")]

SLACK = 1.0 - 1e-12
"""Both sides are rounded up by far more than this, and are equal where nothing but their summation order differs."""


def batches(dtype: str) -> list[Batch]:
    return [Case(dtype, kind, 56, keys, 0, 3).build() for kind in ("shapes", "full", "poison") for keys in (16, 257)]


@pytest.mark.parametrize(("dtype", "tier"), CASES)
def test_they_contain_the_budgets_at_the_true_weights(dtype: str, tier: str) -> None:
    rounding, rng = model(tier, dtype), np.random.default_rng(5)
    for batch in batches(dtype):
        scores, mask = batch.scores64, batch.mask & batch.real[:, None]
        exact = engine_for(dtype).weights(scores, mask)
        w, sharp = exact.weights.value, weights_budget(rounding, scores, exact)
        along = [v.astype(np.float64) for v in (batch.cotangents, batch.tangents)]
        for sign in (-1.0, 1.0, rng.uniform(-1.0, 1.0, w.shape)):
            # Any answer within its budget, the extreme ones first.
            returned = np.maximum(w + sign * sharp.error, 0.0)
            most = weights_above(rounding, scores, mask, returned)
            assert (most >= w * (1.0 - 1e-15)).all()
            bound = budget_above(rounding, scores, mask, most)
            assert (bound.error >= sharp.error * SLACK).all()
            assert (bound.sum_error >= sharp.sum_error * SLACK).all()
            for v in along:
                derivative = derivative_budget(rounding, exact, sharp.error, v)
                wide = derivative_above(rounding, scores, mask, returned, bound.error, bound.error, v)
                assert (wide.vjp >= derivative.vjp * SLACK).all()
                assert (wide.jvp >= derivative.jvp * SLACK).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_they_are_not_much_wider(dtype: str) -> None:
    """On ordinary rows the median is below twice the budgets at the true weights: dropping what cancels costs that."""
    rounding = model("mixed", dtype)
    rng = np.random.default_rng(6)
    scores = rng.standard_normal((40, 300)).astype(np.float16).astype(np.float64)
    mask = rng.random((40, 300)) < 0.7
    exact = engine_for(dtype).weights(scores, mask)
    sharp = weights_budget(rounding, scores, exact)
    bound = budget_above(rounding, scores, mask, weights_above(rounding, scores, mask, exact.weights.value))
    assert np.median(bound.error[mask] / sharp.error[mask]) < 1.2
    assert (bound.sum_error < 1.2 * sharp.sum_error).all()


def test_blocked_keys_and_empty_rows_get_nothing() -> None:
    rounding = model("strict", "float32")
    scores = np.array([[np.nan, 1.0, np.inf], [np.nan, np.inf, 0.0]])
    mask = np.array([[False, True, False], [False, False, False]])
    returned = np.array([[0.0, 1.0, 0.0], [np.nan, np.nan, np.nan]])
    most = weights_above(rounding, scores, mask, returned)
    bound = budget_above(rounding, scores, mask, most)
    assert (most[~mask] == 0.0).all()
    assert (bound.error[~mask] == 0.0).all()
    assert bound.sum_error[1] == 0.0
    assert most[0, 1] == 1.0
