"""The oracle of attention on trial: entries recomputed by the referee, against the error that the oracle states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..batch import Bools
from ..oracle.exact import Exact
from ..oracle.libraries import Name, library
from ..oracle.referee import START
from .oracle import AttentionTruth
from .referee import Index, entry, exceeding
from .rounding import QUANTITIES, Quantity

LARGEST = 200_000
"""Entries of ``dk`` and ``dv`` are recomputed only where that takes at most so many multiplications."""


@dataclass(frozen=True)
class AttentionAudit:
    """How many entries were recomputed, and how many lie outside what the oracle states for them.

    ``share``: the largest part of a stated error that an entry inside used. ``first``: the quantity and the index of
    the first entry outside, None where all are inside.
    """

    checked: int = 0
    outside: int = 0
    share: float = 0.0
    first: tuple[Quantity, Index] | None = None

    def __add__(self, other: AttentionAudit) -> AttentionAudit:
        """Both together; of entries at fault, the first."""
        first = self.first if self.first is not None else other.first
        both = self.checked + other.checked, self.outside + other.outside, max(self.share, other.share)
        return AttentionAudit(*both, first)


def audit(
    truth: AttentionTruth,
    sample: int,
    rng: np.random.Generator,
    quantities: Sequence[Quantity] = QUANTITIES,
    *,
    lib: Name | None = None,
) -> AttentionAudit:
    """Recompute up to ``sample`` random entries of each quantity and hold what the oracle states against the result.

    Only entries that depend on real numbers alone are drawn. An entry on the edge of its stated error is inside; NaN
    is outside; an infinite error claims nothing.

    >>> from .problem import Problem
    >>> one, two = np.ones((1, 1, 1, 1)), np.array([2.0, 4.0]).reshape(1, 1, 2, 1)
    >>> zeros, mask = np.zeros((1, 1, 2, 1)), np.ones((1, 1, 1, 2), bool)
    >>> problem = Problem("a", "a", "float64", one, zeros, two, mask, 1.0, one, (one, zeros, zeros))
    >>> audit(AttentionTruth(problem), 1, np.random.default_rng(0)).outside
    0
    """
    found = AttentionAudit()
    for quantity in quantities:
        stated: Exact = getattr(truth, quantity)
        for index in _drawn(truth, quantity, stated.value.shape, sample, rng):
            found = found + _entry(truth, quantity, stated, index, lib)
    return found


def _drawn(
    truth: AttentionTruth, quantity: Quantity, shape: tuple[int, ...], sample: int, rng: np.random.Generator
) -> list[Index]:
    """Random indices of entries that can be judged, in ascending order."""
    _, heads, groups, queries, keys, d, dv = truth.problem.sizes
    to_key = quantity in ("dk", "dv")
    if to_key and heads // max(groups, 1) * queries * keys * (d + dv) > LARGEST:
        return []
    judged: Bools = truth.real_keys if to_key else truth.real
    places: npt.NDArray[np.int64] = np.argwhere(judged)
    width = shape[3]
    total = len(places) * width
    chosen = np.sort(rng.choice(total, size=min(sample, total), replace=False))
    return [(*(int(i) for i in places[c // width]), int(c % width)) for c in chosen.tolist()]  # type: ignore[misc]


def _entry(truth: AttentionTruth, quantity: Quantity, stated: Exact, index: Index, lib: Name | None) -> AttentionAudit:
    value, low, error = (float(part[index]) for part in (stated.value, stated.low, stated.error))
    if not np.isfinite(value) or not np.isfinite(low) or np.isnan(error):
        return AttentionAudit(1, 1, 0.0, (quantity, index))
    if np.isinf(error):
        return AttentionAudit(1)
    real = library(lib)
    with real.precision(START):
        distance = abs(entry(real, truth.problem, quantity, index) - real.number(value) - real.number(low))
        limit = real.number(error)
        outside, inside = bool(distance > limit), bool(distance <= limit)
        share = min(1.0, real.rough(distance / limit)) if inside and error else 0.0
    if not outside and not inside:
        outside = exceeding(truth.problem, quantity, [index], [value], [error], low=[low], lib=lib)[0]
    return AttentionAudit(1, int(outside), share, (quantity, index) if outside else None)
