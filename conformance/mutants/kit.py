"""What the mutants are made of: a correct masked softmax whose steps can be replaced one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...adapters.subject import Answer, Array, Bools, Subject
from ...spec.formats import DTYPES
from .mutant import Mutant

Forward = Callable[[Array, Bools], Array | Answer]


def wide(x: Array) -> Array:
    """The array in the format that is computed in: float32 for the halves, its own otherwise."""
    return x if x.dtype in (np.float64, np.float32) else x.astype(np.float32)


def top_of(x: Array, mask: Bools) -> Array:
    """The largest allowed score of each row, shape ``(rows, 1)``; 0 for an empty row."""
    top = np.max(np.where(mask, x, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(np.where(np.any(mask, axis=-1, keepdims=True), top, 0).astype(x.dtype))


def total_of(e: Array, mask: Bools) -> Array:
    """The sum of each row of numerators, shape ``(rows, 1)``."""
    return np.asarray(np.sum(e, axis=-1, keepdims=True, dtype=e.dtype))


def weights_of(
    x: Array,
    mask: Bools,
    *,
    top: Callable[[Array, Bools], Array] = top_of,
    exp: Callable[[Array], Array] = np.exp,
    total: Callable[[Array, Bools], Array] = total_of,
) -> Array:
    """The masked softmax of rows in the array's own dtype (float32 or float64), exactly zero where nothing is allowed.

    ``top(x, mask)``, ``exp(t)`` and ``total(e, mask)`` replace its steps; what stands at a blocked score is not read.
    """
    allowed = np.any(mask, axis=-1, keepdims=True)
    largest = top(x, mask)
    e = np.where(mask, exp(np.where(mask, x - largest, 0).astype(x.dtype)), 0).astype(x.dtype)
    s = np.where(allowed, total(e, mask), 1).astype(x.dtype)
    return np.asarray(np.where(mask, e / s, 0).astype(x.dtype))


def over_all(x: Array) -> Array:
    """The softmax over every key of each row, whatever a mask says."""
    e = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return np.asarray((e / np.sum(e, axis=-1, keepdims=True, dtype=e.dtype)).astype(x.dtype))


def rows_of(function: Callable[[Array, Bools], Array]) -> Callable[[Array, Bools], Array]:
    """A forward pass that computes in :func:`wide` arrays and rounds the result once to the storage dtype."""
    return lambda scores, mask: np.asarray(function(wide(scores), mask).astype(scores.dtype))


def mutant(
    name: str,
    kind: str,
    story: str,
    forward: Forward,
    *,
    survivors: Mapping[str, str] | None = None,
    dtypes: tuple[str, ...] = DTYPES,
    **declared: Any,
) -> Mutant:
    """A mutant whose subject is made of a forward pass over NumPy arrays; ``declared`` goes to the subject."""
    subject = Subject(f"mutant.{name}", forward, adapter="mutant", dtypes=dtypes, **declared)
    return Mutant(name, kind, story, subject, survivors or {})
