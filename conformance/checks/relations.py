"""Checks that compare two answers of the subject: a row and its shifted, permuted, moved, truncated or cleaned copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...adapters.subject import Method
from ...spec.batch import Floats
from ...spec.rounding import Mode
from ..calls import Fault, Returned
from ..cases.build import BESIDE, GIVEN, SHORT, TWINS
from ..diagnosis import derivative_fault, weights_fault
from ..judgement import Codes, Names, Outcome, from_rows, used
from ..truth import Side
from ..view import DERIVATIVES, View

NAMES = {"shift": "shift_invariance", "permutation": "permutation_equivariance", "position": "batch_invariance"}
TRUNCATION = "truncation"
NON_INTERFERENCE = "score_non_interference"
ALONE = 3
"""Rows that are also judged alone: each is a call of its own. Of pairs with equal scores, as many less one."""

POISONED = ("poison", "empty poison", "truncation", GIVEN)
"""Families, by the start of their names, whose blocked scores are hostile, or may be."""


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that two rows, or one row at two lengths, decide."""
    if view.values is None:
        return
    budget = view.budget().error
    for relation, name in NAMES.items():
        pairs = view.batch.relations.get(relation)
        if pairs is None:
            continue
        base, copy = pairs[:, 0], pairs[:, 1]
        order = view.batch.permutation if relation == "permutation" else None
        back = None if order is None else np.argsort(order, axis=1)
        pairing = []
        for rows, others, way in ((copy, base, order), (base, copy, back)):
            expected, allowed = view.values[others], budget[others]
            if way is not None:
                expected, allowed = (np.take_along_axis(x, way, axis=1) for x in (expected, allowed))
            pairing.append(Pairing(rows, view.values[rows], expected, allowed + budget[rows]))
        yield _difference(view, name, pairing)
    if BESIDE in view.batch.families:
        yield from _alone(view)
    if TRUNCATION in view.batch.families:
        yield from _truncated(view)
    if view.batch.shape[1] and any(family.startswith(POISONED) for family in view.batch.families):
        yield from _cleaned(view)


@dataclass(frozen=True, eq=False)
class Pairing:
    """Rows of a batch, what was returned for them, what the other answer says, and how far the two may be apart."""

    rows: Codes
    got: Floats
    expected: Floats
    allowed: Floats


def _difference(
    view: View, name: str, pairings: Sequence[Pairing], mode: Mode | None = None, side: Side | None = None
) -> Outcome:
    """``|got - expected|`` against the sum of both budgets, for every row of the pairings."""
    rows, keys = view.batch.shape
    error, budget, bad, member = np.zeros(rows), np.zeros(rows), np.zeros(rows, bool), np.zeros(rows, bool)
    index = np.full(rows, -1)
    different = [p for p in pairings if not np.array_equal(p.got, p.expected)]
    # Where all answers agree to the bit, and they mostly do, no witness will ever show them.
    returned = np.zeros((rows, keys)) if different else np.broadcast_to(0.0, (rows, keys))
    other = np.zeros((rows, keys)) if different else None
    for p in pairings:
        member[p.rows] = True
    for p in different:
        assert other is not None
        returned[p.rows], other[p.rows] = p.got, p.expected
        with np.errstate(invalid="ignore"):
            distance = np.abs(p.got - p.expected)
        worst = used(distance, p.allowed).argmax(axis=1)
        at = (np.arange(len(worst)), worst)
        index[p.rows], error[p.rows], budget[p.rows] = worst, distance[at], p.allowed[at]
        bad[p.rows] = ~np.all(distance <= p.allowed, axis=1)

    def diagnose(failed: Codes) -> Names:
        """A fault of the row itself, if it has one; otherwise the two answers simply disagree."""
        out: Names = np.full(len(failed), "answers differ", dtype=object)
        compared = view.compared if mode is None or side is None else view.derivative_compared(mode, side)
        own = compared.bad[failed].any(axis=1)
        if own.any() and (mode is None or side is None):
            out[own] = weights_fault(view, failed[own])
        elif own.any() and mode is not None and side is not None:
            out[own] = derivative_fault(view, mode, side, failed[own])
        return out

    return from_rows(
        (name,),
        "difference",
        error,
        budget,
        bad,
        member & view.batch.real,
        diagnose=diagnose,
        returned=returned,
        tier=view.tier(mode or "forward"),
        index=index,
        side=side,
        second=other,
        fact="" if not different else "bits differ, within the budget",
    )


def _alone(view: View) -> Iterator[Outcome]:
    """A few rows in calls of their own, forward and backward, against the same rows inside the batch."""
    assert view.values is not None
    rows = _to_call(view)
    yield from _rows_alone(view, "forward", rows, view.values, view.budget().error)
    for mode, side in DERIVATIVES:
        inside = view.derivative_values(mode, side)
        if inside is not None:
            yield from _rows_alone(view, mode, rows, inside, view.derivative_budget(mode, side), side)


def _to_call(view: View) -> Codes:
    """Rows with an allowed key, some of them followed by a twin: the same scores under another mask, so that an answer
    kept from the call before is the wrong one."""
    batch = view.batch
    filled = ~batch.empty & batch.real
    twins = batch.relations.get(TWINS)
    if twins is not None:
        twins = twins[filled[twins].all(axis=1) & (batch.mask[twins[:, 0]] != batch.mask[twins[:, 1]]).any(axis=1)]
        if len(twins) >= ALONE:
            spread = np.unique(np.linspace(0, len(twins) - 1, ALONE).astype(np.int64))
            return np.asarray(twins[spread].ravel()[:-1])
    alone = np.flatnonzero(filled)
    return np.asarray(alone[np.unique(np.linspace(0, len(alone) - 1, ALONE).astype(np.int64))])


def _rows_alone(
    view: View, method: Method, rows: Codes, inside: Floats, budget: Floats, side: Side | None = None
) -> Iterator[Outcome]:
    """The last row is called twice, and its second answer is the one that counts: a call may leave something behind."""
    arrays = [view.batch.scores, view.batch.mask] + ([] if side is None else [getattr(view.batch, side)])
    names = [f"{method} of row {r}" for r in rows]
    served = NAMES["position"]

    def called(what: str, row: int) -> Returned | Fault:
        return view.call(what, method, *(a[row : row + 1] for a in arrays), serves=served)

    alone = [called(name, row) for name, row in zip(names, rows.tolist(), strict=True)]
    if names:
        alone[-1] = called(f"{names[-1]}, again", int(rows[-1]))
    answers = [answer.values for answer in alone if isinstance(answer, Returned)]
    if len(answers) == len(rows):
        pairing = Pairing(rows, inside[rows], np.concatenate(answers), 2.0 * budget[rows])
        yield _difference(view, served, [pairing], None if method == "forward" else method, side)


def _truncated(view: View) -> Iterator[Outcome]:
    """The same rows with their blocked tail deleted, in a call of its own."""
    batch, values = view.batch, view.values
    assert values is not None
    short = view.call("truncated", "forward", batch.scores[:, :SHORT], batch.mask[:, :SHORT], serves=TRUNCATION)
    if not isinstance(short, Returned):
        return
    expected = np.zeros_like(values)
    expected[:, :SHORT] = short.values
    budget = view.budget().error
    yield _difference(view, TRUNCATION, [Pairing(np.arange(len(values)), values, expected, 2.0 * budget)])


def _cleaned(view: View) -> Iterator[Outcome]:
    """The same rows with zeros at the blocked scores, in a call of its own.

    Both answers may be NaN on an empty row: whether they may be NaN at all is the contract's business, elsewhere.
    """
    batch, values = view.batch, view.values
    assert values is not None
    zeroed = np.where(batch.mask, batch.scores, 0).astype(batch.scores.dtype)
    clean = view.call("cleaned", "forward", zeroed, batch.mask, serves=NON_INTERFERENCE)
    if not isinstance(clean, Returned):
        return
    both = batch.empty[:, None] & np.isnan(values) & np.isnan(clean.values)
    got, expected = (np.where(both, 0.0, x) for x in (values, clean.values))
    rows = np.flatnonzero(np.any(~batch.mask, axis=1))
    budget = view.budget().error[rows]
    yield _difference(view, NON_INTERFERENCE, [Pairing(rows, got[rows], expected[rows], 2.0 * budget)])
