"""Matrices for residuals about several rows."""

from __future__ import annotations

from typing import Any

from .row import Row


def rotations(row: Row, at_most: int | None = None) -> tuple[list[list[Any]], list[list[bool]]]:
    """Scores and masks of the ``n x n`` matrix whose ``r``-th row is the row rotated by ``r`` keys.

    ``at_most`` keeps the first rows only. Rotating gives rows with different masks and scores; as the proofs run over
    all masks, so do the rows of the matrix.
    """
    turns = [[(k + r) % row.n for k in range(row.n)] for r in range(row.n)][:at_most]
    return [[row.x[k] for k in turn] for turn in turns], [[row.mask[k] for k in turn] for turn in turns]
