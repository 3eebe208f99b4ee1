"""Many rows at once: the unit of work that is handed to a subject and to the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from .formats import FORMATS, Format
from .layout import Layout

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """A struct of arrays of ``R`` rows over ``n`` keys, all in one storage dtype.

    ``scores``, ``cotangents`` (g) and ``tangents`` (u) have shape ``(R, n)`` and the dtype named by ``dtype``; ``mask``
    is Boolean, True = allowed. ``family[r]`` indexes ``families``. Rows that belong together (a row and its shifted
    copy) are listed in ``relations``: name -> integer array of shape ``(k, 2)``; for a permuted copy
    ``permutation[r]`` tells where each key of the first row went. A batch that is ``forward_only`` is not meant for
    derivatives. With a ``layout`` the rows are handed over as an array of any rank, to subjects that take one.
    """

    key: str
    dtype: str
    scores: Array
    mask: Bools
    cotangents: Array
    tangents: Array
    family: npt.NDArray[np.int64]
    families: tuple[str, ...]
    relations: Mapping[str, npt.NDArray[np.int64]] = field(default_factory=dict)
    permutation: npt.NDArray[np.int64] | None = None
    forward_only: bool = False
    layout: Layout | None = None

    @property
    def format(self) -> Format:
        """The storage format."""
        return FORMATS[self.dtype]

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, keys)``."""
        return self.scores.shape[0], self.scores.shape[1]

    @cached_property
    def scores64(self) -> Floats:
        """The scores, exactly, in float64."""
        return self.scores.astype(np.float64)

    @cached_property
    def members(self) -> list[npt.NDArray[np.int64]]:
        """The rows of each family, in the order of ``families``."""
        return [np.flatnonzero(self.family == code) for code in range(len(self.families))]

    @cached_property
    def empty(self) -> Bools:
        """Rows without an allowed key, decided from the mask alone."""
        return ~np.any(self.mask, axis=1)

    @cached_property
    def real(self) -> Bools:
        """Rows that meet the theorems' hypothesis: every allowed score and every vector entry is a real number."""
        allowed = np.isfinite(self.scores64) | ~self.mask
        vectors = np.isfinite(self.cotangents.astype(np.float64)) & np.isfinite(self.tangents.astype(np.float64))
        return np.all(allowed & vectors, axis=1)
