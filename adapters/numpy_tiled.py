"""NumPy's tiled attention: an online softmax over tiles of keys for tiles of queries, forward and backward.

It computes as FlashAttention does (Dao et al. 2022): the forward pass sees each tile of keys once and rescales what it
has so far when the maximum grows; the backward pass computes the weights of each tile again, from the maximum and the
sum of the row or from their log-sum-exp, with ``<dO, O>`` for the mean. Whatever is blocked is selected away.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..spec.batch import Array, Bools
from ..spec.formats import DTYPES
from .attention import Attention, AttentionAnswer
from .numpy_heads import Heads, product, turned


@dataclass(frozen=True, eq=False)
class Statistics:
    """What the forward pass leaves of each row: the largest allowed score, the sum of the numerators and their
    log-sum-exp, each ``(B, G, N, 1)``, finite where a query has no allowed key; the output, ``(B, G, N, dv)``."""

    top: Array
    total: Array
    lse: Array
    output: Array


@dataclass(frozen=True)
class Tiled:
    """Tiled attention with tiles of ``tile`` keys and as many queries; ``lse``: the weights of the backward pass are
    ``exp(s - lse)`` instead of ``exp(s - max) / sum``.

    The methods are those of :class:`~hardmask.adapters.attention.Attention`, with the same shapes and dtypes.

    >>> q = k = v = np.ones((1, 1, 3, 2))
    >>> Tiled(2).forward(q, k, v, np.array([[[[True]], ]]), 0.5).output[0, 0]
    array([[1., 1.],
           [1., 1.],
           [1., 1.]])
    """

    tile: int
    lse: bool = False

    def __post_init__(self) -> None:
        if self.tile < 1:
            raise ValueError(f"A tile of {self.tile} keys holds none. Use a size of 1 or more.")

    def forward(self, q: Array, k: Array, v: Array, mask: Bools, scale: float) -> AttentionAnswer:
        """Output and ``valid``; the weights are never materialised."""
        with np.errstate(all="ignore"):
            h = Heads.of(q, k, v, mask)
            return h.answer(self._statistics(h, float(scale)).output, None, q.dtype)

    def vjp(
        self, q: Array, k: Array, v: Array, mask: Bools, scale: float, cotangent: Array
    ) -> tuple[Array, Array, Array]:
        """``(dq, dk, dv)``; the cotangent of a query without an allowed key is not read."""
        scale = float(scale)
        with np.errstate(all="ignore"):
            h = Heads.of(q, k, v, mask)
            rows = self._statistics(h, scale)
            g = np.where(h.valid, h.by_group(cotangent), 0).astype(h.q.dtype)
            delta = np.sum(g * rows.output, axis=-1, keepdims=True)
            d_q, d_k, d_v = np.zeros_like(h.q), np.zeros_like(h.k), np.zeros_like(h.v)
            for i in self._tiles(h.q):
                for j in self._tiles(h.k):
                    mask_ij = h.mask[:, :, i, j]
                    if not mask_ij.any():
                        continue
                    weights = self._weights(h, rows, i, j, scale)
                    d_weights = g[:, :, i] @ turned(h.v[:, :, j])
                    d_scores = np.where(mask_ij, scale * (weights * (d_weights - delta[:, :, i])), 0)
                    d_scores = d_scores.astype(weights.dtype)
                    d_q[:, :, i] += product(d_scores, h.k[:, :, j], mask_ij)
                    d_k[:, :, j] += product(turned(d_scores), h.q[:, :, i], turned(mask_ij))
                    d_v[:, :, j] += product(turned(weights), g[:, :, i], turned(mask_ij))
            return h.by_head(d_q).astype(q.dtype), d_k.astype(k.dtype), d_v.astype(v.dtype)

    def jvp(
        self, q: Array, k: Array, v: Array, mask: Bools, scale: float, tangents: tuple[Array, Array, Array]
    ) -> Array:
        """The tangent of the output, in two more passes over the keys: the mean of the scores' tangents comes first."""
        scale = float(scale)
        with np.errstate(all="ignore"):
            h, moved = Heads.of(q, k, v, mask), Heads.of(*tangents, mask)
            rows = self._statistics(h, scale)
            tangent = np.zeros_like(rows.output)
            for i in self._tiles(h.q):
                mean = np.zeros_like(rows.top[:, :, i])
                for j in self._tiles(h.k):
                    mean = mean + np.sum(
                        self._weights(h, rows, i, j, scale) * _moved_scores(h, moved, i, j, scale),
                        axis=-1,
                        keepdims=True,
                    )
                for j in self._tiles(h.k):
                    mask_ij = h.mask[:, :, i, j]
                    weights = self._weights(h, rows, i, j, scale)
                    d_weights = np.where(mask_ij, weights * (_moved_scores(h, moved, i, j, scale) - mean), 0)
                    tangent[:, :, i] += product(d_weights.astype(weights.dtype), h.v[:, :, j], mask_ij)
                    tangent[:, :, i] += product(weights, moved.v[:, :, j], mask_ij)
            return h.by_head(tangent).astype(q.dtype)

    def _tiles(self, x: Array) -> Iterator[slice]:
        for start in range(0, x.shape[2], self.tile):
            yield slice(start, start + self.tile)

    def _statistics(self, h: Heads, scale: float) -> Statistics:
        shape = (*h.q.shape[:3], 1)
        tops, totals = np.zeros(shape, h.q.dtype), np.ones(shape, h.q.dtype)
        output = np.zeros((*h.q.shape[:3], h.v.shape[3]), h.q.dtype)
        for i in self._tiles(h.q):
            top = np.full_like(tops[:, :, i], -np.inf)
            total = np.zeros_like(top)
            sums = np.zeros_like(output[:, :, i])
            for j in self._tiles(h.k):
                mask = h.mask[:, :, i, j]
                if not mask.any():
                    continue
                scores = _scores(h, i, j, scale)
                new = np.maximum(top, np.max(np.where(mask, scores, -np.inf), axis=-1, keepdims=True))
                new = new.astype(top.dtype)
                # A query that has seen no allowed key has nothing to rescale; -inf - -inf would be NaN.
                shift = np.where(new == -np.inf, 0, new).astype(top.dtype)
                factor = np.exp(top - shift)
                e = np.where(mask, np.exp(np.where(mask, scores - shift, 0)), 0).astype(top.dtype)
                sums = sums * factor + product(e, h.v[:, :, j], mask)
                total = total * factor + np.sum(e, axis=-1, keepdims=True)
                top = new
            seen = h.valid[:, :, i]
            tops[:, :, i] = np.where(seen, top, 0)
            totals[:, :, i] = np.where(seen, total, 1)
            output[:, :, i] = np.where(seen, sums / total, 0)
        return Statistics(tops, totals, tops + np.log(totals), output)

    def _weights(self, h: Heads, rows: Statistics, i: slice, j: slice, scale: float) -> Array:
        mask, scores = h.mask[:, :, i, j], _scores(h, i, j, scale)
        if self.lse:
            weights = np.exp(np.where(mask, scores - rows.lse[:, :, i], 0))
        else:
            weights = np.exp(np.where(mask, scores - rows.top[:, :, i], 0)) / rows.total[:, :, i]
        return np.where(mask, weights, 0).astype(h.q.dtype)


def _scores(h: Heads, i: slice, j: slice, scale: float) -> Array:
    return np.asarray(scale * (h.q[:, :, i] @ turned(h.k[:, :, j])))


def _moved_scores(h: Heads, moved: Heads, i: slice, j: slice, scale: float) -> Array:
    """The tangents of the scores of a tile, 0 where nothing is allowed."""
    left, right = moved.q[:, :, i] @ turned(h.k[:, :, j]), h.q[:, :, i] @ turned(moved.k[:, :, j])
    return np.where(h.mask[:, :, i, j], scale * (left + right), 0).astype(h.q.dtype)


def tiled(tile: int, *, rows: bool = True, **declared: Any) -> Attention:
    """The tiled reference with tiles of that size as a subject; ``declared`` are fields of Attention.

    Raises ValueError for a size below 1.

    >>> tiled(5).id, tiled(5).tier_for("vjp", "bfloat16")
    ('numpy.attention-tiled[5]', 'fused')
    """
    made = Tiled(tile)
    fields: dict[str, Any] = {
        "adapter": "numpy",
        "path": f"tiles of {tile}",
        "role": "reference",
        "dtypes": DTYPES,
        "contract": "zero+valid",
        "tier": "fused",
        "promises": frozenset({"isolation", "allowed-nan-visible"}),
        "group": "numpy.attention",
        "kernel": f"Tiles of {tile} queries by {tile} keys, written in NumPy.",
        "rows": {"contract": "zero", "tier": "online"} if rows else False,
        **declared,
    }
    return Attention(f"numpy.attention-tiled[{tile}]", made.forward, made.vjp, made.jvp, **fields)
