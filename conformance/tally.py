"""Count outcomes by declaration and case family, and keep the worst row of each."""

from __future__ import annotations

import numpy as np

from ..spec.batch import Batch
from .bits import Bits
from .judgement import Codes, Outcome, Tally, Worst
from .measure import sizes
from .spread import Spread

Tallies = dict[tuple[str, str], Tally]
"""Keyed by declaration and family."""

PLAIN = 1e6
"""An error of so many budgets is plain; beyond it the shorter row makes the better witness."""


def count(outcome: Outcome, batch: Batch, into: Tallies, *, named: bool = True) -> None:
    """Add one outcome to the tallies of a batch; ``named``: with the diagnosis of every failed row."""
    keys = batch.shape[1]
    names = np.full(len(outcome.failed), "", dtype=object)
    failing = np.flatnonzero(outcome.failed)
    if len(failing) and named:
        names[failing] = outcome.diagnose(failing)
    for family, members in zip(batch.families, batch.members, strict=True):
        rows = members[outcome.applies[members]]
        unmet = 0 if outcome.unmet is None else int(outcome.unmet[members].sum())
        if not len(rows) and not unmet:
            continue
        tally = Tally(tier=outcome.tier, checked=len(rows), unmet=unmet, elements=len(rows) * keys)
        if outcome.fact:
            tally.facts.append(outcome.fact)
        if outcome.entries is not None and len(rows):
            tally.spread = Spread.over(outcome.entries, rows)
        if len(rows):
            failed = outcome.failed[rows]
            tally.failed = int(failed.sum())
            if outcome.permitted is not None:
                tally.permitted = int((outcome.permitted[rows] & ~failed).sum())
            if outcome.blind is not None:
                several = batch.mask[rows].sum(axis=1) > 1
                tally.blind = int((outcome.blind[rows] & several).sum())
                tally.tellable = int(several.sum())
            ratio = outcome.ratio[rows]
            finite = ratio[np.isfinite(ratio)]
            tally.ratio = float(finite.max()) if len(finite) else 0.0
            tally.worst = _worst_of(outcome, batch, rows)
            tally.failing = set(outcome.failing)
            _sharpest(outcome, batch, rows, tally)
            bad = rows[failed]
            for name in np.unique(names[bad].astype(str)) if named else ():
                these = bad[names[bad] == name]
                tally.diagnoses[str(name)] = len(these)
                tally.witnesses[str(name)] = _worst_of(outcome, batch, these)
        for place, declaration in enumerate(outcome.declarations):
            tally.outputs = {}
            if outcome.bits is not None and not place:
                tally.outputs = {outcome.quantity: Bits.of(f"{batch.key}/{family}", outcome.bits[members])}
            if (declaration, family) in into:
                into[declaration, family].merge(tally)
            else:
                fresh = Tally(tier=tally.tier)
                fresh.merge(tally)
                into[declaration, family] = fresh


def _sharpest(outcome: Outcome, batch: Batch, rows: Codes, tally: Tally) -> None:
    """How far the rows exceed the strongest tier, where they do, by the size of their scores."""
    sharp = outcome.sharpest
    if sharp is None:
        return
    ratio, size = sharp.ratio[rows], sizes(batch)[rows]
    usable = np.isfinite(ratio) & ~batch.empty[rows]
    for group in np.unique(size[usable]).tolist():
        here = usable & (size == group)
        tally.growth[group] = float(ratio[here].max())
        if sharp.failed[rows][here].any():
            tally.sharpest[group] = _worst_of(sharp, batch, rows[here])


def _worst_of(outcome: Outcome, batch: Batch, rows: Codes) -> Worst:
    """The row that ranks highest: failures first, then the largest ratio, then the fewest allowed keys."""
    ratio, failed = outcome.ratio[rows], outcome.failed[rows]
    if failed.any():
        allowed = batch.mask[rows].sum(axis=1)
        at = int(np.lexsort((-allowed, np.minimum(ratio, PLAIN), failed))[-1])
    else:
        at = int(ratio.argmax())
    return worst_at(outcome, batch, int(rows[at]))


def _rank(outcome: Outcome, batch: Batch, row: int) -> tuple[float, ...]:
    """Failures first, then the largest ratio, then the shortest row, then the fewest allowed keys."""
    allowed = int(batch.mask[row].sum())
    ratio = float(outcome.ratio[row])
    failed = bool(outcome.failed[row])
    return (float(failed), min(ratio, PLAIN) if failed else ratio, -float(batch.shape[1]), -float(allowed))


def worst_at(outcome: Outcome, batch: Batch, row: int) -> Worst:
    """What a witness needs of one row."""
    return Worst(
        rank=_rank(outcome, batch, row),
        ratio=float(outcome.ratio[row]),
        error=float(outcome.error[row]),
        budget=float(outcome.budget[row]),
        batch=batch.key,
        row=row,
        index=int(outcome.index[row]),
        quantity=outcome.quantity,
        side=outcome.side,
        scores=batch.scores64[row].copy(),
        mask=batch.mask[row].copy(),
        cotangent=batch.cotangents[row].astype(np.float64),
        tangent=batch.tangents[row].astype(np.float64),
        returned=np.atleast_1d(outcome.returned[row]).astype(np.float64),
        second=None if outcome.second is None else outcome.second[row].astype(np.float64),
        remark=outcome.remark,
        tier=outcome.tier,
    )
