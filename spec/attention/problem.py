"""One attention problem: the unit of work that is handed to an attention kernel and to its oracle."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from ..batch import Array, Bools, Floats
from ..formats import FORMATS, Format

Alignment = Literal["top-left", "bottom-right"]


@dataclass(frozen=True, eq=False)
class Problem:
    """Queries, keys and values of ``B`` batch entries and ``H`` heads, in one storage dtype, with a mask and vectors.

    - ``q``: ``(B, H, Lq, d)``; ``k``: ``(B, G, Lk, d)``; ``v``: ``(B, G, Lk, dv)``, where ``G`` divides ``H`` and head
      ``h`` reads group ``h // (H // G)``. Any length may be 0. Arrays may have any strides.
    - ``mask``: Boolean, True = allowed, four axes, of a shape that broadcasts to ``(B, H, Lq, Lk)``.
    - ``scale``: a float64 number that multiplies ``q k^T``.
    - ``cotangent``: that of the output, ``(B, H, Lq, dv)``; ``tangents``: those of ``q``, ``k``, ``v``, in their
      shapes.
    - ``causal``: the alignment, where the mask is exactly that of a causal flag; ``lengths``: whether the mask allows
      exactly the first keys of each batch entry, their number being the same for all heads and queries.
    - ``family`` names what the problem shows.
    """

    key: str
    family: str
    dtype: str
    q: Array
    k: Array
    v: Array
    mask: Bools
    scale: float
    cotangent: Array
    tangents: tuple[Array, Array, Array]
    causal: Alignment | None = None
    lengths: bool = False

    @property
    def format(self) -> Format:
        """The storage format."""
        return FORMATS[self.dtype]

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int, int]:
        """``(B, H, G, Lq, Lk, d, dv)``."""
        (batch, heads, queries, width), (_, groups, keys, _) = self.q.shape, self.k.shape
        return batch, heads, groups, queries, keys, width, self.v.shape[3]

    @cached_property
    def full_mask(self) -> Bools:
        """The mask in its full shape ``(B, H, Lq, Lk)``, read-only."""
        batch, heads, _, queries, keys, _, _ = self.sizes
        return np.broadcast_to(self.mask, (batch, heads, queries, keys))

    @cached_property
    def empty(self) -> Bools:
        """Queries without an allowed key, ``(B, H, Lq)``, decided from the mask alone."""
        return np.asarray(~np.any(self.full_mask, axis=-1))

    @cached_property
    def unseen(self) -> Bools:
        """Keys that no query of their group may see, ``(B, G, Lk)``."""
        batch, heads, groups, queries, keys, _, _ = self.sizes
        grouped = self.full_mask.reshape(batch, groups, heads // groups * queries, keys)
        return np.asarray(~np.any(grouped, axis=2))

    def wide(self, name: str) -> Floats:
        """``q``, ``k``, ``v`` or ``cotangent``, exactly, in float64."""
        array: Array = getattr(self, name)
        return array.astype(np.float64)
