"""What to enumerate: the request, the sample of first scores, and how the work is cut into pieces."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...spec.formats import DTYPES, HALVES
from .kinds import KINDS, PARTS, Kind, Part, finite_scores

PIECE = 64
"""First scores per piece of work: some four million rows of a pair, less than a second for most subjects."""

SHORT = {1: 8192, 3: 64}
"""First scores per call where rows of several masks share a call, by the length of the row."""


@dataclass(frozen=True)
class Enumeration:
    """Which 16-bit dtypes to enumerate, which parts, and which fraction of the first scores.

    ``checkpoint`` names a file that the run writes to and resumes from. ``jobs`` is the number of processes. With
    ``alone`` nothing but the sweeps is run.

    Raises ValueError, with a sentence, for a value that is not one of those offered.
    """

    dtypes: tuple[str, ...]
    fraction: float = 1.0
    parts: tuple[Part, ...] = PARTS
    checkpoint: str | None = None
    jobs: int = 1
    alone: bool = True

    def __post_init__(self) -> None:
        for dtype in self.dtypes:
            if dtype not in HALVES:
                offered = " and ".join(d for d in DTYPES if d in HALVES)
                raise ValueError(
                    f"'{dtype}' cannot be enumerated: only the 16-bit formats can, {offered}. Judge other dtypes "
                    "without --exhaustive."
                )
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"A fraction is above 0 and at most 1; {self.fraction:g} is not.")
        for part in self.parts:
            if part not in PARTS:
                raise ValueError(f"There is no part '{part}' of a sweep. Choose from: {', '.join(PARTS)}.")
        if self.jobs < 1:
            raise ValueError(f"At least one process has to do the work; {self.jobs} is none.")

    @property
    def record(self) -> dict[str, Any]:
        """What was asked for, for the certificate."""
        return {"dtypes": list(self.dtypes), "fraction": self.fraction, "parts": list(self.parts)}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of rows of the parts asked for."""
        return tuple(kind for kind in KINDS if kind.part in self.parts)


@dataclass(frozen=True, eq=False)
class Sample:
    """The first scores of a sweep, as ascending indices into the finite scores of the format."""

    dtype: str
    seed: int
    indices: npt.NDArray[np.int64]
    of: int

    @property
    def sha256(self) -> str:
        """The digest of the 16-bit codes of the first scores, little-endian, in ascending order of value."""
        codes = finite_scores(self.dtype)[self.indices].view(np.uint16)
        return hashlib.sha256(codes.astype("<u2").tobytes()).hexdigest()

    @property
    def words(self) -> str:
        """What was taken, for the certificate."""
        if len(self.indices) == self.of:
            return f"all {self.of:,} first scores"
        return f"{len(self.indices):,} of {self.of:,} first scores, seed {self.seed}, sample sha256 {self.sha256}"

    def pieces(self) -> list[npt.NDArray[np.int64]]:
        """The indices in pieces of :data:`PIECE`."""
        return [self.indices[k : k + PIECE] for k in range(0, len(self.indices), PIECE)]


def sample(dtype: str, fraction: float, seed: int) -> Sample:
    """The first scores to take: all of them, or a seeded choice without repetition, at least one.

    >>> sample("float16", 0.01, seed=0).words[:34]
    '635 of 63,488 first scores, seed 0'
    """
    of = len(finite_scores(dtype))
    indices = np.arange(of)
    if fraction < 1.0:
        chosen = np.random.default_rng([seed, DTYPES.index(dtype)]).choice(of, max(1, round(of * fraction)), False)
        indices = np.sort(chosen)
    return Sample(dtype, seed, indices, of)
