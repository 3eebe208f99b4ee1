"""Mutants that are right on plain rows and wrong on arrays of other ranks, axes, masks or orders in memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...adapters.subject import Array, Bools, Subject
from ...spec.formats import DTYPES
from .kit import rows_of, weights_of
from .mutant import Mutant

_rows = rows_of(weights_of)


def _along(scores: Array, mask: Bools, axis: int) -> Array:
    """The correct weights of an array of any rank along any axis."""
    s, m = (np.moveaxis(a, axis, -1) for a in (scores, np.broadcast_to(mask, scores.shape)))
    return np.moveaxis(np.asarray(_rows(s, m)), -1, axis)


def _axis_ignored(scores: Array, mask: Bools, axis: int = -1) -> Array:
    return _along(scores, mask, -1)


def _axis_from_the_front(scores: Array, mask: Bools, axis: int = -1) -> Array:
    return _along(scores, mask, -1 if axis < 0 else axis)


def _first_axis_wrong(scores: Array, mask: Bools, axis: int = -1) -> Array:
    return _along(scores, mask, -1 if axis == 0 else axis)


def _flattened(scores: Array, mask: Bools, axis: int = -1) -> Array:
    if scores.ndim < 3:
        return _along(scores, mask, axis)
    flat = (a.reshape(1, -1) for a in (scores, np.broadcast_to(mask, scores.shape)))
    return np.asarray(_rows(*flat)).reshape(scores.shape)


def _rows_reinterpreted(scores: Array, mask: Bools, axis: int = -1) -> Array:
    keys = scores.shape[axis]
    if not scores.size:
        return scores.copy()
    flat = (a.reshape(-1, keys) for a in (scores, np.broadcast_to(mask, scores.shape)))
    return np.asarray(_rows(*flat)).reshape(scores.shape)


def _mask_stretched(scores: Array, mask: Bools, axis: int = -1) -> Array:
    if mask.shape != scores.shape and mask.size and scores.size % mask.size == 0:
        mask = np.repeat(mask.ravel(), scores.size // mask.size).reshape(scores.shape)
    return _along(scores, mask, axis)


def _memory_as_contiguous(scores: Array, mask: Bools, axis: int = -1) -> Array:
    held = scores
    while isinstance(held.base, np.ndarray):
        held = held.base
    if held.size < scores.size:
        return _along(scores, mask, axis)
    return _along(held.ravel(order="K")[: scores.size].reshape(scores.shape), mask, axis)


FORWARDS: tuple[tuple[str, str, Callable[..., Array]], ...] = (
    ("axis-ignored", "Normalises along the last axis, whichever was asked for.", _axis_ignored),
    ("axis-negative", "Takes every negative axis for the last one.", _axis_from_the_front),
    ("axis-first", "Normalises along the last axis when the first was asked for.", _first_axis_wrong),
    ("axes-flattened", "Normalises over all axes of an array of rank 3 or more at once.", _flattened),
    ("axis-reshaped", "Takes each run of as many numbers as a row has for a row, by a reshape.", _rows_reinterpreted),
    ("mask-stretched", "Repeats each entry of a smaller mask instead of the mask as a whole.", _mask_stretched),
    ("memory-contiguous", "Reads the memory behind the scores as if it were contiguous.", _memory_as_contiguous),
)
"""Name, story and forward pass."""


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        Mutant(
            name,
            "I",
            story,
            Subject(f"mutant.{name}", forward, adapter="mutant", dtypes=DTYPES, any_axis=True),
        )
        for name, story, forward in FORWARDS
    ]
