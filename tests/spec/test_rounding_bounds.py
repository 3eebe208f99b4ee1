"""The budgets bound every implementation that obeys their model, come close to some, and reject those that do not obey.

Implementations are simulated in NumPy, with a rounding exactly where the tier declares one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from hardmask.conformance.cases.build import build
from hardmask.spec.batch import Batch, Floats
from hardmask.spec.formats import DTYPES, FORMATS, HALVES
from hardmask.spec.oracle import engine_for
from hardmask.spec.oracle.exact import Exact, ExactWeights
from hardmask.spec.rounding import derivative_budget, inner_budget, model, weights_budget

TIERS = [(dtype, "strict") for dtype in DTYPES if dtype not in HALVES] + [
    (dtype, tier) for dtype in sorted(HALVES) for tier in ("mixed", "mixed-2", "half-ops")
]
KINDS = ("shapes", "poison", "full", "single", "causal", "truncation", "mixture")
BATCHES = [(kind, rows, keys) for kind in KINDS for rows, keys in ((104, 16), (52, 131))] + [("one", 24, 1)]

Array = np.ndarray[Any, np.dtype[Any]]


def sequential(x: Array) -> Array:
    return np.add.accumulate(x, axis=1)[:, -1:]


def backwards(x: Array) -> Array:
    return sequential(x[:, ::-1])


def pairwise(x: Array) -> Array:
    return np.sum(np.ascontiguousarray(x), axis=1, keepdims=True)


@dataclass(frozen=True)
class Simulated:
    """A masked softmax that rounds as a tier says. The other fields are its freedoms, and the last four its mistakes.

    ``stretched``: exp is as wrong as the tier allows, upwards at the maximum and downwards elsewhere.
    ``sum_first``: the numerators are summed before a tier casts them, not afterwards.
    """

    tier: str
    dtype: str
    add: Callable[[Array], Array] = sequential
    reciprocal: bool = False
    flush: bool = False
    stretched: bool = False
    sum_first: bool = False
    epsilon: float = 0.0
    exp_error: float = 0.0
    half_sum: bool = False
    centred: bool = True

    @property
    def wide(self) -> np.dtype[Any]:
        """What NumPy computes in; results of half operations are rounded afterwards, which is exact double rounding."""
        return np.dtype(np.float64 if self.dtype == "float64" else np.float32)

    def fl(self, x: Array) -> Array:
        """One rounding to the compute format."""
        compute = model(self.tier, self.dtype).compute
        with np.errstate(over="ignore"):
            x = x.astype(compute.dtype).astype(self.wide)
        return np.where(np.abs(x) < compute.lam, self.wide.type(0), x) if self.flush else x

    def stored(self, x: Array) -> Array:
        return x.astype(FORMATS[self.dtype].dtype)

    def sum(self, x: Array) -> Array:
        if not self.half_sum:
            return self.fl(self.add(x))
        total = np.zeros((len(x), 1), self.wide)
        for column in x.T:
            total = self.stored(total + column[:, None]).astype(self.wide)
        return total

    def parts(self, batch: Batch) -> tuple[Array, Array, Array]:
        """Numerators, their sum, and the weights before they are stored."""
        x = np.where(batch.mask, batch.scores, 0).astype(self.wide)
        top = np.where(batch.mask, x, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
        top = np.where(batch.empty[:, None], self.wide.type(0), top)
        with np.errstate(over="ignore"):
            shifted = self.fl(np.where(batch.mask, x, top) - top)
        rounding = model(self.tier, self.dtype)
        # NumPy's own float64 exp and the product take 2.3 of the allowed units in float64, and the last rounding 1.01.
        spare = rounding.alpha - (2.3 if self.dtype == "float64" else 1.01)
        off = np.where(shifted == 0, 0.0, self.exp_error)  # exp(0) is 1 also in a fast exp
        if self.stretched:
            off = off + np.where(shifted == 0, 1.0, -1.0) * spare * rounding.u
        e = self.fl((np.exp(shifted.astype(np.float64)) * (1.0 + off)).astype(self.wide))
        e = np.where(batch.mask, e, self.wide.type(0))
        summed = e
        if rounding.cast_numerators:
            e = self.stored(e).astype(self.wide)
            summed = summed if self.sum_first else e
        total = self.fl(self.sum(summed) + self.wide.type(self.epsilon))
        total = np.where(batch.empty[:, None], self.wide.type(1), total)
        w = self.fl(e * self.fl(1 / total)) if self.reciprocal else self.fl(e / total)
        return e, total, w

    def weights(self, batch: Batch) -> Floats:
        return self.stored(self.parts(batch)[2]).astype(np.float64)

    def fused(self, batch: Batch, vector: Array, w: Array | None = None) -> Floats:
        """``w (g - <w, g>)`` at the stored weights."""
        if w is None:
            w = self.stored(self.parts(batch)[2]).astype(self.wide)
        g = np.where(batch.mask, vector, 0).astype(self.wide)
        centre = self.sum(self.fl(w * g)) if self.centred else self.wide.type(0)
        return self.stored(self.fl(w * self.fl(g - centre))).astype(np.float64)

    def composed_vjp(self, batch: Batch, vector: Array) -> Floats:
        """Reverse mode through division, sum, exp and the maximum, one operation at a time."""
        e, total, _ = self.parts(batch)
        g = np.where(batch.mask, vector, 0).astype(self.wide)
        from_division = self.fl(g / total)
        from_sum = self.sum(self.fl(self.fl(self.fl(g * e) / total) / total))
        y = self.fl(e * self.fl(from_division - from_sum))
        top, share = self.top(batch)
        y = self.fl(y - np.where(top, self.fl(self.fl(self.sum(y)) * share), 0))
        return self.stored(y).astype(np.float64)

    def composed_jvp(self, batch: Batch, vector: Array) -> Floats:
        """Forward mode through the maximum, exp, sum and division."""
        e, total, _ = self.parts(batch)
        u = np.where(batch.mask, vector, 0).astype(self.wide)
        top, share = self.top(batch)
        lift = self.sum(np.where(top, self.fl(u * share), 0).astype(self.wide))
        de = np.where(batch.mask, self.fl(e * self.fl(u - lift)), 0).astype(self.wide)
        moved = self.fl(self.fl(e / total) * self.fl(self.sum(de) / total))
        return self.stored(self.fl(self.fl(de / total) - moved)).astype(np.float64)

    def top(self, batch: Batch) -> tuple[Array, Array]:
        """Where the maximum is attained, and the share of each such key."""
        s = np.where(batch.mask, batch.scores64, -np.inf)
        top = batch.mask & (s == s.max(axis=1, keepdims=True, initial=-np.inf))
        return top, (1 / np.maximum(top.sum(axis=1, keepdims=True), 1)).astype(self.wide)


@cache
def batches(dtype: str) -> tuple[tuple[Batch, ExactWeights], ...]:
    engine = engine_for(dtype)
    built = [build(kind, kind, (7, k), dtype, rows, keys) for k, (kind, rows, keys) in enumerate(BATCHES)]
    return tuple((b, engine.weights(b.scores64, b.mask)) for b in built)


def used(exact: Exact, returned: Floats, budget: Floats) -> tuple[float, bool]:
    """The largest share of a budget that was used, and whether one was certainly exceeded."""
    error, slack = exact.distance(returned)
    some = budget > 0
    ratio = float((error[some] / budget[some]).max(initial=0.0))
    return ratio, bool((~(error - slack <= budget)).any())


@cache
def budget_of(dtype: str, tier: str, index: int) -> Any:
    batch, exact = batches(dtype)[index]
    return weights_budget(model(tier, dtype), batch.scores64, exact)


def judged(simulated: Simulated) -> Iterator[tuple[float, bool]]:
    """Weights and row sums on every batch."""
    dtype, engine = simulated.dtype, engine_for(simulated.dtype)
    for k, (batch, exact) in enumerate(batches(dtype)):
        budget = budget_of(dtype, simulated.tier, k)
        w = simulated.weights(batch)
        yield used(exact.weights, w, budget.error)
        total, some = engine.total(w), ~batch.empty
        error, slack = total.distance(np.ones(len(w)))
        ratio = (error[some] / budget.sum_error[some]).max(initial=0.0)
        yield float(ratio), bool((error - slack > budget.sum_error)[some].any())


def judged_derivatives(simulated: Simulated) -> Iterator[tuple[str, float, bool]]:
    """Every way to differentiate, on every batch: its name, the share used, whether a budget was exceeded."""
    dtype, engine = simulated.dtype, engine_for(simulated.dtype)
    for k, (batch, exact) in enumerate(batches(dtype)):
        vector = batch.cotangents.astype(np.float64)
        true = engine.derivative(exact, vector)
        error = budget_of(dtype, simulated.tier, k).error
        budget = derivative_budget(model(simulated.tier, dtype), exact, error, vector)
        fused = simulated.fused(batch, batch.cotangents)
        assert not fused[~batch.mask].any()
        yield "fused", *used(true, fused, np.minimum(budget.vjp, budget.jvp))
        yield "composed vjp", *used(true, simulated.composed_vjp(batch, batch.cotangents), budget.vjp)
        yield "composed jvp", *used(true, simulated.composed_jvp(batch, batch.cotangents), budget.jvp)


FREEDOMS = [
    {"add": sequential},
    {"add": backwards, "reciprocal": True},
    {"add": pairwise, "sum_first": True},
    {"add": pairwise, "reciprocal": True, "flush": True, "stretched": True},
]


@pytest.mark.parametrize(("dtype", "tier"), TIERS)
def test_weights_and_sums_are_bounded(dtype: str, tier: str) -> None:
    largest = 0.0
    for freedom in FREEDOMS:
        if freedom.get("flush") and not model(tier, dtype).flush:
            continue
        for ratio, exceeded in judged(Simulated(tier, dtype, **freedom)):  # type: ignore[arg-type]  # fields by name
            assert not exceeded, (freedom, ratio)
            largest = max(largest, ratio)
    assert largest >= 0.5, f"the budgets of {tier} in {dtype} are never approached: {largest}"


@pytest.mark.parametrize(("dtype", "tier"), TIERS)
def test_derivatives_are_bounded(dtype: str, tier: str) -> None:
    largest: dict[str, float] = {}
    for freedom in (FREEDOMS[0], FREEDOMS[2], FREEDOMS[3]):
        freedom = freedom if model(tier, dtype).flush else {**freedom, "flush": False}
        for name, ratio, exceeded in judged_derivatives(Simulated(tier, dtype, **freedom)):  # type: ignore[arg-type]
            assert not exceeded, (freedom, name, ratio)
            largest[name] = max(largest.get(name, 0.0), ratio)
    assert max(largest.values()) >= 0.2, largest


@pytest.mark.parametrize(("dtype", "tier"), TIERS)
def test_a_backward_pass_is_bounded_at_the_very_weights_it_consumed(dtype: str, tier: str) -> None:
    """``given``: wrong weights too are differentiated to within the budget, and ``J(w)`` stays self-adjoint."""
    simulated, engine = Simulated(tier, dtype), engine_for(dtype)
    for k, (batch, exact) in enumerate(batches(dtype)):
        wrong = np.where(batch.mask, 1.0 / np.maximum(batch.mask.sum(axis=1, keepdims=True), 1), 0.0)
        w = simulated.stored(wrong.astype(simulated.wide))
        zero = np.zeros_like(wrong)
        consumed = ExactWeights(Exact(w.astype(np.float64), zero, zero), exact.gap, exact.total, exact.mask)
        for vector in (batch.cotangents, batch.tangents):
            v = vector.astype(np.float64)
            allowed = derivative_budget(model(tier, dtype), consumed, zero, v).given
            returned = simulated.fused(batch, vector, w.astype(simulated.wide))
            assert not used(engine.derivative(consumed, v), returned, allowed)[1], batch.key
        g, u = batch.cotangents.astype(np.float64), batch.tangents.astype(np.float64)
        error = budget_of(dtype, tier, k).error
        by = [derivative_budget(model(tier, dtype), exact, error, v).given for v in (g, u)]
        g, u = (np.where(batch.mask, v, 0.0) for v in (g, u))
        a = engine.inner(simulated.fused(batch, batch.tangents), g)
        b = engine.inner(simulated.fused(batch, batch.cotangents), u)
        apart = np.abs((a.value - b.value) + (a.low - b.low)) - a.error - b.error
        assert (apart <= inner_budget(g, by[1], u, by[0])).all(), batch.key


def test_a_flush_beyond_the_model_exceeds_it() -> None:
    """float16 results are never flushed under ``half-ops``; a simulation that flushes them is seen."""
    assert any(exceeded for _, exceeded in judged(Simulated("half-ops", "float16", flush=True)))


MISTAKES = [
    *((dtype, tier, {"half_sum": True}) for dtype, tier in TIERS if dtype in HALVES),
    *((dtype, "strict", {"epsilon": 1e-6}) for dtype in ("float32", "float64")),
    *((dtype, "strict", {"exp_error": 1e-5}) for dtype in ("float32", "float64")),
]


@pytest.mark.parametrize(("dtype", "tier", "mistake"), MISTAKES)
def test_wrong_weights_exceed_their_budgets(dtype: str, tier: str, mistake: dict[str, Any]) -> None:
    right = Simulated(tier, dtype)
    assert not any(exceeded for _, exceeded in judged(right))
    assert any(exceeded for _, exceeded in judged(replace(right, **mistake)))


@pytest.mark.parametrize(("dtype", "tier"), TIERS)
def test_a_missing_centre_exceeds_its_budget(dtype: str, tier: str) -> None:
    wrong = Simulated(tier, dtype, centred=False)
    assert any(exceeded for name, _, exceeded in judged_derivatives(wrong) if name == "fused")
