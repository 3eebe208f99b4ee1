"""Compare what was returned with what is true, entry by entry, and reduce the result to rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..spec.batch import Bools, Floats
from ..spec.oracle.exact import Exact
from ..spec.oracle.referee import exceeding
from .truth import Side, Truth

Quantity = Literal["weights", "vjp", "jvp", "row sum", "inner product", "difference", "valid"]
Codes = npt.NDArray[np.int64]
Names = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors of an answer against the oracle, shape ``(R, n)``.

    ``ratio`` is ``error / budget``; infinite where the error is not a number, or exceeds a budget of 0.
    """

    error: Floats
    budget: Floats
    ratio: Floats
    bad: Bools

    def row_failed(self, where: Bools) -> Bools:
        """Rows with a bad entry among those selected."""
        return np.asarray((self.bad & where).any(axis=1))


def compare(truth: Truth, exact: Exact, returned: Floats, budget: Floats, side: Side | None = None) -> Comparison:
    """Judge every entry: bad if its error certainly exceeds its budget.

    Where the oracle's own enclosure leaves it open, the arbitrary-precision referee decides that entry.
    """
    error, slack = exact.distance(returned)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        bad = ~(error <= budget)
        ratio = np.where(budget > 0.0, error / np.where(budget > 0.0, budget, 1.0), np.where(bad, np.inf, 0.0))
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        doubtful = (budget > 0.0) & (np.abs(error - budget) <= slack)
    for r in np.flatnonzero(doubtful.any(axis=1)):
        vector = None if side is None else truth.vectors[side][r]
        entries = np.flatnonzero(doubtful[r])
        scores, mask = truth.batch.scores64[r], truth.mask[r]
        bad[r, entries] = exceeding(scores, mask, entries, returned[r, entries], budget[r, entries], vector)
    return Comparison(error, budget, ratio, np.asarray(bad))


def everywhere(rows: int, keys: int) -> Bools:
    """All entries."""
    return np.ones((rows, keys), bool)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What one check says about every row of a batch, for the declarations that it serves.

    ``applies``: rows that meet the hypotheses; ``unmet``: rows that do not. ``failed`` and ``permitted`` are subsets of
    ``applies``. ``ratio``, ``error``, ``budget``, ``index`` belong to the worst entry of each row (index -1: the row as
    a whole). ``diagnose(rows)`` names the fault of failed rows and is called for those only. ``blind``: rows whose
    budget could not tell the true weights from zeros or from uniform ones. ``returned``: what a witness shows.
    ``remark`` tells which of several comparisons it is; ``fact`` is reported, whatever the verdict.
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
    remark: str = ""
    fact: str = ""


def from_entries(
    declarations: tuple[str, ...],
    quantity: Quantity,
    comparison: Comparison,
    where: Bools,
    applies: Bools,
    *,
    diagnose: Callable[[Codes], Names],
    returned: Floats,
    tier: str,
    **more: Any,
) -> Outcome:
    """An outcome from the selected entries of a comparison."""
    rows, keys = where.shape
    failed = applies & comparison.row_failed(where)
    if keys:
        # A bad entry outranks a good one of the same ratio (a referee may have decided between equals).
        rank = np.where(where, comparison.ratio + comparison.bad, -1.0)
        index = rank.argmax(axis=1)
        at = (np.arange(rows), index)
        ratio, error, budget = (a[at] for a in (comparison.ratio, comparison.error, comparison.budget))
        none = ~where.any(axis=1)
        ratio = np.where(none, 0.0, ratio)
    else:
        index = np.full(rows, -1)
        ratio = error = budget = np.zeros(rows)
    return Outcome(
        declarations, quantity, applies, failed, ratio, error, budget, index, diagnose, returned, tier, **more
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
    **more: Any,
) -> Outcome:
    """An outcome from one number per row, such as a row sum."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        ratio = np.where(budget > 0.0, error / np.where(budget > 0.0, budget, 1.0), np.where(bad, np.inf, 0.0))
    ratio = np.where(np.isnan(ratio), np.inf, ratio)
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
    dtype: str
    remark: str
    tier: str


@dataclass(eq=False)
class Tally:
    """Counts of one subject, declaration, dtype and family, merged over batches."""

    tier: str
    checked: int = 0
    failed: int = 0
    permitted: int = 0
    unmet: int = 0
    blind: int = 0
    tellable: int = 0
    elements: int = 0
    ratio: float = 0.0
    worst: Worst | None = None
    diagnoses: dict[str, int] = field(default_factory=dict)
    witnesses: dict[str, Worst] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)

    def merge(self, other: Tally) -> None:
        """Add the counts of another batch and keep the worse witness."""
        for name in ("checked", "failed", "permitted", "unmet", "blind", "tellable", "elements"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.ratio = max(self.ratio, other.ratio)
        if other.worst is not None and (self.worst is None or other.worst.rank > self.worst.rank):
            self.worst = other.worst
        for text, count in other.diagnoses.items():
            self.diagnoses[text] = self.diagnoses.get(text, 0) + count
        for text, worst in other.witnesses.items():
            if text not in self.witnesses or worst.rank > self.witnesses[text].rank:
                self.witnesses[text] = worst
        self.errors += [e for e in other.errors if e not in self.errors]
        self.facts += [f for f in other.facts if f not in self.facts]
