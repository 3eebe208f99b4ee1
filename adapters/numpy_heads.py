"""What both NumPy references of attention are made of: heads side by side, and products in which blocked keys are not
read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..spec.batch import Array, Bools
from .attention import AttentionAnswer


def wide(x: Array) -> Array:
    """The array in the format that is computed in: float32 for the halves, its own otherwise."""
    return x if x.dtype in (np.float64, np.float32) else x.astype(np.float32)


def turned(x: Array) -> Array:
    """The last two axes exchanged."""
    return np.swapaxes(x, -1, -2)


def product(a: Array, b: Array, allowed: Bools) -> Array:
    """``a b``, to which row ``j`` of ``b`` contributes only where ``allowed[..., i, j]``.

    ``a``, which must be 0 where nothing is allowed: ``(..., m, n)``; ``b``: ``(..., n, c)``; ``allowed``: of the shape
    of ``a``. A matrix product of finite numbers needs no selection. The rows of ``b`` that hold NaN or infinity are
    added one by one, since 0 times those would be NaN.

    >>> product(np.array([[0.0, 2.0]]), np.array([[np.nan], [3.0]]), np.array([[False, True]]))
    array([[6.]])
    >>> product(np.array([[0.0, 2.0]]), np.array([[np.nan], [3.0]]), np.array([[True, True]]))
    array([[nan]])
    """
    finite = np.isfinite(b)
    if finite.all():
        return np.asarray(a @ b)
    out = np.asarray(a @ np.where(finite, b, 0).astype(b.dtype))
    rest = np.where(finite, 0, b).astype(b.dtype)
    read: Bools = np.asarray(~finite.all(axis=-1) & allowed.any(axis=-2))
    for j in np.flatnonzero(read.any(axis=tuple(range(read.ndim - 1)))):
        out = out + np.where(allowed[..., j, None], a[..., j, None] * rest[..., j, None, :], 0).astype(out.dtype)
    return out


@dataclass(frozen=True, eq=False)
class Heads:
    """One attention with all queries that read the keys of one group side by side, in the format computed in.

    ``q``: ``(B, G, N, d)`` with ``N = H / G * Lq``; ``k``: ``(B, G, Lk, d)``; ``v``: ``(B, G, Lk, dv)``; ``mask``:
    ``(B, G, N, Lk)``; ``valid``: ``(B, G, N, 1)``, whether a query has an allowed key. Sums over the heads of a group
    are thereby sums over queries.
    """

    q: Array
    k: Array
    v: Array
    mask: Bools
    valid: Bools
    heads: int
    queries: int

    @classmethod
    def of(cls, q: Array, k: Array, v: Array, mask: Bools) -> Heads:
        """From the arrays of a problem: ``(B, H, Lq, d)``, ``(B, G, Lk, d)``, ``(B, G, Lk, dv)`` and a mask that
        broadcasts to ``(B, H, Lq, Lk)``.

        >>> mask = np.ones((1, 1, 1, 1), bool)
        >>> Heads.of(np.zeros((2, 6, 5, 4)), np.zeros((2, 3, 7, 4)), np.zeros((2, 3, 7, 4)), mask).q.shape
        (2, 3, 10, 4)
        """
        batch, heads, queries, width = q.shape
        groups, keys = k.shape[1:3]
        rows = heads // max(groups, 1) * queries
        full = np.broadcast_to(mask, (batch, heads, queries, keys)).reshape(batch, groups, rows, keys)
        valid: Bools = np.asarray(full.any(axis=-1, keepdims=True))
        return cls(wide(q).reshape(batch, groups, rows, width), wide(k), wide(v), full, valid, heads, queries)

    def by_group(self, x: Array) -> Array:
        """What belongs to queries, ``(B, H, Lq, c)``, as ``(B, G, N, c)`` in the format computed in."""
        return wide(x).reshape(*self.q.shape[:3], x.shape[3])

    def by_head(self, x: Array) -> Array:
        """What belongs to queries, ``(B, G, N, c)``, as ``(B, H, Lq, c)``."""
        return x.reshape(x.shape[0], self.heads, self.queries, x.shape[3])

    def answer(self, output: Array, weights: Array | None, dtype: np.dtype[np.generic]) -> AttentionAnswer:
        """The answer of ``forward`` in its storage dtype, from arrays of the shape ``(B, G, N, …)``."""
        return AttentionAnswer(
            self.by_head(output).astype(dtype),
            None if weights is None else self.by_head(weights).astype(dtype),
            self.by_head(self.valid)[..., 0],
        )
