"""The budgets themselves: by hand, at the edges, and from tier to tier."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from hardmask.conformance.cases.build import build
from hardmask.spec.batch import Bools, Floats
from hardmask.spec.formats import DTYPES, FORMATS, HALVES
from hardmask.spec.oracle import engine_for
from hardmask.spec.oracle.exact import ExactWeights
from hardmask.spec.rounding import TIERS, WeightsBudget, derivative_budget, model, weaker, weights_budget
from hardmask.spec.rounding.arguments import summed
from hardmask.spec.rounding.model import SAFETY


def of(
    scores: list[float], dtype: str = "float32", tier: str = "strict"
) -> tuple[Floats, Bools, ExactWeights, WeightsBudget]:
    """One row, all keys allowed: its scores and mask as arrays, its exact weights, and their budget."""
    s = np.array([scores])
    m = np.ones(s.shape, bool)
    exact = engine_for(dtype).weights(s, m)
    return s, m, exact, weights_budget(model(tier, dtype), s, exact)


def test_two_equal_scores_by_hand() -> None:
    """alpha 4, one addition, two roundings of the division, no argument error: the rest is exact arithmetic."""
    u = Fraction(1, 2**24)
    # One numerator is off by 4u one way and the other by 4u the other way: their sum, twice the mean, is right.
    too_large = (1 + 4 * u) * (1 + u) ** 2 / (1 - u)
    too_small = 1 / ((1 - 4 * u) * (1 - u) ** 3)
    by_hand = Fraction(1, 2) * (max(too_large, too_small) - 1)
    row_sum = 1 / (1 - u) ** 3 - 1
    *_, budget = of([0.0, 0.0])
    for found, expected in (*((e, by_hand) for e in budget.error[0]), (budget.sum_error[0], row_sum)):
        assert expected <= Fraction(float(found)) <= expected * (1 + Fraction(3 * SAFETY))


def test_an_inexact_shift_costs_its_distance() -> None:
    """``1 - 2^-30`` is no float32: the shift may be off by ``d u``. ``1 - 2^-20`` is one: it is exact."""
    rounding = model("strict", "float32")
    for low, expected in ((2.0**-30, (1.0 - 2.0**-30) * 2.0**-24), (2.0**-20, 0.0)):
        s, m, exact, _ = of([1.0, low], dtype="float64")
        a = summed(rounding, s, m, exact.gap)
        assert a[0, 1] == expected + rounding.compute.lam  # the difference itself may be flushed
        assert a[0, 0] == rounding.compute.lam


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("keys", [0, 1])
def test_rows_of_no_or_one_slot(dtype: str, keys: int) -> None:
    tier = "mixed" if dtype in HALVES else "strict"
    s = np.zeros((2, keys))
    m = np.array([[True], [False]])[:, :keys]
    exact = engine_for(dtype).weights(s, m)
    budget = weights_budget(model(tier, dtype), s, exact)
    derivative = derivative_budget(model(tier, dtype), exact, budget.error, s + 1.0)
    assert budget.error.shape == derivative.vjp.shape == (2, keys)
    assert budget.sum_error[1] == 0.0
    if not keys:
        assert budget.sum_error[0] == 0.0
        return
    assert 0.0 < budget.error[0, 0] < 16.0 * FORMATS[dtype].u
    assert budget.error[1, 0] == derivative.vjp[1, 0] == derivative.jvp[1, 0] == derivative.given[1, 0] == 0.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocked_keys_and_empty_rows_have_budget_zero(dtype: str) -> None:
    for kind in ("mixture", "empty", "poison"):
        batch = build(kind, kind, (3,), dtype, 104, 13)
        exact = engine_for(dtype).weights(batch.scores64, batch.mask)
        for tier in TIERS:
            rounding = model(tier, dtype)
            budget = weights_budget(rounding, batch.scores64, exact)
            derivative = derivative_budget(rounding, exact, budget.error, batch.cotangents.astype(np.float64))
            for errors in (budget.error, derivative.vjp, derivative.jvp, derivative.given):
                assert np.isfinite(errors).all()
                assert (errors[~batch.mask] == 0.0).all()
                assert (errors[batch.mask] > 0.0).all()
            assert ((budget.sum_error == 0.0) == batch.empty).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_gap_that_overflows(dtype: str) -> None:
    """Between the largest numbers of both signs: the small weight is 0, with a budget that only underflow explains."""
    tier = "mixed" if dtype in HALVES else "strict"
    largest = FORMATS[dtype].max
    _, _, exact, budget = of([largest, -largest], dtype=dtype, tier=tier)
    assert exact.weights.value.tolist() == [[1.0, 0.0]]
    assert 0.0 < budget.error[0, 1] <= 8.0 * max(model(tier, dtype).compute.lam, FORMATS[dtype].eta)
    assert budget.error[0, 0] < 16.0 * FORMATS[dtype].u


@pytest.mark.parametrize("dtype", sorted(HALVES))
def test_a_weaker_tier_allows_more(dtype: str) -> None:
    """Each budget of ``mixed-2`` admits whatever ``mixed`` admits, and ``half-ops`` whatever ``mixed-2`` does, but for
    float32's underflow and for the float32 division of a row of one key, which ``half-ops`` does not make."""
    batch = build("shapes", "shapes", (5,), dtype, 416, 13)
    exact = engine_for(dtype).weights(batch.scores64, batch.mask)
    vector = batch.cotangents.astype(np.float64)
    underflow = 64.0 * FORMATS["float32"].lam * (1.0 + np.abs(vector).sum(axis=1, keepdims=True))
    several = batch.mask.sum(axis=1) > 1
    previous = None
    for tier in ("mixed", "mixed-2", "half-ops"):
        rounding = model(tier, dtype)
        weights = weights_budget(rounding, batch.scores64, exact)
        derivative = derivative_budget(rounding, exact, weights.error, vector)
        budgets = (weights.error, derivative.vjp, derivative.jvp, derivative.given)
        if previous is not None:
            for stronger, this in zip(previous[0], budgets, strict=True):
                assert (stronger <= this + underflow)[several].all(), tier
            assert (previous[1] <= weights.sum_error + underflow[:, 0])[several].all(), tier
        previous = budgets, weights.sum_error
    assert weaker("strict", dtype) == ("exp2", "online", "lse", "mixed-2", "half-ops")


def test_a_sum_of_float32_numbers_may_lose_one_unit_per_addition() -> None:
    rounding = model("strict", "float32")
    log = rounding.log_sum(np.array([0.0, 1.0, 2.0, 1001.0]))
    assert log[:2].tolist() == [0.0, 0.0]
    assert rounding.u < log[2] < 1.001 * rounding.u
    assert 1000 * rounding.u < log[3] < 1001 * rounding.u


def test_half_sums_run_in_float32_and_are_rounded_once() -> None:
    rounding = model("half-ops", "float16")
    log = rounding.log_sum(np.array([1.0, 1001.0]))
    assert log[0] == 0.0
    assert rounding.u < log[1] < rounding.u * 1.2 + 1001 * 2.0**-24


def test_a_tier_and_a_model_name_their_formats() -> None:
    assert model("strict", "float64") == model("half-ops", "float64")
    assert model("mixed", "bfloat16").compute == FORMATS["float32"]
    assert model("half-ops", "bfloat16").compute == FORMATS["bfloat16"]
    assert model("mixed-2", "float16").u_cast == FORMATS["float16"].u
    with pytest.raises(
        ValueError,
        match=r"no accuracy tier 'sharp'\. Choose one of: strict, mixed, exp2, online, lse, mixed-2, half-ops",
    ):
        model("sharp", "float32")
