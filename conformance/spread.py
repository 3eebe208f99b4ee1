"""How errors are distributed: signed, in ULPs, counted in bins that merge exactly.

A ULP at a value is the distance of neighbouring numbers of the format there: ``2^(e - p + 1)`` for ``2^e <= |x| <
2^(e + 1)``, and the smallest positive number below the normal ones. The bins are sixteenths of a ULP up to 2, then four
equal steps for each doubling up to 2^64, then all that is larger. They mirror at 0; errors of exactly 0 have a bin of
their own. An error falls into the first bin whose edge farther from 0 reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..spec.batch import Floats
from ..spec.formats import FORMATS

FINE = 16
"""Bins of one ULP, up to 2."""

STEPS = 4
"""Bins of each doubling above."""

OCTAVES = 63
"""Doublings from 2 on that have bins."""

EDGES: Floats = np.array(
    [k / FINE for k in range(2 * FINE + 1)]
    + [2.0**o * (1 + s / STEPS) for o in range(1, OCTAVES + 1) for s in range(1, STEPS + 1)]
    + [np.inf]
)
"""The edges of the bins at and above 0, the first of which is the bin of 0 itself."""

CUTS = 3 * len(EDGES) - 2
"""Places where the line of signed errors, or that of their sizes, is cut into bins."""

PERCENTAGES = (0.1, 1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0, 99.9)

LARGEST = float(np.finfo(np.float64).max)

NOT_COUNTED = len(EDGES)
"""The code of an entry that is not compared with a value that may be rounded."""

UNUSABLE = NOT_COUNTED + 1
"""The code of an entry that is no finite number."""

Codes16 = npt.NDArray[np.int16]


def ulp(true: Floats, dtype: str) -> Floats:
    """The distance of neighbouring numbers of a format at each true value.

    >>> ulp(np.array([1.0, 0.75, 0.0]), "float16").tolist()
    [0.0009765625, 0.00048828125, 5.960464477539063e-08]
    """
    form = FORMATS[dtype]
    exponents = np.where(true == 0.0, form.emin, np.maximum(np.frexp(true)[1] - 1, form.emin))
    spacing: Floats = np.ldexp(1.0, exponents - form.precision + 1)
    return spacing


@dataclass(frozen=True, eq=False)
class Entries:
    """The signed errors of the entries of some rows, in ULPs, with the bin of each: shape ``(R, n)``."""

    ulps: Floats
    codes: Codes16

    @classmethod
    def of(cls, signed: Floats, true: Floats, counted: npt.NDArray[np.bool_], dtype: str) -> Entries:
        """From signed errors and true values; ``counted`` selects the entries that may be rounded."""
        finite = np.isfinite(signed)
        with np.errstate(invalid="ignore", over="ignore"):
            ulps = np.clip(signed / ulp(true, dtype), -LARGEST, LARGEST)
        size = np.searchsorted(EDGES, np.abs(np.where(finite, ulps, 0.0))).astype(np.int16)
        codes = np.where(ulps < 0.0, -size, size)
        codes[~finite] = UNUSABLE
        codes[~counted] = NOT_COUNTED
        return cls(ulps, codes)


@dataclass
class Spread:
    """Counts of entries by bin, merged over rows and batches.

    ``counts`` is keyed by the place of the bin's edge in :data:`EDGES`, negative for negative errors. ``squares``: the
    sum over rows of the square of how many entries they have.
    """

    entries: int = 0
    unusable: int = 0
    rows: int = 0
    squares: int = 0
    least: float = np.inf
    largest: float = -np.inf
    counts: dict[int, int] = field(default_factory=dict)

    @classmethod
    def over(cls, entries: Entries, rows: npt.NDArray[np.int64]) -> Spread:
        """The entries of some of the rows.

        >>> one = np.ones((1, 3))
        >>> found = Entries.of(np.array([[0.0, 2.0**-24, np.nan]]), one, one > 0.0, "float32")
        >>> Spread.over(found, np.array([0])).counts
        {0: 1, 8: 1}
        """
        codes, ulps = entries.codes[rows], entries.ulps[rows]
        used = codes < NOT_COUNTED
        found = codes[used]
        sizes = (codes != NOT_COUNTED).sum(axis=1)
        values, counts = np.unique(found, return_counts=True)
        unusable = int((codes == UNUSABLE).sum())
        return cls(
            len(found) + unusable,
            unusable,
            int((sizes > 0).sum()),
            int((sizes**2).sum()),
            float(ulps[used].min(initial=np.inf)),
            float(ulps[used].max(initial=-np.inf)),
            dict(zip(values.tolist(), counts.tolist(), strict=True)),
        )

    def merge(self, other: Spread) -> None:
        """Add other entries."""
        self.entries += other.entries
        self.unusable += other.unusable
        self.rows += other.rows
        self.squares += other.squares
        self.least, self.largest = min(self.least, other.least), max(self.largest, other.largest)
        for code, count in other.counts.items():
            self.counts[code] = self.counts.get(code, 0) + count

    @property
    def effective_rows(self) -> float:
        """How many rows with one number of entries tell as much: errors within a row depend on each other (Kish)."""
        return self.entries**2 / self.squares if self.squares else 0.0

    @property
    def by_edge(self) -> dict[str, int]:
        """The counts keyed by the edges themselves, from the most negative error to the largest."""
        return {_edge(code): count for code, count in sorted(self.counts.items())}

    @property
    def quantiles(self) -> dict[str, float]:
        """The quantiles of the finite errors at :data:`PERCENTAGES`, linear within a bin; empty without any.

        >>> Spread(4, 0, 1, 16, -0.5, 0.5, {-8: 1, 0: 2, 8: 1}).quantiles["50"]
        0.0
        """
        return quantiles(self.counts, self.least, self.largest)


def quantiles(counts: Mapping[int, int], least: float, largest: float) -> dict[str, float]:
    """See :attr:`Spread.quantiles`."""
    ordered = sorted(counts.items())
    total = sum(counts.values())
    found: dict[str, float] = {}
    for percentage in PERCENTAGES if total else ():
        rank, below = percentage / 100.0 * total, 0
        for code, count in ordered:
            if below + count >= rank:
                low, high = _interval(code, least, largest)
                found[f"{percentage:g}"] = low + (high - low) * ((rank - below) / count)
                break
            below += count
    return found


def _interval(code: int, least: float, largest: float) -> tuple[float, float]:
    """The bin from its lower to its upper edge, no farther than the extreme errors."""
    if code == 0:
        return 0.0, 0.0
    near, far = float(EDGES[abs(code) - 1]), float(EDGES[abs(code)])
    low, high = (near, far) if code > 0 else (-far, -near)
    return max(low, least), min(high, largest)


def bin_of(edge: str) -> tuple[float, float] | None:
    """The bounds of a bin by its key, the edge that lies farther from 0; None where it is no such edge.

    >>> bin_of("0.125"), bin_of("-2.5"), bin_of("0"), bin_of("0.3")
    ((0.0625, 0.125), (-2.5, -2.0), (0.0, 0.0), None)
    """
    try:
        far = float(edge)
    except ValueError:
        return None
    place = int(np.searchsorted(EDGES, abs(far)))
    if place == len(EDGES) or EDGES[place] != abs(far):
        return None
    near = float(EDGES[max(place - 1, 0)])
    return (far, -near) if far < 0.0 else (near, far)


def _edge(code: int) -> str:
    edge = float(np.copysign(EDGES[abs(code)], code)) if code else 0.0
    return f"{edge:.17g}"
