"""Mutants whose rows depend on what they should not: on their neighbours, on the batch, on the call before."""

from __future__ import annotations

import numpy as np

from ...adapters.subject import Array, Bools
from .kit import Forward, mutant, rows_of, weights_of
from .mutant import Mutant


def _shared_top(size: int) -> Forward:
    """Every ``size`` rows share the largest of their maxima; 0 means the whole batch."""

    def top(x: Array, mask: Bools) -> Array:
        tops = np.where(mask, x, -np.inf).max(axis=1, initial=-np.inf)
        starts = np.arange(0, len(tops), size or max(len(tops), 1))
        shared = np.repeat(np.maximum.reduceat(tops, starts), np.diff([*starts, len(tops)])) if len(tops) else tops
        return np.asarray(np.where(np.isfinite(shared), shared, 0).astype(x.dtype)[:, None])

    return rows_of(lambda x, m: weights_of(x, m, top=top))


def _whole_batch(x: Array, mask: Bools) -> Array:
    """Numerators are divided by the sum over the batch instead of the row's own."""
    return weights_of(x, mask, total=lambda e, m: np.full((len(e), 1), e.sum(dtype=e.dtype)))


def _other_axis(x: Array, mask: Bools) -> Array:
    return weights_of(x.T, mask.T).T


def _centred_by_batch(x: Array, mask: Bools) -> Array:
    """The mean of the batch is subtracted first, in the precision of the scores."""
    finite = np.where(mask & np.isfinite(x), x, 0)
    return weights_of(x - np.float64(finite.sum(dtype=np.float64) / max(finite.size, 1)).astype(x.dtype), mask)


def _neighbour(x: Array, mask: Bools) -> Array:
    """The first weight of each row is added to the one before it in memory, the last of the row above."""
    w = weights_of(x, mask)
    if x.shape[1]:
        w[:-1, -1] = np.where(mask[:-1, -1], w[:-1, -1] + w[1:, 0], w[:-1, -1])
    return w


def _rows_left_out(x: Array, mask: Bools) -> Array:
    """Rows beyond the last multiple of 8 are never written."""
    w = weights_of(x, mask)
    w[len(w) - len(w) % 8 :] = 0
    return w


def _odd_row_left_out(x: Array, mask: Bools) -> Array:
    """Rows are taken in twos, and of an odd number of them the last is never written."""
    w = weights_of(x, mask)
    w[len(w) - len(w) % 2 :] = w[:1] if len(w) == 1 else 0
    return w


def _last_row_stale(x: Array, mask: Bools) -> Array:
    w = weights_of(x, mask)
    w[-1:] = w[-2:-1] if len(w) > 1 else w[-1:]
    return w


class _Buffer:
    """A forward pass that adds to what its last call of the same shape left in the buffer."""

    def __init__(self) -> None:
        self.kept: dict[tuple[object, ...], Array] = {}

    def __call__(self, scores: Array, mask: Bools) -> Array:
        w = rows_of(weights_of)(scores, mask)
        key = (scores.dtype, scores.shape)
        before = self.kept.get(key)
        self.kept[key] = w
        return w if before is None else (w + before).astype(w.dtype)


class _Memory:
    """A forward pass that keeps its last answer and gives half of it when the same rows come again."""

    def __init__(self) -> None:
        self.last: tuple[bytes, bytes] | None = None

    def __call__(self, scores: Array, mask: Bools) -> Array:
        w = rows_of(weights_of)(scores, mask)
        asked = scores.tobytes(), mask.tobytes()
        again = asked == self.last
        self.last = asked
        return (w * w.dtype.type(0.5)).astype(w.dtype) if again else w


class _CachedByScores:
    """A forward pass that remembers the weights of the last scores and forgets that the mask may have changed."""

    def __init__(self) -> None:
        self.last: tuple[bytes, Array] | None = None

    def __call__(self, scores: Array, mask: Bools) -> Array:
        asked = scores.tobytes()
        if self.last is None or self.last[0] != asked or self.last[1].shape != scores.shape:
            self.last = asked, rows_of(weights_of)(scores, mask)
        return self.last[1].copy()


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        mutant("maximum-of-batch", "O", "Shifts every row by the maximum of the batch.", _shared_top(0)),
        mutant("maximum-of-four-rows", "O", "Shifts four neighbouring rows by one maximum.", _shared_top(4)),
        mutant("sum-of-batch", "O", "Divides by the sum over the batch.", rows_of(_whole_batch)),
        mutant(
            "mean-of-batch", "O", "Subtracts the mean of the batch, with a rounding error.", rows_of(_centred_by_batch)
        ),
        mutant("other-axis", "I", "Normalises over the rows of the batch instead of the keys.", rows_of(_other_axis)),
        mutant(
            "next-row-leaks", "O", "Adds the first weight of the next row to the last of this one.", rows_of(_neighbour)
        ),
        mutant("rows-left-out", "O", "Never writes the rows beyond a multiple of 8.", rows_of(_rows_left_out)),
        mutant("odd-row-left-out", "O", "Takes rows in twos and forgets the odd one.", rows_of(_odd_row_left_out)),
        mutant("last-row-stale", "O", "Leaves the row before in the last row of the batch.", rows_of(_last_row_stale)),
        mutant("buffer-not-cleared", "O", "Adds to what the call before left in the buffer.", _Buffer()),
        mutant("second-call", "O", "Halves the weights when the same rows come a second time.", _Memory()),
        mutant(
            "cached-by-scores",
            "O",
            "Remembers the last scores and forgets that the mask may change.",
            _CachedByScores(),
        ),
    ]
