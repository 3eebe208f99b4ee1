"""Compare what was returned with what is true, entry by entry, and reduce the result to rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..spec.batch import Array, Bools, Floats
from ..spec.oracle.exact import Exact
from ..spec.oracle.referee import exceeding
from ..spec.rounding.blocks import blocks
from .bits import Bits
from .spread import Entries, Spread
from .truth import Side, Truth

Quantity = Literal["weights", "vjp", "jvp", "row sum", "inner product", "difference", "valid"]
Codes = npt.NDArray[np.int64]
Names = npt.NDArray[np.object_]
Resolve = Callable[[int, list[int], list[float], list[float]], list[bool]]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors of an answer against the oracle, shape ``(R, n)``.

    ``ratio`` is ``error / budget``; infinite where the error is not a number, or exceeds a budget of 0. ``exact`` and
    ``returned``: what was compared, where one of the two is the oracle's.
    """

    error: Floats
    budget: Floats
    ratio: Floats
    bad: Bools
    exact: Exact | None = None
    returned: Floats | None = None

    def entries(self, dtype: str) -> Entries | None:
        """The signed errors in ULPs of the entries that may be rounded; None where nothing exact was compared with."""
        if self.exact is None or self.returned is None:
            return None
        if not self._entries:
            signed = self.exact.signed(self.returned)
            self._entries.append(Entries.of(signed, self.exact.value, self.budget > 0.0, dtype))
        return self._entries[0]

    @cached_property
    def _entries(self) -> list[Entries]:
        return []

    @cached_property
    def everywhere(self) -> RowWise:
        """All entries, reduced to rows."""
        # A bad entry outranks a good one of the same ratio: the referee may have decided between equals.
        return self._reduced(self.ratio + self.bad, self.bad)

    def among(self, where: Bools) -> RowWise:
        """The selected entries, reduced to rows; a row without any has ratio 0."""
        bad = self.bad & where
        rows = self._reduced(np.where(where, self.ratio + self.bad, -1.0), bad)
        none = ~np.any(where, axis=1)
        return RowWise(rows.failed, rows.index, np.where(none, 0.0, rows.ratio), rows.error, rows.budget)

    def _reduced(self, rank: Floats, bad: Bools) -> RowWise:
        rows, keys = rank.shape
        if not keys:
            zero = np.zeros(rows)
            return RowWise(np.zeros(rows, bool), np.full(rows, -1), zero, zero, zero)
        index = rank.argmax(axis=1)
        at = (np.arange(rows), index)
        return RowWise(np.any(bad, axis=1), index, self.ratio[at], self.error[at], self.budget[at])


@dataclass(frozen=True, eq=False)
class RowWise:
    """A comparison reduced to rows: whether any entry is bad, and the worst entry."""

    failed: Bools
    index: Codes
    ratio: Floats
    error: Floats
    budget: Floats


def used(error: Floats, budget: Floats) -> Floats:
    """``error / budget``, of any shape; infinite where the error is not a number, or is not 0 and the budget is.

    >>> used(np.array([1.0, 0.0, 1.0, np.nan]), np.array([2.0, 0.0, 0.0, 1.0]))
    array([0.5, 0. , inf, inf])
    """
    share = np.where(error == 0.0, 0.0, np.inf)
    with np.errstate(invalid="ignore", over="ignore"):
        np.divide(error, budget, out=share, where=budget > 0.0)
    share[np.isnan(share)] = np.inf
    return share


def finite(x: float) -> float | None:
    """A number as a record holds it: None where it is infinite or NaN, which JSON lacks."""
    return x if math.isfinite(x) else None


def by_referee(truth: Truth, side: Side | None = None) -> Resolve:
    """Let the referee decide open entries of the weights, or with ``side`` of the derivative along those vectors."""

    def resolve(row: int, entries: list[int], returned: list[float], budgets: list[float]) -> list[bool]:
        vector = None if side is None else truth.vectors[side][row].tolist()
        scores, mask = truth.batch.scores64[row].tolist(), truth.mask[row].tolist()
        return exceeding(scores, mask, entries, returned, budgets, vector)

    return resolve


def compare(exact: Exact, returned: Floats, budget: Floats, resolve: Resolve) -> Comparison:
    """Judge every entry: bad if its error certainly exceeds its budget.

    Where the oracle's own enclosure leaves it open, ``resolve(row, entries, returned, budgets)`` decides.
    """
    error, ratio, bad = np.empty_like(budget), np.empty_like(budget), np.empty(budget.shape, bool)
    for rows in blocks(*budget.shape):
        e, slack = Exact(exact.value[rows], exact.low[rows], exact.error[rows]).distance(returned[rows])
        limit = budget[rows]
        with np.errstate(invalid="ignore", over="ignore"):
            over = ~(e <= limit)
            doubtful = (limit > 0.0) & np.isfinite(e) & (np.abs(e - limit) <= slack)
        error[rows], ratio[rows], bad[rows] = e, used(e, limit), over
        for r in np.flatnonzero(np.any(doubtful, axis=1)) + rows.start:
            entries = np.flatnonzero(doubtful[r - rows.start]).tolist()
            bad[r, entries] = resolve(int(r), entries, returned[r, entries].tolist(), budget[r, entries].tolist())
    return Comparison(error, budget, ratio, bad, exact, returned)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one check says about every row of a batch, for the declarations that it serves.

    ``applies``: rows that meet the hypotheses; ``unmet``: rows that do not. ``failed`` and ``permitted`` are subsets of
    ``applies``. ``ratio``, ``error``, ``budget``, ``index`` belong to the worst entry of each row (index -1: the row as
    a whole). ``diagnose(rows)`` names the fault of failed rows and is called for those only. ``blind``: rows whose
    budget could not tell the true weights from zeros or from uniform ones. ``returned``: what a witness shows.
    ``second``: the other answer of a pair, or the weights that a derivative was given. ``remark`` tells which of
    several comparisons it is; ``fact`` is reported, whatever the verdict. ``failing``: tiers under which some row of
    the batch fails; ``sharpest``: the same check under the strongest tier, where that is one of them. ``entries``: the
    errors in ULPs, where entries were compared with true values. ``bits``: the answer in the subject's own dtype, where
    this outcome is the one that stands for it.
    """

    declarations: tuple[str, ...]
    quantity: Quantity
    applies: Bools
    failed: Bools
    ratio: Floats
    error: Floats
    budget: Floats
    index: Codes
    diagnose: Callable[[Codes], Names]
    returned: Floats
    tier: str
    permitted: Bools | None = None
    unmet: Bools | None = None
    blind: Bools | None = None
    side: Side | None = None
    second: Floats | None = None
    remark: str = ""
    fact: str = ""
    failing: frozenset[str] = frozenset()
    sharpest: Outcome | None = None
    entries: Entries | None = None
    bits: Array | None = None


def from_entries(
    declarations: tuple[str, ...],
    quantity: Quantity,
    rows: RowWise,
    applies: Bools,
    *,
    diagnose: Callable[[Codes], Names],
    returned: Floats,
    tier: str,
    **more: Any,
) -> Outcome:
    """An outcome from entries that were compared one by one."""
    return Outcome(
        declarations,
        quantity,
        applies,
        applies & rows.failed,
        rows.ratio,
        rows.error,
        rows.budget,
        rows.index,
        diagnose,
        returned,
        tier,
        **more,
    )


def from_rows(
    declarations: tuple[str, ...],
    quantity: Quantity,
    error: Floats,
    budget: Floats,
    bad: Bools,
    applies: Bools,
    *,
    diagnose: Callable[[Codes], Names],
    returned: Floats,
    tier: str,
    index: Codes | None = None,
    **more: Any,
) -> Outcome:
    """An outcome from one number per row, such as a row sum; ``index`` where that number belongs to one key."""
    ratio = used(error, budget)
    if index is None:
        index = np.full(len(error), -1)
    return Outcome(
        declarations, quantity, applies, applies & bad, ratio, error, budget, index, diagnose, returned, tier, **more
    )


@dataclass(eq=False)
class Worst:
    """The worst row seen so far, with a copy of everything that a witness needs."""

    rank: tuple[float, ...]
    ratio: float
    error: float
    budget: float
    batch: str
    row: int
    index: int
    quantity: Quantity
    side: Side | None
    scores: Floats
    mask: Bools
    cotangent: Floats
    tangent: Floats
    returned: Floats
    second: Floats | None
    remark: str
    tier: str

    def outranks(self, other: Worst) -> bool:
        """Whether this row is the worse one. Of equals the first by batch and row, so that merging has no order."""
        if self.rank != other.rank:
            return self.rank > other.rank
        return (self.batch, self.row) < (other.batch, other.row)


@dataclass(eq=False)
class Counts:
    """Counts of one subject, declaration, dtype and family, merged over batches.

    ``failing``: tiers that some row exceeds. ``spread``: the errors in ULPs. ``outputs``: digests of the bits that were
    returned, by quantity, kept by the first declaration that they decide.
    """

    tier: str
    checked: int = 0
    failed: int = 0
    permitted: int = 0
    unmet: int = 0
    blind: int = 0
    tellable: int = 0
    elements: int = 0
    ratio: float = 0.0
    diagnoses: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    spread: Spread = field(default_factory=Spread)
    outputs: dict[str, Bits] = field(default_factory=dict)

    def add(self, other: Counts) -> None:
        """Add the counts of another batch."""
        for name in ("checked", "failed", "permitted", "unmet", "blind", "tellable", "elements"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ratio = max(self.ratio, other.ratio)
        for text, count in other.diagnoses.items():
            self.diagnoses[text] = self.diagnoses.get(text, 0) + count
        self.errors += [e for e in other.errors if e not in self.errors]
        self.facts += [f for f in other.facts if f not in self.facts]
        self.failing |= other.failing
        self.spread.merge(other.spread)
        for quantity, bits in other.outputs.items():
            self.outputs[quantity] = self.outputs.get(quantity, Bits()) + bits


@dataclass(eq=False)
class Tally(Counts):
    """Counts, with the rows that show them.

    By the size of the scores (:data:`~hardmask.conformance.measure.SIZES`): ``growth``, the largest ratio under the
    strongest tier, and ``sharpest``, the row that exceeds that tier most.
    """

    worst: Worst | None = None
    witnesses: dict[str, Worst] = field(default_factory=dict)
    growth: dict[int, float] = field(default_factory=dict)
    sharpest: dict[int, Worst] = field(default_factory=dict)

    def merge(self, other: Tally) -> None:
        """Add the counts of another batch and keep the worse witness."""
        self.add(other)
        if other.worst is not None and (self.worst is None or other.worst.outranks(self.worst)):
            self.worst = other.worst
        for text, worst in other.witnesses.items():
            if text not in self.witnesses or worst.outranks(self.witnesses[text]):
                self.witnesses[text] = worst
        for size, ratio in other.growth.items():
            self.growth[size] = max(self.growth.get(size, 0.0), ratio)
        for size, row in other.sharpest.items():
            if size not in self.sharpest or row.outranks(self.sharpest[size]):
                self.sharpest[size] = row
