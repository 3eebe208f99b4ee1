"""The tiers of kernels: exponents in base 2, tiled rescaling, weights rebuilt from a log-sum-exp.

Each kernel is written in NumPy as it is written elsewhere, and every entry must stay within the budget of its tier.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from hardmask.conformance.cases.build import build
from hardmask.spec.batch import Batch, Floats
from hardmask.spec.formats import DTYPES, FORMATS, HALVES
from hardmask.spec.oracle import engine_for
from hardmask.spec.oracle.exact import Exact, ExactWeights
from hardmask.spec.rounding import derivative_budget, model, weights_budget
from hardmask.spec.rounding.arguments import FUSED, rescales

Array = np.ndarray[Any, np.dtype[Any]]
KINDS = ("shapes", "poison", "full", "single", "causal", "mixture")
BATCHES = [(kind, rows, keys) for kind in KINDS for rows, keys in ((104, 16), (112, 131))]


@cache
def batches(dtype: str) -> tuple[tuple[Batch, ExactWeights], ...]:
    engine = engine_for(dtype)
    built = [build(kind, kind, (3, k), dtype, rows, keys) for k, (kind, rows, keys) in enumerate(BATCHES)]
    return tuple((b, engine.weights(b.scores64, b.mask)) for b in built)


def wide(batch: Batch) -> Array:
    """The scores in the compute format, 0 where blocked."""
    return np.where(batch.mask, batch.scores, 0).astype(np.float64 if batch.dtype == "float64" else np.float32)


def top_of(x: Array, mask: Array) -> Array:
    top = np.where(mask, x, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0).astype(x.dtype)


def divided(e: Array) -> Array:
    total = e.sum(axis=1, keepdims=True)
    return e / np.where(total > 0, total, 1).astype(e.dtype)


def base_two_after(batch: Batch) -> Array:
    x, m = wide(batch), batch.mask
    return divided(np.where(m, np.exp2((x - top_of(x, m)) * x.dtype.type(np.log2(np.e))), x.dtype.type(0)))


def base_two_before(batch: Batch) -> Array:
    x, m = wide(batch), batch.mask
    c = x.dtype.type(np.log2(np.e))
    return divided(np.where(m, np.exp2(x * c - top_of(x, m) * c), x.dtype.type(0)))


def base_two_fused(batch: Batch) -> Array:
    """One rounding for product and difference, as a fused multiply-add has; emulated in the next wider format."""
    x, m = wide(batch), batch.mask
    wider: Any = np.longdouble if x.dtype == np.float64 else np.float64
    c = x.dtype.type(np.log2(np.e))
    exponent = (x.astype(wider) * wider(c) - (top_of(x, m) * c).astype(wider)).astype(x.dtype)
    return divided(np.where(m, np.exp2(exponent), x.dtype.type(0)))


def online(tile: int, *, two: bool = False, backwards: bool = False) -> Callable[[Batch], Array]:
    """Tiles in turn; numerators and sum are rescaled by ``exp(old maximum - new maximum)``."""

    def kernel(batch: Batch) -> Array:
        x, m = wide(batch), batch.mask
        one = x.dtype.type(1)
        c = x.dtype.type(np.log2(np.e)) if two else one
        exp = np.exp2 if two else np.exp
        high = np.full((len(x), 1), -np.inf, x.dtype)
        total, e = np.zeros((len(x), 1), x.dtype), np.zeros_like(x)
        starts = range(0, x.shape[1], tile)
        for start in reversed(starts) if backwards else starts:
            part = slice(start, start + tile)
            new = np.maximum(high, np.where(m[:, part], x[:, part], -np.inf).max(axis=1, keepdims=True))
            safe = np.where(np.isfinite(new), new, 0)
            rescale = np.where(np.isfinite(high), exp((high - safe) * c), 0).astype(x.dtype)
            e *= rescale
            e[:, part] = np.where(m[:, part], exp((x[:, part] - safe) * c), 0)
            total = total * rescale + e[:, part].sum(axis=1, keepdims=True)
            high = new
        return e / np.where(total > 0, total, one)

    return kernel


def rebuilt(batch: Batch) -> Array:
    x, m = wide(batch), batch.mask
    top = top_of(x, m)
    total = np.where(m, np.exp(np.where(m, x - top, 0)), x.dtype.type(0)).sum(axis=1, keepdims=True)
    return np.where(m, np.exp(x - (top + np.log(np.where(total > 0, total, 1).astype(x.dtype)))), x.dtype.type(0))


def rebuilt_two(batch: Batch) -> Array:
    x, m = wide(batch), batch.mask
    c, top = x.dtype.type(np.log2(np.e)), top_of(x, m)
    total = np.where(m, np.exp2(x * c - top * c), x.dtype.type(0)).sum(axis=1, keepdims=True)
    stored = top * c + np.log2(np.where(total > 0, total, 1).astype(x.dtype))
    return np.where(m, np.exp2(x * c - stored), x.dtype.type(0))


def log_softmax(batch: Batch) -> Array:
    x, m = wide(batch), batch.mask
    shifted = x - top_of(x, m)
    total = np.where(m, np.exp(np.where(m, shifted, 0)), x.dtype.type(0)).sum(axis=1, keepdims=True)
    return np.where(m, np.exp(shifted - np.log(np.where(total > 0, total, 1).astype(x.dtype))), x.dtype.type(0))


KERNELS: dict[str, tuple[str, Callable[[Batch], Array]]] = {
    "exp2((s - M) c)": ("exp2", base_two_after),
    "exp2(s c - M c)": ("exp2", base_two_before),
    "exp2(fma(s, c, -M c))": ("exp2", base_two_fused),
    **{f"tiles of {t}": ("online", online(t)) for t in (1, 4, 16, 64)},
    "tiles of 4, from the end": ("online", online(4, backwards=True)),
    "tiles of 16, base 2": ("online", online(16, two=True)),
    "exp(s - lse)": ("lse", rebuilt),
    "exp2(s c - lse)": ("lse", rebuilt_two),
    "exp((s - M) - log S)": ("lse", log_softmax),
}
OVERFLOWS = ("exp2(s c - M c)", "exp2(fma(s, c, -M c))", "exp2(s c - lse)")
"""Kernels that multiply the scores first: NaN where that overflows, which no budget admits."""


def stored(w: Array, dtype: str) -> Floats:
    return w.astype(FORMATS[dtype].dtype).astype(np.float64)


def usable(name: str, batch: Batch) -> Array:
    """Rows on which a kernel does not overflow."""
    if name not in OVERFLOWS:
        return np.ones(len(batch.mask), bool)
    size = np.abs(np.where(batch.mask, batch.scores64, 0.0)).max(axis=1)
    rounding = model("exp2", batch.dtype)
    most = FUSED / rounding.u if "fma" in name else rounding.compute.max / 2.0
    return np.asarray(size < most)


def shares(true: Exact, returned: Floats, budget: Floats) -> Floats:
    """The largest share of the budget that is certainly used, row by row."""
    error, slack = true.distance(returned)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(budget > 0.0, (error - slack) / budget, np.where(error == 0.0, 0.0, np.inf))
    return np.where(np.isnan(share), np.inf, share).max(axis=1)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_weights_and_row_sums_stay_within_the_tier(name: str, dtype: str) -> None:
    tier, kernel = KERNELS[name]
    engine, largest = engine_for(dtype), 0.0
    for batch, exact in batches(dtype):
        budget = weights_budget(model(tier, dtype), batch.scores64, exact)
        with np.errstate(all="ignore"):
            w = stored(kernel(batch), dtype)
        rows = usable(name, batch)
        share = shares(exact.weights, w, budget.error)[rows]
        assert (share <= 1.0).all(), (batch.key, share.max())
        filled = rows & ~batch.empty
        error, slack = engine.total(w[filled]).distance(np.ones(int(filled.sum())))
        assert (error - slack <= budget.sum_error[filled]).all(), batch.key
        largest = max(largest, share.max())
    assert largest > 0.1, f"the budget of {tier} is never approached: {largest}"


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in HALVES])
@pytest.mark.parametrize("name", [k for k in KERNELS if not k.startswith("tiles")])
def test_no_kernel_fits_strict(name: str, dtype: str) -> None:
    """But for tiles in base e, whose error is as small as that of ``strict`` on most rows. Where the halves are stored
    once, their own rounding hides the difference."""
    kernel, worst = KERNELS[name][1], 0.0
    for batch, exact in batches(dtype):
        budget = weights_budget(model("strict", dtype), batch.scores64, exact)
        with np.errstate(all="ignore"):
            share = shares(exact.weights, stored(kernel(batch), dtype), budget.error)
        worst = max(worst, share[usable(name, batch)].max())
    assert worst > 1.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_the_derivative_by_rebuilt_weights_stays_within_the_tier(name: str, dtype: str) -> None:
    tier, kernel = KERNELS[name]
    for batch, exact in batches(dtype):
        error = weights_budget(model(tier, dtype), batch.scores64, exact).error
        with np.errstate(all="ignore"):
            w = kernel(batch)
            g = np.where(batch.mask, batch.cotangents, 0).astype(w.dtype)
            y = stored(w * (g - (w * g).sum(axis=1, keepdims=True)), dtype)
        vector = batch.cotangents.astype(np.float64)
        budget = derivative_budget(model(tier, dtype), exact, error, vector).vjp
        share = shares(engine_for(dtype).derivative(exact, vector), y, budget)[usable(name, batch)]
        assert (share <= 1.0).all(), (batch.key, share.max())


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kernels_tiers_contain_each_other(dtype: str) -> None:
    for batch, exact in batches(dtype):
        chain = [weights_budget(model(t, dtype), batch.scores64, exact) for t in ("mixed", "exp2", "online", "lse")]
        for tight, loose in pairwise(chain):
            assert (tight.error <= loose.error * (1 + 1e-8)).all()  # each is rounded in float64
            assert (tight.sum_error <= loose.sum_error * (1 + 1e-8)).all()


def test_the_budget_of_lse_grows_with_the_scores_and_the_others_do_not() -> None:
    row = np.array([[0.0, -1.0, -2.0]])
    mask = np.ones(row.shape, bool)

    def first(tier: str, shift: float) -> float:
        exact = engine_for("float32").weights(row + shift, mask)
        return float(weights_budget(model(tier, "float32"), row + shift, exact).error[0, 0])

    assert first("strict", 1024.0) == first("strict", 0.0)
    assert first("lse", 1024.0) > 30.0 * first("lse", 0.0)


def test_rescales_count_the_distinct_larger_scores() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 5, (200, 9)).astype(np.float64)
    mask = rng.random((200, 9)) < 0.7
    gap = np.where(mask, np.where(mask, scores, -np.inf).max(axis=1, keepdims=True) - scores, 0.0)
    expected = [[len({t for t, b in zip(s, m, strict=True) if b and t > x}) * ok for x, ok in zip(s, m, strict=True)]
                for s, m in zip(scores.tolist(), mask.tolist(), strict=True)]  # fmt: skip
    assert rescales(mask, gap).tolist() == expected
