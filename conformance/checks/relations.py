"""Checks that compare two answers of the subject: a row and its shifted, permuted, moved or truncated copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...spec.batch import Floats
from ..calls import Returned, call
from ..cases.build import SHORT
from ..diagnosis import weights_fault
from ..judgement import Codes, Names, Outcome, from_rows
from ..view import View

NAMES = {"shift": "shift_invariance", "permutation": "permutation_equivariance", "position": "batch_invariance"}
TRUNCATION = "truncation"


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
        yield _difference(view, name, copy, view.values[copy], expected, allowed + budget[copy])
    if TRUNCATION in view.batch.families:
        yield from _truncated(view)


def _difference(view: View, name: str, rows: Codes, got: Floats, expected: Floats, allowed: Floats) -> Outcome:
    """``|got - expected|`` against the sum of both budgets; one row of the batch stands for each pair."""
    total = view.batch.shape[0]
    error, budget, bad, member = np.zeros(total), np.zeros(total), np.zeros(total, bool), np.zeros(total, bool)
    with np.errstate(invalid="ignore", divide="ignore"):
        distance = np.abs(got - expected)
        ratio = np.where(allowed > 0.0, distance / np.where(allowed > 0.0, allowed, 1.0), (distance > 0.0) * np.inf)
        ratio = np.where(np.isnan(distance), np.inf, np.where(np.isnan(ratio), 0.0, ratio))
    worst = (np.arange(len(rows)), ratio.argmax(axis=1))
    error[rows], budget[rows] = distance[worst], allowed[worst]
    bad[rows] = ~np.all(distance <= allowed, axis=1)
    member[rows] = True
    same = bool((got == expected).all())
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
    yield _difference(view, "truncation", np.arange(len(values)), values, expected, 2.0 * budget)
