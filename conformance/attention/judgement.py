"""What the checks of attention say: entries compared, reduced to vectors along the last axis, counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...spec.attention.problem import Problem
from ...spec.batch import Array, Bools, Floats
from ..bits import Bits
from ..judgement import Codes, Comparison, Counts, Names, used
from ..spread import Entries, Spread

Quantity = Literal["output", "weights", "dq", "dk", "dv", "tangent", "pairing", "difference", "valid", "bits"]

AttentionTallies = dict[tuple[str, str], "AttentionTally"]
"""Keyed by declaration and family."""

PLAIN = 1e6
"""An error of so many budgets is plain; beyond it the smaller problem makes the better witness."""


def flat(array: Floats) -> Floats:
    """Four axes as two: the vectors along the last axis, also where there are none.

    >>> flat(np.zeros((2, 3, 0, 4))).shape
    (0, 4)
    """
    return array.reshape(int(np.prod(array.shape[:-1])), array.shape[-1])


@dataclass(frozen=True, eq=False)
class Judged:
    """What one check says about every vector of one quantity of a problem.

    ``shape``: of the quantity, before it was flattened. ``applies``, ``failed``, ``permitted``, ``blind``: one entry
    per vector. ``ratio``, ``error``, ``budget``: of the worst entry of each vector, and ``index`` which one that is.
    ``diagnose(vectors)`` names the fault of failed vectors. ``failing``: tiers under which some vector fails.
    ``problem``: what the answer belongs to, where that is not the problem of the view. ``entries``: the errors in ULPs,
    where entries were compared with true values. ``bits``: the answer in the subject's own dtype, where this outcome is
    the one that stands for it.
    """

    declarations: tuple[str, ...]
    quantity: Quantity
    shape: tuple[int, ...]
    applies: Bools
    failed: Bools
    ratio: Floats
    error: Floats
    budget: Floats
    index: Codes
    returned: Floats
    tier: str
    diagnose: Callable[[Codes], Names]
    permitted: Bools | None = None
    blind: Bools | None = None
    unmet: int = 0
    failing: frozenset[str] = frozenset()
    remark: str = ""
    fact: str = ""
    problem: Problem | None = None
    entries: Entries | None = None
    bits: Array | None = None


def named(name: str) -> Callable[[Codes], Names]:
    """A diagnosis that is the same for every vector."""
    return lambda vectors: np.full(len(vectors), name, dtype=object)


def of_entries(
    declarations: tuple[str, ...],
    quantity: Quantity,
    comparison: Comparison,
    shape: tuple[int, ...],
    applies: Bools,
    returned: Floats,
    tier: str,
    diagnose: Callable[[Codes], Names],
    where: Bools | None = None,
    **more: object,
) -> Judged:
    """From entries that were compared one by one; ``where`` selects some of them."""
    rows = comparison.everywhere if where is None else comparison.among(where)
    return Judged(
        declarations,
        quantity,
        shape,
        applies,
        applies & rows.failed,
        rows.ratio,
        rows.error,
        rows.budget,
        rows.index,
        returned,
        tier,
        diagnose,
        **more,  # type: ignore[arg-type]
    )


def of_bits(
    declarations: tuple[str, ...],
    quantity: Quantity,
    wrong: Bools,
    applies: Bools,
    returned: Floats,
    tier: str,
    name: str,
    **more: object,
) -> Judged:
    """From a yes or no about every vector, where nothing but the exact value is allowed."""
    error = wrong.astype(np.float64)
    zero = np.zeros(len(wrong))
    return Judged(
        declarations,
        quantity,
        returned.shape,
        applies,
        applies & wrong,
        used(error, zero),
        error,
        zero,
        np.full(len(wrong), -1),
        flat(returned),
        tier,
        named(name),
        **more,  # type: ignore[arg-type]
    )


@dataclass(eq=False)
class WorstVector:
    """The worst vector seen so far: the problem, where in it, and what was returned."""

    rank: tuple[float, ...]
    ratio: float
    error: float
    budget: float
    problem: Problem
    quantity: Quantity
    index: tuple[int, ...]
    returned: float
    tier: str
    remark: str

    def outranks(self, other: WorstVector) -> bool:
        """Whether this one is worse; of equals the first by problem and place, so that merging has no order."""
        if self.rank != other.rank:
            return self.rank > other.rank
        return (self.problem.key, self.index) < (other.problem.key, other.index)


@dataclass(eq=False)
class AttentionTally(Counts):
    """Counts, with the vectors that show them."""

    worst: WorstVector | None = None
    witnesses: dict[str, WorstVector] = field(default_factory=dict)

    def merge(self, other: AttentionTally) -> None:
        """Add the counts of another problem and keep the worse witness."""
        self.add(other)
        if other.worst is not None and (self.worst is None or other.worst.outranks(self.worst)):
            self.worst = other.worst
        for name, worst in other.witnesses.items():
            if name not in self.witnesses or worst.outranks(self.witnesses[name]):
                self.witnesses[name] = worst


def count(outcomes: Iterable[Judged], problem: Problem, into: AttentionTallies) -> None:
    """Add what the checks said about a problem to the tallies of its family."""
    for outcome in outcomes:
        vectors = np.flatnonzero(outcome.applies)
        if not len(vectors) and not outcome.unmet:
            continue
        width = outcome.shape[-1]
        tally = AttentionTally(tier=outcome.tier, checked=len(vectors), unmet=outcome.unmet)
        tally.elements = len(vectors) * width
        tally.failing = set(outcome.failing)
        if outcome.entries is not None:
            tally.spread = Spread.over(outcome.entries, vectors)
        if outcome.fact:
            tally.facts.append(outcome.fact)
        if len(vectors):
            failed = outcome.failed[vectors]
            tally.failed = int(failed.sum())
            if outcome.permitted is not None:
                tally.permitted = int((outcome.permitted[vectors] & ~failed).sum())
            if outcome.blind is not None:
                tally.blind, tally.tellable = int(outcome.blind[vectors].sum()), len(vectors)
            finite = outcome.ratio[vectors][np.isfinite(outcome.ratio[vectors])]
            tally.ratio = float(finite.max(initial=0.0))
            tally.worst = _worst(outcome, problem, vectors)
            bad = vectors[failed]
            names = outcome.diagnose(bad).astype(str) if len(bad) else np.zeros(0, str)
            for name in np.unique(names):
                these = bad[names == name]
                tally.diagnoses[str(name)] = len(these)
                tally.witnesses[str(name)] = _worst(outcome, problem, these)
        for place, declaration in enumerate(outcome.declarations):
            tally.outputs = {}
            if outcome.bits is not None and not place:
                tally.outputs = {outcome.quantity: Bits.of(f"{problem.key}/{problem.family}", outcome.bits)}
            fresh = AttentionTally(tier=tally.tier)
            fresh.merge(tally)
            known = into.setdefault((declaration, problem.family), fresh)
            if known is not fresh:
                known.merge(fresh)


def _worst(outcome: Judged, problem: Problem, vectors: Codes) -> WorstVector:
    """Failures first, then the largest ratio (plain ones alike), then the smallest problem."""
    ratio, failed = outcome.ratio[vectors], outcome.failed[vectors]
    at = int(vectors[np.lexsort((np.where(failed, np.minimum(ratio, PLAIN), ratio), failed))[-1]])
    mine = problem if outcome.problem is None else outcome.problem
    size = mine.q.size + mine.k.size + mine.v.size
    bad = bool(outcome.failed[at])
    share = float(outcome.ratio[at])
    entry = int(outcome.index[at])
    place = tuple(int(i) for i in np.unravel_index(at, outcome.shape[:-1])) if len(outcome.shape) > 1 else (at,)
    values = outcome.returned[at]
    return WorstVector(
        rank=(float(bad), min(share, PLAIN) if bad else share, -float(size)),
        ratio=share,
        error=float(outcome.error[at]),
        budget=float(outcome.budget[at]),
        problem=mine,
        quantity=outcome.quantity,
        index=(*place, entry),
        returned=float(values[entry if entry >= 0 else 0]) if values.size else 0.0,
        tier=outcome.tier,
        remark=outcome.remark,
    )
