"""Look up the codes that a subject returned: what is correctly rounded, what is certainly accepted, what is open.

Scores ascend, so the differences do too, and the outputs that must be exactly 0 or 1 are slices at both ends. Only the
codes in between are looked up.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ...spec.batch import Bools, Floats
from ...spec.contracts import Contract
from ...spec.formats import FORMATS
from ...spec.rounding import RoundingModel
from ...spec.rounding.thresholds import (
    Codes,
    Intervals,
    accepted_products,
    accepted_weights,
    correct_products,
    correct_weights,
)

Indices = npt.NDArray[np.int64]
MAGNITUDE = np.uint16(0x7FFF)
SIGN = np.uint16(0x8000)


@dataclass
class Rounding:
    """How many outputs at one key are not the correctly rounded number, and the largest distance to it in codes.

    ``finite``: the first code that is not finite. NaN and infinities have no distance.
    """

    finite: int
    count: int = 0
    distance: int = 0

    def note(self, correct: Intervals, codes: Codes, d: Floats) -> None:
        """Add outputs that are not correctly rounded."""
        self.count += len(codes)
        finite = (codes & MAGNITUDE) < self.finite
        if not finite.all():
            codes, d = codes[finite], d[finite]
        if not len(codes):
            return
        ordered = codes.astype(np.int64)
        number = (ordered & 0x7FFF) <= correct.top
        ordered = np.where(ordered >= 0x8000, 0x8000 - ordered, ordered)
        # Only what is farther than the largest distance so far needs the search for its correct code.
        lower = correct.above[np.clip(ordered - self.distance, 0, correct.top)]
        upper = correct.upto[np.clip(ordered + self.distance, 0, correct.top)]
        if correct.upto[0] > correct.upto[correct.top]:
            lower = correct.above[np.clip(ordered + self.distance, 0, correct.top)]
            upper = correct.upto[np.clip(ordered - self.distance, 0, correct.top)]
        far = ~number | (ordered < 0) | (d <= lower) | (d > upper)
        if far.any():
            apart = np.abs(ordered[far] - correct.expected(d[far]))
            self.distance = max(self.distance, int(apart.max()))


@dataclass
class PairFilter:
    """The filter for rows of two allowed scores under one rounding model.

    ``partners``: the second scores, ascending, exact in float64. ``own``: the outputs are those of the VJP, of a
    cotangent that is 1 at this key and 0 at the other one; None for the weights.
    """

    model: RoundingModel
    partners: Floats
    own: int | None = None
    rounding: tuple[Rounding, Rounding] = field(init=False)

    def __post_init__(self) -> None:
        name = self.model.storage.name
        self.rounding = Rounding(infinity_code(name)), Rounding(infinity_code(name))
        if self.own is None:
            self._correct = correct_weights(name)
            self._all_accepted = accepted_weights(self.model)
        else:
            self._correct = correct_products(name)

    def open_rows(self, first: float, codes: Codes) -> Indices:
        """The rows, ascending, whose codes the tables do not certainly accept; ``codes`` has shape ``(R, 2)``."""
        rising = self.partners - first  # the score at key 1 minus the one at key 0
        if self.own is None:
            open_0 = self._weights(0, codes[:, 0], rising, -1.0)
            open_1 = self._weights(1, codes[:, 1], rising, 1.0)
        else:
            open_0 = self._products(0, codes[:, 0], rising)
            open_1 = self._products(1, codes[:, 1], rising)
        return np.union1d(open_0, open_1) if len(open_0) and len(open_1) else np.concatenate([open_0, open_1])

    def _weights(self, key: int, column: Codes, rising: Floats, sign: float) -> Indices:
        c, table = np.ascontiguousarray(column), self._correct
        low, high = table.upto[0], table.above[table.top]
        if sign > 0:
            start, stop = np.searchsorted(rising, [low, high], side="right")
            zeros, ones = slice(0, start), slice(stop, None)
        else:
            start, stop = np.searchsorted(rising, [-high, -low], side="left")
            zeros, ones = slice(stop, None), slice(0, start)
        middle = slice(start, stop)
        wrong = [
            np.flatnonzero(c[zeros] & MAGNITUDE) + (zeros.start or 0),
            np.flatnonzero(c[ones] != table.top) + (ones.start or 0),
            np.flatnonzero(~table.hold(c[middle], sign * rising[middle])) + start,
        ]
        rows = np.sort(np.concatenate(wrong))
        found, d = c[rows], sign * rising[rows]
        self.rounding[key].note(table, found, d)
        return rows[~self._all_accepted.hold(found, d)]

    def _products(self, key: int, column: Codes, rising: Floats) -> Indices:
        c, table = np.ascontiguousarray(column), self._correct
        # Beyond ``above[0]`` the product rounds to 0.
        start, stop = np.searchsorted(rising, -table.above[0], "left"), np.searchsorted(rising, table.above[0], "right")
        if key != self.own:
            c = c ^ SIGN
        distance = np.abs(rising)
        middle = slice(start, stop)
        wrong = [
            np.flatnonzero(c[:start] & MAGNITUDE),
            np.flatnonzero(~table.hold(c[middle], distance[middle])) + start,
            np.flatnonzero(c[stop:] & MAGNITUDE) + stop,
        ]
        rows = np.concatenate(wrong)
        found, d = c[rows], distance[rows]
        self.rounding[key].note(table, found, d)
        mine = key == self.own
        # The own score is the larger one where the difference has the sign of its key.
        positive = (rising[rows] > 0.0) == (self.own == 1)
        held = np.where(
            positive,
            accepted_products(self.model, mine, True).hold(found, d),
            accepted_products(self.model, mine, False).hold(found, d),
        )
        return rows[~held]


def one_code(dtype: str) -> int:
    """The code of 1."""
    return int(np.ones(1, FORMATS[dtype].dtype).view(np.uint16)[0])


def infinity_code(dtype: str) -> int:
    """The code of infinity: what is below is finite, what is above is NaN."""
    return int(np.full(1, np.inf, FORMATS[dtype].dtype).view(np.uint16)[0])


def not_one_hot(codes: Codes, mask: Bools, one: int) -> Bools:
    """Which entries are not exactly 1 where the mask allows and exactly 0 where it blocks; any shape."""
    return np.where(mask, codes != one, (codes & MAGNITUDE) != 0)


def contract_kept(contract: Contract, codes: Codes, dtype: str) -> Bools:
    """Which rows without an allowed key keep the contract, decided from their codes, shape ``(R, n)``."""
    size = codes & MAGNITUDE
    if contract.kind == "nan":
        return _each(size > infinity_code(dtype))
    if contract.kind == "fallback":
        key = contract.key or 0
        hot = np.broadcast_to(np.arange(codes.shape[1]) == key, codes.shape)
        return _each(~not_one_hot(codes, hot, one_code(dtype))) & (key < codes.shape[1])
    return _each(size == 0)


def _each(entries: Bools) -> Bools:
    """Whether all entries of each row are true; much faster than ``all(axis=1)`` on rows of two."""
    kept = entries[:, 0].copy()
    for column in range(1, entries.shape[1]):
        kept &= entries[:, column]
    return kept
