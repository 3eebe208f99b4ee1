"""Mutants that block in a wrong way: finite penalties instead of exclusion, blocked keys that still count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...adapters.subject import Array, Bools
from .kit import Forward, mutant, over_all, rows_of, top_of, total_of, weights_of
from .mutant import Mutant

Penalty = Callable[[np.dtype[Any]], float]


def _lowest(dtype: np.dtype[Any]) -> float:
    return float(-np.finfo(np.float32).max if dtype.name == "bfloat16" else np.finfo(dtype).min)


def _constant(value: float) -> Penalty:
    return lambda dtype: value


def _added(penalty: Penalty) -> Forward:
    """The softmax of the scores with a penalty added at blocked keys, computed wide."""

    def forward(scores: Array, mask: Bools) -> Array:
        blocked = np.where(mask, 0, penalty(scores.dtype)).astype(np.float64)
        return rows_of(lambda x, m: over_all(x + blocked.astype(x.dtype)))(scores, mask)

    return forward


def _filled(penalty: Penalty) -> Forward:
    """The softmax of the scores with a number in place of the blocked ones."""

    def forward(scores: Array, mask: Bools) -> Array:
        return rows_of(lambda x, m: over_all(np.where(m, x, penalty(scores.dtype)).astype(x.dtype)))(scores, mask)

    return forward


def _added_twice(scores: Array, mask: Bools) -> Array:
    """Two planes of penalties, each the lowest number, added in the storage format: their sum overflows."""
    plane = np.where(mask, 0, _lowest(scores.dtype)).astype(scores.dtype)
    return rows_of(lambda x, m: over_all(x))(scores + plane + plane, mask)


def _scores_multiplied(x: Array, mask: Bools) -> Array:
    return over_all(x * mask)


def _scores_multiplied_masked(x: Array, mask: Bools) -> Array:
    return np.asarray(over_all(x * mask) * mask)


def _remasked(x: Array, mask: Bools) -> Array:
    return np.asarray(np.where(mask, over_all(x), 0))


def _remasked_normalised(x: Array, mask: Bools) -> Array:
    w = np.where(mask, over_all(x), 0)
    total = w.sum(axis=-1, keepdims=True, dtype=w.dtype)
    return np.asarray(np.divide(w, total, out=np.zeros_like(w), where=total > 0))


def _numerators_multiplied(x: Array, mask: Bools) -> Array:
    """``exp(s - max) * mask``: 0 times an infinity or a NaN is a NaN."""
    e = np.exp(x - top_of(x, mask)) * mask
    return np.asarray(e / np.where(mask.any(axis=-1, keepdims=True), e.sum(axis=-1, keepdims=True, dtype=e.dtype), 1))


def _top_of_all(x: Array, mask: Bools) -> Array:
    return np.asarray(np.max(x, axis=-1, keepdims=True, initial=-np.inf))


def _top_of_finite(x: Array, mask: Bools) -> Array:
    return top_of(x, np.isfinite(x))


def _sum_of_all(x: Array, mask: Bools) -> Array:
    """Blocked numerators are kept out of the weights, but not out of the denominator."""
    shifted = np.where(np.isfinite(x), x - top_of(x, mask), -np.inf)
    everything = np.exp(np.minimum(shifted, 0)).astype(x.dtype)
    return weights_of(x, mask, total=lambda e, m: total_of(everything, m))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    typo = _constant(-1e-9)
    return [
        mutant("additive-1e4", "D", "Adds -1e4 to the blocked scores.", _added(_constant(-1e4))),
        mutant("additive-1e9", "D", "Adds -1e9 to the blocked scores.", _added(_constant(-1e9))),
        mutant("additive-min", "D", "Adds the lowest finite number to the blocked scores.", _added(_lowest)),
        mutant(
            "additive-min-twice",
            "D",
            "Adds two planes of the lowest finite number, whose sum overflows where both block.",
            _added_twice,
        ),
        mutant("fill-1e4", "D", "Puts -1e4 in place of the blocked scores.", _filled(_constant(-1e4))),
        mutant("fill-1e9", "D", "Puts -1e9 in place of the blocked scores.", _filled(_constant(-1e9))),
        mutant("fill-min", "D", "Puts the lowest finite number in place of the blocked scores.", _filled(_lowest)),
        mutant("additive-typo", "D", "Adds -1e-9, meant to be -1e9: nothing is blocked.", _added(typo)),
        mutant("fill-typo", "D", "Puts -1e-9, meant to be -1e9, in place of the blocked scores.", _filled(typo)),
        mutant("fill-plus-inf", "D", "Puts +inf, a slip of the sign, where -inf is meant.", _filled(_constant(np.inf))),
        mutant(
            "multiply-scores",
            "D",
            "Multiplies the scores by the mask: a blocked score counts as 0.",
            rows_of(_scores_multiplied),
        ),
        mutant(
            "multiply-scores-and-weights",
            "E",
            "Multiplies scores and weights by the mask: blocked keys keep their share of the sum.",
            rows_of(_scores_multiplied_masked),
        ),
        mutant(
            "multiply-numerators",
            "E",
            "Multiplies the numerators by the mask, and 0 times a NaN or an infinity is a NaN.",
            rows_of(_numerators_multiplied),
        ),
        mutant("re-mask", "E", "Normalises over all keys, then zeroes the blocked weights.", rows_of(_remasked)),
        mutant(
            "re-mask-renormalise",
            "E",
            "Normalises over all keys, zeroes the blocked weights and normalises what underflow has left.",
            rows_of(_remasked_normalised),
        ),
        mutant(
            "max-over-blocked",
            "E",
            "Shifts by the maximum over all keys, blocked ones included.",
            rows_of(lambda x, m: weights_of(x, m, top=_top_of_all)),
        ),
        mutant(
            "max-over-finite",
            "E",
            "Shifts by the maximum over all finite scores, blocked ones included.",
            rows_of(lambda x, m: weights_of(x, m, top=_top_of_finite)),
        ),
        mutant(
            "sum-over-blocked", "E", "Sums the numerators of blocked keys into the denominator.", rows_of(_sum_of_all)
        ),
    ]
