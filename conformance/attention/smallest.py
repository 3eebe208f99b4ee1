"""Shrink a problem that shows something to the smallest that still shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...spec.attention.problem import Problem
from ...spec.batch import Array
from .masks import causal

TRIALS = 120
"""Problems that are tried, at most."""

Shows = Callable[[Problem], bool]
Selection = dict[str, Sequence[int]]
"""Axis -> the indices that are kept. Axes: batch, heads, groups, queries, keys, width, values."""


def smallest(problem: Problem, shows: Shows, trials: int = TRIALS) -> Problem:
    """The smallest problem found that ``shows`` accepts: fewer entries, heads, queries, keys, coordinates; then plainer
    numbers. ``shows`` may refuse a problem that the subject does not take. The given problem is taken to be accepted.

    >>> from .plan import SMALL, AttentionCase
    >>> found = smallest(AttentionCase("float32", SMALL, "full", "plain", 0).build(), lambda p: p.k.shape[2] >= 3)
    >>> found.sizes
    (1, 1, 1, 1, 3, 1, 1)
    """
    left = trials
    for axis in ("batch", "groups", "heads", "queries", "keys", "both", "widths", "width", "values"):
        while left > 0:
            before = problem
            for candidate in _fewer(problem, axis):
                left -= 1
                if shows(candidate):
                    problem = candidate
                    break
                if left <= 0:
                    break
            if problem is before:
                break
    for digits in (0, 1):
        for name in ("q", "k", "v", "cotangent"):
            candidate = _rounded(problem, name, digits)
            if left > 0 and shows(candidate):
                problem = candidate
            left -= 1
    return problem


def _fewer(problem: Problem, axis: str) -> Iterator[Problem]:
    """Problems with less along an axis, the smallest first."""
    batch, heads, groups, queries, keys, width, values = problem.sizes
    if axis == "batch":
        yield from (taken(problem, {"batch": [b]}) for b in range(batch if batch > 1 else 0))
    elif axis == "groups":
        each = heads // groups if groups else 0
        for g in range(groups if groups > 1 else 0):
            yield taken(problem, {"groups": [g], "heads": range(g * each, (g + 1) * each)})
    elif axis == "heads" and groups == 1:
        yield from (taken(problem, {"heads": [h]}) for h in range(heads if heads > 1 else 0))
    elif axis in ("queries", "keys"):
        length = queries if axis == "queries" else keys
        yield from (taken(problem, {axis: kept}) for kept in _subsets(length))
    elif axis == "both" and queries == keys:
        yield from (taken(problem, {"queries": kept, "keys": kept}) for kept in _subsets(queries))
    elif axis == "widths" and width == values:
        yield from (taken(problem, {"width": range(n), "values": range(n)}) for n in (1, width // 2) if 0 < n < width)
    elif axis in ("width", "values"):
        length = width if axis == "width" else values
        yield from (taken(problem, {axis: range(n)}) for n in (1, length // 2) if 0 < n < length)


def _subsets(length: int) -> Iterator[list[int]]:
    """Halves, then all but one."""
    every = list(range(length))
    if length > 3:
        half = length // 2
        yield every[:half]
        yield every[half:]
    if 1 < length <= 12:
        for left_out in every:
            yield every[:left_out] + every[left_out + 1 :]


def taken(problem: Problem, kept: Selection) -> Problem:
    """The problem with the given indices of each axis; the scale stays ``1 / sqrt d`` if it was that."""
    sizes = dict(zip(("batch", "heads", "groups", "queries", "keys", "width", "values"), problem.sizes, strict=True))
    every: dict[str, list[int]] = {name: list(kept.get(name, range(size))) for name, size in sizes.items()}

    def of(array: Array, *names: str) -> Array:
        return array[np.ix_(*(every[name] for name in names))].copy()

    def queries(array: Array) -> Array:
        return of(array, "batch", "heads", "queries", "width")

    def keys(array: Array, width: str) -> Array:
        return of(array, "batch", "groups", "keys", width)

    mask = of(problem.full_mask, "batch", "heads", "queries", "keys")
    for axis in (0, 1, 2):  # broadcast again where that loses nothing: a path may depend on it
        if mask.shape[axis] > 1 and problem.mask.shape[axis] == 1:
            mask = mask.take([0], axis=axis)
    dq, dk, dv = problem.tangents
    usual = problem.scale == max(sizes["width"], 1) ** -0.5
    width = len(every["width"])
    found = replace(
        problem,
        q=queries(problem.q),
        k=keys(problem.k, "width"),
        v=keys(problem.v, "values"),
        mask=mask,
        scale=max(width, 1) ** -0.5 if usual else problem.scale,
        cotangent=of(problem.cotangent, "batch", "heads", "queries", "values"),
        tangents=(queries(dq), keys(dk, "width"), keys(dv, "values")),
    )
    return _described(found, problem)


def _described(problem: Problem, whole: Problem) -> Problem:
    """The problem with what its own mask is: that of a causal flag, or of lengths."""
    queries, keys = problem.sizes[3:5]
    mask = problem.full_mask
    flag = whole.causal if whole.causal and bool((mask == causal(queries, keys, whole.causal)).all()) else None
    first = mask[:, :1, :1]
    prefix = bool((mask == first).all()) and bool((np.diff(first.astype(int), axis=-1) <= 0).all())
    return replace(problem, causal=flag, lengths=whole.lengths and prefix)


def _rounded(problem: Problem, name: str, digits: int) -> Problem:
    array: Array = getattr(problem, name)
    with np.errstate(all="ignore"):
        changed: dict[str, Any] = {name: np.round(array.astype(np.float64), digits).astype(array.dtype)}
    return replace(problem, **changed)
