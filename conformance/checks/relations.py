"""Checks that compare two answers of the subject: a row and its shifted, permuted, moved, truncated or cleaned copy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...spec.batch import Floats
from ..calls import Returned, call
from ..cases.build import SHORT
from ..diagnosis import weights_fault
from ..judgement import Codes, Names, Outcome, from_rows, used
from ..view import View

NAMES = {"shift": "shift_invariance", "permutation": "permutation_equivariance", "position": "batch_invariance"}
TRUNCATION = "truncation"
NON_INTERFERENCE = "score_non_interference"
ALONE = 3
"""Rows that are also judged alone: each is a call of its own."""

POISONED = ("poison", "empty poison", "truncation")
"""Families, by the start of their names, whose blocked scores are hostile."""


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that two rows, or one row at two lengths, decide."""
    if view.values is None:
        return
    for relation, name in NAMES.items():
        pairs = view.batch.relations.get(relation)
        if pairs is None:
            continue
        first = view.values[pairs[:, 0]]
        budget = view.truth.budget(view.tier("forward")).error
        expected, allowed = first, budget[pairs[:, 0]]
        if relation == "permutation":
            order = view.batch.permutation
            assert order is not None
            expected, allowed = (np.take_along_axis(x, order, axis=1) for x in (first, allowed))
        copy = pairs[:, 1]
        yield _difference(view, name, (copy, pairs[:, 0]), view.values[copy], expected, allowed + budget[copy])
        if relation == "position":
            yield from _alone(view, name)
    if TRUNCATION in view.batch.families:
        yield from _truncated(view)
    if view.batch.shape[1] and any(family.startswith(POISONED) for family in view.batch.families):
        yield from _cleaned(view)


def _difference(
    view: View, name: str, sides: Sequence[Codes], got: Floats, expected: Floats, allowed: Floats
) -> Outcome:
    """``|got - expected|`` against the sum of both budgets; the verdict is that of every row on each of the sides."""
    total = view.batch.shape[0]
    error, budget, bad, member = np.zeros(total), np.zeros(total), np.zeros(total, bool), np.zeros(total, bool)
    same = np.array_equal(got, expected)
    for rows in sides:
        member[rows] = True
    if not same:
        with np.errstate(invalid="ignore"):
            distance = np.abs(got - expected)
        worst = (np.arange(len(got)), used(distance, allowed).argmax(axis=1))
        for rows in sides:
            error[rows], budget[rows] = distance[worst], allowed[worst]
            bad[rows] = ~np.all(distance <= allowed, axis=1)
    return from_rows(
        (name,),
        "difference",
        error,
        budget,
        bad,
        member & view.batch.real,
        diagnose=lambda r: _named(view, r),
        returned=view.values if view.values is not None else got,
        tier=view.tier("forward"),
        fact="" if same else "bits differ, within the budget",
    )


def _alone(view: View, name: str) -> Iterator[Outcome]:
    """A few rows in calls of their own, against the same rows inside the batch."""
    assert view.values is not None
    rows = np.unique(np.linspace(0, view.batch.shape[0] - 1, ALONE).astype(np.int64))
    alone = [call(view.subject, "forward", view.batch.scores[r : r + 1], view.batch.mask[r : r + 1]) for r in rows]
    if not all(isinstance(answer, Returned) for answer in alone):
        return
    expected = np.concatenate([answer.values for answer in alone if isinstance(answer, Returned)])
    budget = view.truth.budget(view.tier("forward")).error[rows]
    yield _difference(view, name, (rows,), view.values[rows], expected, 2.0 * budget)


def _named(view: View, rows: Codes) -> Names:
    """A fault of the row itself, if it has one; otherwise the two answers simply disagree."""
    out: Names = np.full(len(rows), "answers differ", dtype=object)
    own = view.compared.bad[rows].any(axis=1)
    if own.any():
        out[own] = weights_fault(view, rows[own])
    return out


def _truncated(view: View) -> Iterator[Outcome]:
    """The same rows with their blocked tail deleted, in a call of its own."""
    batch, values = view.batch, view.values
    assert values is not None
    short = call(view.subject, "forward", batch.scores[:, :SHORT], batch.mask[:, :SHORT])
    if not isinstance(short, Returned):
        return
    expected = np.zeros_like(values)
    expected[:, :SHORT] = short.values
    budget = view.truth.budget(view.tier("forward")).error
    yield _difference(view, TRUNCATION, (np.arange(len(values)),), values, expected, 2.0 * budget)


def _cleaned(view: View) -> Iterator[Outcome]:
    """The same rows with zeros at the blocked scores, in a call of its own.

    Both answers may be NaN on an empty row: whether they may be NaN at all is the contract's business, elsewhere.
    """
    batch, values = view.batch, view.values
    assert values is not None
    clean = call(view.subject, "forward", np.where(batch.mask, batch.scores, 0).astype(batch.scores.dtype), batch.mask)
    if not isinstance(clean, Returned):
        return
    both = batch.empty[:, None] & np.isnan(values) & np.isnan(clean.values)
    got, expected = (np.where(both, 0.0, x) for x in (values, clean.values))
    rows = np.flatnonzero(np.any(~batch.mask, axis=1))
    budget = view.truth.budget(view.tier("forward")).error[rows]
    yield _difference(view, NON_INTERFERENCE, (rows,), got[rows], expected[rows], 2.0 * budget)
