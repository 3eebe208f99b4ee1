"""Correct variants: how the exponent is formed, how good exp is, and in which formats the steps run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...adapters.subject import Array, Bools
from ...spec.formats import DTYPES, HALVES
from .correct_sums import numerators
from .kit import top_of, weights_of, wide
from .mutant import Variant
from .recipe import Weights, inner, variant

HALF = tuple(d for d in DTYPES if d in HALVES)


def _first_maximum(x: Array, mask: Bools) -> Array:
    """The score at the index of the largest allowed score; 0 for an empty row."""
    if not x.shape[1]:
        return np.zeros((len(x), 1), x.dtype)
    filled = np.where(mask, x, -np.inf)
    top = np.take_along_axis(filled, filled.argmax(axis=1)[:, None], axis=1)
    return np.where(np.any(mask, axis=1, keepdims=True), top, 0).astype(x.dtype)


def _near_maximum(x: Array, mask: Bools) -> Array:
    """A whole number near the maximum, where there is one."""
    top = top_of(x, mask)
    return np.where(np.abs(top) < 1e4, np.rint(top), top).astype(x.dtype)


def _filled(x: Array, mask: Bools) -> Array:
    """Minus infinity at blocked keys, and a maximum that is guarded on empty rows."""
    filled = np.where(mask, x, -np.inf).astype(x.dtype)
    e = np.exp(filled - top_of(x, mask))
    total = np.sum(e, axis=1, keepdims=True)
    return np.asarray(e / np.where(total > 0, total, 1))


def _wider(x: Array) -> Array:
    return x.astype(np.longdouble if x.dtype == np.float64 else np.float64)


def _as_wrong_as_allowed(t: Array) -> Array:
    """exp with a relative error just below the 4 u that the tier allows, too large near 0 and too small elsewhere."""
    u = np.finfo(t.dtype).epsneg
    side = np.where(t > -0.5, 2.9, -2.9) * u
    return np.asarray(np.exp(_wider(t)) * (1 + side)).astype(t.dtype)


def _flushed(values: Array) -> Array:
    """Zero in place of what lies below the smallest normal number."""
    return np.where(np.abs(values) < np.finfo(values.dtype).tiny, 0, values).astype(values.dtype)


def _flushing(x: Array, mask: Bools) -> Array:
    return _flushed(weights_of(x, mask, exp=lambda t: _flushed(np.exp(t))))


def _flushing_derivative(x: Array, mask: Bools, v: Array) -> Array:
    w = _flushing(x, mask)
    centre = _flushed(np.sum(_flushed(w * v), axis=1, keepdims=True))
    return _flushed(w * _flushed(v - centre))


def _cast(of_cast: bool) -> Weights:
    """Numerators rounded to the half format; the sum is that of the rounded ones, or of those before."""

    def weights(scores: Array, mask: Bools) -> Array:
        e, total = numerators(wide(scores), mask)
        stored = e.astype(scores.dtype).astype(e.dtype)
        if of_cast:
            total = np.where(np.any(mask, axis=1, keepdims=True), np.sum(stored, axis=1, keepdims=True), 1)
        return np.asarray(stored / total).astype(e.dtype)

    return weights


def _half_total(e: Array) -> Array:
    return np.sum(e, axis=1, keepdims=True, dtype=np.float32).astype(e.dtype)


def _half_numerators(x: Array, mask: Bools) -> tuple[Array, Array]:
    top = top_of(x.astype(np.float32), mask).astype(x.dtype)
    e = np.where(mask, np.exp(np.where(mask, x - top, 0).astype(x.dtype)), 0).astype(x.dtype)
    return e, np.where(np.any(mask, axis=1, keepdims=True), _half_total(e), 1).astype(x.dtype)


def _half_weights(x: Array, mask: Bools) -> Array:
    e, total = _half_numerators(x, mask)
    return np.asarray(e / total)


def _half_fused(x: Array, mask: Bools, v: Array) -> Array:
    w = _half_weights(x, mask)
    return np.asarray(w * (v - _half_total(w * v)))


def _half_composed(x: Array, mask: Bools, v: Array) -> Array:
    """Every operation of exp, sum and quotient differentiated in the half format."""
    e, total = _half_numerators(x, mask)
    return np.asarray(e * (v / total - _half_total(e * v) / total / total))


def _scaled_first(x: Array, mask: Bools) -> Array:
    """``exp2(s c - M c)``, with halves of both so that the largest scores stay finite."""
    c = np.asarray(np.log2(np.e), x.dtype)
    top = top_of(x, mask)
    return _from_exponents(2 * ((x / 2) * c - (top / 2) * c), mask)


def _scaled_first_fused(x: Array, mask: Bools) -> Array:
    """``exp2(fma(s, c, -M c))``: the product with the score is not rounded.

    At the maximum the exponent is the rounding error of ``M c``, which overflows exp2 for huge scores: those take the
    difference first.
    """
    c = np.asarray(np.log2(np.e), x.dtype)
    top = top_of(x, mask)
    product = x.astype(np.float64) * float(c) - (top * c).astype(np.float64)
    huge = np.abs(top) > 2.0**24
    return _from_exponents(np.where(huge, (x - top) * c, product).astype(x.dtype), mask)


def _scaled_last(x: Array, mask: Bools) -> Array:
    """``exp2((s - M) c)``."""
    return _from_exponents((x - top_of(x, mask)) * np.asarray(np.log2(np.e), x.dtype), mask)


def _from_exponents(t: Array, mask: Bools) -> Array:
    e = np.where(mask, np.exp2(np.where(mask, t, 0)), 0).astype(t.dtype)
    total = np.where(np.any(mask, axis=1, keepdims=True), np.sum(e, axis=1, keepdims=True), 1)
    return np.asarray(e / total).astype(t.dtype)


def _log_sum(x: Array, mask: Bools) -> tuple[Array, Array]:
    """The maximum and the log of the sum of the shifted exponentials."""
    return top_of(x, mask), np.log(numerators(x, mask)[1])


def _from_log_sum_exp(x: Array, mask: Bools) -> Array:
    """``exp(s - L)`` with ``L = M + log S``."""
    top, log = _log_sum(x, mask)
    total = top + log
    return np.where(mask, np.exp(np.where(mask, x - total, 0)), 0).astype(x.dtype)


def _reverse_through_log_sum_exp(x: Array, mask: Bools, v: Array) -> Array:
    """Reverse mode step by step: ``exp(s - L)`` multiplies ``v``, ``e / S`` the gradient of ``L``."""
    e, total = numerators(x, mask)
    moved = _from_log_sum_exp(x, mask) * v
    return np.asarray(moved - e / total * np.sum(moved, axis=1, keepdims=True))


def _forward_through_log_sum_exp(x: Array, mask: Bools, v: Array) -> Array:
    """Forward mode step by step: the tangent of ``L`` comes from ``e / S``."""
    e, total = numerators(x, mask)
    return np.asarray(_from_log_sum_exp(x, mask) * (v - inner(e / total, v)))


def _from_log_softmax(x: Array, mask: Bools) -> Array:
    """``exp((s - M) - log S)``."""
    top, log = _log_sum(x, mask)
    return np.where(mask, np.exp(np.where(mask, (x - top) - log, 0)), 0).astype(x.dtype)


def _shifted(name: str, story: str, top: Callable[[Array, Bools], Array], tier: str | None = None) -> Variant:
    return variant(name, story, partial(weights_of, top=top), tier=tier)


def variants() -> list[Variant]:
    """The variants of this module."""
    halves: dict[str, Any] = {"compute": lambda x: x, "dtypes": HALF}
    return [
        _shifted("first-maximum", "Shifts by the score at the first maximum.", _first_maximum),
        _shifted("near-maximum", "Shifts by the whole number next to the maximum.", _near_maximum, "exp2"),
        variant("filled", "Fills with minus infinity and guards the maximum of an empty row.", _filled),
        variant(
            "wider", "Computes in the next wider format throughout.", weights_of, compute=lambda x: _wider(wide(x))
        ),
        variant("coarse-exp", "Its exp is as wrong as the tier allows.", partial(weights_of, exp=_as_wrong_as_allowed)),
        variant("flushing", "Flushes every subnormal result to zero.", _flushing, vjp=_flushing_derivative),
        variant(
            "cast-numerators",
            "Rounds the numerators to the half format, not their sum.",
            _cast(False),
            tier="mixed-2",
            **halves,
        ),
        variant(
            "cast-numerators-first",
            "Rounds the numerators to the half format, then sums.",
            _cast(True),
            tier="mixed-2",
            **halves,
        ),
        variant(
            "half-ops",
            "Rounds every operation to the half format.",
            _half_weights,
            vjp=_half_fused,
            tier="half-ops",
            **halves,
        ),
        variant(
            "half-ops-composed",
            "Rounds every operation to the half format, derivatives step by step.",
            _half_weights,
            vjp=_half_composed,
            tier="half-ops",
            **halves,
        ),
        variant("exp2-scaled-first", "exp2(s c - M c) with c = log2 e.", _scaled_first, tier="exp2"),
        variant(
            "exp2-fused",
            "exp2(s c - M c) by one fused multiply-add.",
            _scaled_first_fused,
            tier="exp2",
            dtypes=("float32", *HALF),
        ),
        variant("exp2-scaled-last", "exp2((s - M) c) with c = log2 e.", _scaled_last, tier="exp2"),
        variant("log-sum-exp", "exp(s - L) with L the log-sum-exp of the row.", _from_log_sum_exp, tier="lse"),
        variant(
            "through-log-sum-exp",
            "exp(s - L), differentiated step by step.",
            _from_log_sum_exp,
            vjp=_reverse_through_log_sum_exp,
            jvp=_forward_through_log_sum_exp,
            tier="lse",
        ),
        variant("exp-of-log-softmax", "exp((s - M) - log S).", _from_log_softmax, tier="lse"),
    ]
