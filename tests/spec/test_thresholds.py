"""The tables of an exhaustive sweep: against the referee, and never more generous than the ordinary budget."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from hardmask.spec.formats import FORMATS, HALVES
from hardmask.spec.oracle import engine_for
from hardmask.spec.oracle.exact import Exact
from hardmask.spec.oracle.referee import enclose
from hardmask.spec.rounding import RoundingModel, derivative_budget, model, weights_budget
from hardmask.spec.rounding.thresholds import (
    Intervals,
    accepted_products,
    accepted_weights,
    code_values,
    correct_products,
    correct_weights,
    least_weight_error,
)
from hardmask.spec.rounding.tiers import ladder

NAMES = sorted(HALVES)
MODELS = [(name, tier) for name in NAMES for tier in ladder(name)]
Floats = npt.NDArray[np.float64]


def some(top: int, rng: np.random.Generator) -> list[int]:
    """Codes below the top: both ends, and a choice from between."""
    return [0, 1, 2, top // 2, top - 2, top - 1, *rng.integers(0, top, 60).tolist()]


@pytest.mark.parametrize("name", NAMES)
def test_the_ends_are_the_last_floats_before_a_midpoint(name: str) -> None:
    table, values = correct_weights(name), code_values(FORMATS[name], 1.0)
    for code in some(table.top, np.random.default_rng(1)):
        end = float(table.upto[code])
        midpoint = (Fraction(values[code]) + Fraction(values[code + 1])) / 2
        below, above = (enclose([d, 0.0], [True, True])[0] for d in (end, math.nextafter(end, math.inf)))
        assert below.hi < midpoint < above.lo, code
        assert table.above[code + 1] == end


@pytest.mark.parametrize("name", NAMES)
def test_the_ends_of_products_are_the_last_floats_before_a_midpoint(name: str) -> None:
    table, values = correct_products(name), code_values(FORMATS[name], 0.25)
    for code in some(table.top, np.random.default_rng(2)):
        end = float(table.above[code])
        midpoint = (Fraction(values[code]) + Fraction(values[code + 1])) / 2
        ends = (end, math.nextafter(end, math.inf))
        before, after = (enclose([d, 0.0], [True, True], [1.0, 0.0], bits=512)[0] for d in ends)
        assert after.hi < midpoint < before.lo, code
        assert table.upto[code + 1] == end


@pytest.mark.parametrize("name", NAMES)
def test_the_intervals_cover_the_line_without_gaps(name: str) -> None:
    w, p = correct_weights(name), correct_products(name)
    assert (w.above[0], w.upto[w.top]) == (-math.inf, math.inf)
    assert np.all(np.diff(w.upto[: w.top]) > 0.0)
    assert (p.above[p.top], p.upto[0]) == (-math.inf, math.inf)
    assert np.all(np.diff(p.above[: p.top]) < 0.0)
    for table in (w, p):
        d = np.random.default_rng(3).normal(0.0, 6.0, 2000)
        d = np.abs(d) if table is p else d
        codes = table.expected(d).astype(np.uint16)
        assert table.hold(codes, d).all()
        assert not table.hold((codes + 1).astype(np.uint16), d).any()
        assert not np.any(table.above[table.top + 1 : 0x8000] < table.upto[table.top + 1 : 0x8000])
        assert (table.above[0x8000], table.upto[0x8000]) == (table.above[0], table.upto[0])
        assert np.all(table.above[0x8001:] > table.upto[0x8001:])


def near(name: str, ends: Floats, rng: np.random.Generator) -> Floats:
    """Pairs of scores whose difference is close to one of the ends, and pairs at random; shape ``(R, 2)``."""
    dtype = FORMATS[name].dtype
    end = rng.choice(ends[np.isfinite(ends)], 20_000)
    first = np.concatenate([rng.normal(0.0, 4.0, 10_000), rng.normal(0.0, 300.0, 10_000)]).astype(dtype)
    a = first.astype(np.float64)
    b = (a - end).astype(dtype).astype(np.float64)
    return np.stack([a, b], axis=1)


@pytest.mark.parametrize(("name", "tier"), MODELS)
def test_what_a_table_accepts_the_ordinary_budget_accepts(name: str, tier: str) -> None:
    rounding, accepted, correct = model(tier, name), accepted_weights(model(tier, name)), correct_weights(name)
    ends = np.concatenate([accepted.above[: accepted.top], accepted.upto[: accepted.top]])
    scores = near(name, ends, np.random.default_rng(4))
    d = scores[:, 0] - scores[:, 1]
    exact = engine_for(name).weights(scores, np.ones(scores.shape, bool))
    budget = weights_budget(rounding, scores, exact).error[:, 0]
    true = Exact(*(part[:, 0] for part in (exact.weights.value, exact.weights.low, exact.weights.error)))
    held = 0
    for step in (-12, -4, -2, -1, 0, 1, 2, 4, 12):
        codes = np.clip(correct.expected(d) + step, 0, accepted.top).astype(np.uint16)
        error, slack = true.distance(codes.view(FORMATS[name].dtype).astype(np.float64))
        mine = correct.hold(codes, d) | accepted.hold(codes, d)
        assert np.all(error[mine] <= budget[mine] + slack[mine]), step
        held += int((mine & ~correct.hold(codes, d)).sum())
    assert held > 10  # else the table says nothing beyond correct rounding


@pytest.mark.parametrize(("name", "tier"), MODELS)
@pytest.mark.parametrize("own", [True, False])
def test_what_a_table_of_products_accepts_the_ordinary_budget_accepts(name: str, tier: str, own: bool) -> None:
    rounding, correct = model(tier, name), correct_products(name)
    tables = accepted_products(rounding, own, True), accepted_products(rounding, own, False)
    ends = np.concatenate([t.above[: t.top] for t in tables])
    rng = np.random.default_rng(5)
    scores = near(name, np.concatenate([ends, -ends]), rng)
    d = scores[:, 0] - scores[:, 1]
    exact = engine_for(name).weights(scores, np.ones(scores.shape, bool))
    vector = np.tile([1.0, 0.0], (len(d), 1))
    weights_error = weights_budget(rounding, scores, exact).error
    key = 0 if own else 1
    budget = derivative_budget(rounding, exact, weights_error, vector).vjp[:, key]
    y = engine_for(name).derivative(exact, vector)
    true = Exact(y.value[:, key], y.low[:, key], y.error[:, key])
    held = 0
    for step in (-300, -30, -3, -1, 0, 1, 3, 30, 300):
        codes = np.clip(correct.expected(np.abs(d)) + step, 0, tables[0].top).astype(np.uint16)
        returned = codes.view(FORMATS[name].dtype).astype(np.float64) * (1.0 if own else -1.0)
        error, slack = true.distance(returned)
        mine = np.where(d > 0.0, tables[0].hold(codes, np.abs(d)), tables[1].hold(codes, np.abs(d)))
        mine |= correct.hold(codes, np.abs(d))
        assert np.all(error[mine] <= budget[mine] + slack[mine]), step
        held += int((mine & ~correct.hold(codes, np.abs(d))).sum())
    assert held > 100


@pytest.mark.parametrize(("name", "tier"), MODELS)
def test_the_least_error_is_below_every_budget(name: str, tier: str) -> None:
    rounding = model(tier, name)
    scores = near(name, np.linspace(-100.0, 30.0, 5000), np.random.default_rng(6))
    exact = engine_for(name).weights(scores, np.ones(scores.shape, bool))
    budget, w = weights_budget(rounding, scores, exact).error, exact.weights.value
    for width in (0.0, 1e-3, 0.2):
        lo, hi = w * (1.0 - width), np.minimum(w * (1.0 + width), 1.0)
        assert np.all(least_weight_error(rounding, lo, hi) <= budget)


@pytest.mark.parametrize("name", NAMES)
def test_even_the_tightest_model_accepts_what_is_correctly_rounded(name: str) -> None:
    storage, correct = FORMATS[name], correct_weights(name)
    scores = near(name, correct.upto[: correct.top], np.random.default_rng(7))
    exact = engine_for(name).weights(scores, np.ones(scores.shape, bool))
    codes = correct.expected(scores[:, 0] - scores[:, 1]).astype(np.uint16)
    error = np.abs(codes.view(storage.dtype).astype(np.float64) - exact.weights.value[:, 0])
    for compute in (storage, FORMATS["float32"], FORMATS["float64"]):
        tight = RoundingModel(compute, storage, compute, alpha=0.0, divisions=0, flush=False)
        assert np.all(error <= weights_budget(tight, scores, exact).error[:, 0] + exact.weights.error[:, 0])
        assert isinstance(accepted_weights(tight), Intervals)
