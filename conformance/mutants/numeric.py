"""Mutants of accuracy: exp, maximum, sum and division done with too little care."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ...adapters.subject import Array, Bools
from .kit import Forward, mutant, rows_of, top_of, total_of, weights_of
from .mutant import Mutant

FLOAT16: Any = np.float16
BFLOAT16: Any = ml_dtypes.bfloat16
SINGLE = ("float32", "float16", "bfloat16")
BELOW = "below half an ulp of the stored weight on nearly all random rows: for the exhaustive sweep"


def _with(**steps: Callable[..., Array]) -> Forward:
    return rows_of(lambda x, mask: weights_of(x, mask, **steps))


def _fast_exp(error: float) -> Forward:
    """exp with a relative error of up to ``error`` that ripples with the argument, as a polynomial of low degree has.

    The largest numerator, exp(0), is exact: fast exponentials mostly are there.
    """

    def exp(t: Array) -> Array:
        wide = np.maximum(t.astype(np.float64), -1e4)
        return np.asarray((np.exp(wide) * (1.0 + error * np.sin(37.0 * wide))).astype(t.dtype))

    return _with(exp=exp)


def _wrapping_exp(t: Array) -> Array:
    """exp by a power of 2 whose exponent is cast to 32 bits, where it wraps around. -inf is treated apart."""
    n = np.rint(t.astype(np.float64) * np.log2(np.e))
    k = np.where(np.abs(n) < 2.0**63, n, 0).astype(np.int64).astype(np.int32)
    rest = np.where(np.abs(n) < 2.0**31, t - n * np.log(2), 0)
    return np.where(np.isneginf(t), 0, np.ldexp(np.exp(rest), np.clip(k, -2000, 2000))).astype(t.dtype)


def _base_two(log2e: float) -> Forward:
    return _with(exp=lambda t: np.exp2(t * t.dtype.type(log2e)))


def _running(dtype: Any) -> Forward:
    """Sums from left to right, each partial sum rounded to ``dtype``."""

    def total(e: Array, mask: Bools) -> Array:
        s = np.zeros(len(e), dtype)
        for key in range(e.shape[1]):
            s = (s + e[:, key].astype(dtype)).astype(dtype)
        return np.asarray(s[:, None].astype(e.dtype))

    return _with(total=total)


def _through(dtype: Any) -> Forward:
    """Scores, arithmetic and weights in a narrower format than the one promised."""

    def forward(scores: Array, mask: Bools) -> Array:
        return rows_of(weights_of)(scores.astype(dtype), mask).astype(scores.dtype)

    return forward


def _rounded_scores(dtype: Any) -> Forward:
    return lambda scores, mask: rows_of(weights_of)(scores.astype(dtype).astype(scores.dtype), mask)


def _scaled(x: Array, mask: Bools) -> Array:
    """The reciprocal of the sum from a table of eight bits, without a step of Newton's."""
    reciprocal = total_of(np.where(mask, np.exp(np.where(mask, x - top_of(x, mask), 0)), 0).astype(x.dtype), mask)
    return weights_of(x, mask, total=lambda e, m: 1 / (1 / reciprocal).astype(BFLOAT16).astype(x.dtype))


def _last_from_rest(x: Array, mask: Bools) -> Array:
    """The last allowed weight is what the others leave of 1: the row sum is right, the weight is not."""
    w = weights_of(x, mask)
    if not x.shape[1]:
        return w
    last = x.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
    row = np.arange(len(x))
    rest = w.sum(axis=1, dtype=w.dtype) - w[row, last]
    w[row, last] = np.where(mask.any(axis=1), np.maximum(1 - rest, 0), 0)
    return w


def _flushed(x: Array, mask: Bools) -> Array:
    w = weights_of(x, mask)
    return np.asarray(np.where(w < 1e-5, 0, w))


def _quantised(x: Array, mask: Bools) -> Array:
    return np.asarray(np.rint(weights_of(x, mask) * 255) / x.dtype.type(255))


def _clamped_sum(e: Array, mask: Bools) -> Array:
    return np.minimum(total_of(e, mask), 64)


def _eps(eps: float) -> Forward:
    return _with(total=lambda e, m: total_of(e, m) + e.dtype.type(eps))


def _clamped(least: float) -> Forward:
    return _with(top=lambda x, m: np.maximum(top_of(x, m), x.dtype.type(least)))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    halves = dict.fromkeys(("float16", "bfloat16"), BELOW)
    return [
        mutant(
            "no-shift", "numeric", "Does not subtract the maximum.", _with(top=lambda x, m: np.zeros_like(x[:, :1]))
        ),
        mutant("clamp-1e4", "numeric", "Shifts by no less than -1e4.", _clamped(-1e4)),
        mutant("clamp-0", "numeric", "Shifts by no less than 0.", _clamped(0.0)),
        mutant(
            "max-of-absolute",
            "numeric",
            "Shifts by the largest absolute value.",
            _with(top=lambda x, m: top_of(np.abs(x), m)),
        ),
        mutant("eps-1e-6", "numeric", "Adds 1e-6 to the denominator.", _eps(1e-6), survivors=halves),
        mutant(
            "eps-1e-12",
            "numeric",
            "Adds 1e-12 to the denominator.",
            _eps(1e-12),
            survivors=dict.fromkeys(SINGLE, "equivalent: the sum is at least 1, and 1e-12 is lost beside it"),
        ),
        mutant("fast-exp-1e-3", "numeric", "Uses an exp that is right to 1e-3.", _fast_exp(1e-3)),
        mutant("fast-exp-1e-4", "numeric", "Uses an exp that is right to 1e-4.", _fast_exp(1e-4)),
        mutant("fast-exp-1e-5", "numeric", "Uses an exp that is right to 1e-5.", _fast_exp(1e-5)),
        mutant("fast-exp-1e-6", "numeric", "Uses an exp that is right to 1e-6.", _fast_exp(1e-6), survivors=halves),
        mutant(
            "exponent-wraps",
            "numeric",
            "Casts the exponent to 32 bits, where a very low one wraps around to a high one.",
            _with(exp=_wrapping_exp),
            dtypes=("float64", "float32", "bfloat16"),  # no difference of two float16 numbers is that large
        ),
        mutant("log2e-short", "numeric", "Takes 1.4427 for the logarithm of e to base 2.", _base_two(1.4427)),
        mutant("base-2", "L", "Uses exp2 and forgets to scale the scores.", _base_two(1.0)),
        mutant(
            "exponent-clamped",
            "numeric",
            "Does not let the exponent fall below -10.",
            _with(exp=lambda t: np.exp(np.maximum(t, -10))),
        ),
        mutant("sum-in-float16", "numeric", "Sums in float16, from left to right.", _running(FLOAT16)),
        mutant("sum-in-bfloat16", "numeric", "Sums in bfloat16, from left to right.", _running(BFLOAT16)),
        mutant(
            "sum-in-float32",
            "numeric",
            "Sums in float32, from left to right.",
            _running(np.float32),
            dtypes=("float64",),
        ),
        mutant("sum-clamped", "numeric", "Lets the denominator grow no further than 64.", _with(total=_clamped_sum)),
        mutant("reciprocal-from-table", "numeric", "Multiplies by a reciprocal of eight bits.", rows_of(_scaled)),
        mutant(
            "downcast-float32",
            "numeric",
            "Computes in float32 what it returns in float64.",
            _through(np.float32),
            dtypes=("float64",),
        ),
        mutant(
            "downcast-float16",
            "numeric",
            "Computes on float16 scores, whatever it is given.",
            _through(FLOAT16),
            dtypes=("float64", "float32", "bfloat16"),
        ),
        mutant(
            "downcast-bfloat16",
            "numeric",
            "Computes on bfloat16 scores, whatever it is given.",
            _through(BFLOAT16),
            dtypes=("float64", "float32", "float16"),
        ),
        mutant(
            "scores-in-bfloat16",
            "numeric",
            "Rounds the scores to bfloat16 first.",
            _rounded_scores(BFLOAT16),
            dtypes=("float64", "float32", "float16"),
        ),
        mutant(
            "scores-in-float16",
            "numeric",
            "Rounds the scores to float16 first.",
            _rounded_scores(FLOAT16),
            dtypes=("float64", "float32", "bfloat16"),
        ),
        mutant(
            "last-from-rest", "numeric", "Sets the last weight to what the others leave of 1.", rows_of(_last_from_rest)
        ),
        mutant("flush-early", "numeric", "Returns 0 for every weight below 1e-5.", rows_of(_flushed)),
        mutant("quantised", "numeric", "Rounds the weights to multiples of 1/255.", rows_of(_quantised)),
    ]
