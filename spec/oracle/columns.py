"""How the fast engines walk over a batch: a few rows at a time, keys first.

A chunk is transposed to shape ``(keys, rows)``, so that what belongs to a row (its maximum, its sum) broadcasts along
the contiguous axis and a sum over the keys adds whole contiguous blocks, also when the rows are short. A chunk is
small enough for the second-level cache, which is worth a factor of two to four.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..batch import Array, Bools, Floats

CHUNK = 8192


def chunks(rows: int, keys: int, elements: int = CHUNK) -> Iterator[slice]:
    """Slices that cover ``range(rows)``, each of about ``elements`` elements.

    >>> list(chunks(5, 2, elements=4))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, elements // max(1, keys))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def columns(rows: Array) -> Array:
    """A contiguous copy of ``rows`` (shape ``(r, n)``) with shape ``(n, r)``."""
    return np.ascontiguousarray(rows.T)


def masked(values: Floats, allowed: Bools, fill: float) -> Floats:
    """``values`` at allowed keys, ``fill`` at blocked ones: a blocked value is never read."""
    return np.where(allowed, values, fill)


def row_maximum(scores: Floats) -> Floats:
    """The largest score of each column, 0 for a column of ``-inf`` only (a row without an allowed key)."""
    top: Floats = scores.max(axis=0, initial=-np.inf)
    top[top == -np.inf] = 0.0
    return top
