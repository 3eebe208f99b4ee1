"""Checks of the returned weights: values, exact zeros, range, special masks, row sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...spec.batch import Bools, Floats
from ..contracted import contracted
from ..diagnosis import weights_fault
from ..judgement import Outcome, everywhere, from_entries, from_rows
from ..view import View

VALUES = ("getScalar_hardMaskedSoftmaxVecSpec", "spec_eq_weights")
ZEROS = ("hardMaskedSoftmaxVecSpec_blocked_eq_zero", "hardMaskedSoftmaxSpec_blocked_eq_zero")
RANGE = ("hardMaskedSoftmaxVecSpec_mem_Icc",)
ONE = ("hardMaskedSoftmaxVecSpec_eq_one",)
ALL_TRUE = ("hardMaskedSoftmaxVecSpec_allTrue", "hardMaskedSoftmaxSpec_allTrueMask")
CAUSAL = ("hardMaskedSoftmaxSpec_causal_future_zero",)
SUM = ("denominator_pos", "row_sum")
NON_INTERFERENCE = ("score_non_interference",)


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that the weights decide."""
    if view.values is None:
        return
    batch, y = view.batch, view.values
    mask, real, empty = batch.mask, batch.real, batch.empty
    rows, keys = batch.shape
    blocked = ~mask
    some_blocked = real & blocked.any(axis=1)
    blind = blind_rows(view)

    def entries(names: tuple[str, ...], where: Bools, applies: Bools, unmet: Bools | None = None) -> Outcome:
        outcome = from_entries(
            names,
            "weights",
            view.compared,
            where,
            applies,
            diagnose=lambda r: weights_fault(view, r),
            returned=y,
            tier=view.tier("forward"),
            unmet=unmet,
            blind=blind,
        )
        return contracted(view, outcome, y)

    all_entries = everywhere(rows, keys)
    yield entries(VALUES, all_entries, real, ~real)
    yield entries(ZEROS, blocked, some_blocked | (real & empty))
    yield _in_unit_interval(view, y)
    count = mask.sum(axis=1)
    yield entries(ONE, all_entries, real & (count == 1))
    yield entries(ALL_TRUE, all_entries, real & (count == keys) & ~empty)
    if "causal" in batch.families:
        yield entries(CAUSAL, blocked, some_blocked)
    if any(f.startswith(("poison", "empty poison", "truncation")) for f in batch.families):
        yield entries(NON_INTERFERENCE, all_entries, some_blocked)
    yield _row_sum(view, y)


def blind_rows(view: View) -> Bools:
    """Rows of several allowed keys whose budget would accept zeros and uniform weights alike."""
    mask = view.batch.mask
    w = view.truth.weights.weights.value
    budget = view.truth.budget(view.tier("forward")).error
    count = np.maximum(mask.sum(axis=1, keepdims=True), 1)
    wide = (budget >= w) & (budget >= np.abs(w - 1.0 / count))
    return np.asarray((wide | ~mask).all(axis=1) & (mask.sum(axis=1) > 1))


def _in_unit_interval(view: View, y: Floats) -> Outcome:
    """Weights are ``>= 0`` exactly and ``<= 1`` up to the budget of the weight itself."""
    budget = view.truth.budget(view.tier("forward")).error
    with np.errstate(invalid="ignore"):
        over = np.maximum(y - 1.0, 0.0)
        under = np.maximum(-y, 0.0)
        bad = ~((under == 0.0) & (over <= budget))
        entry = np.where(bad, np.inf, np.where(budget > 0.0, over / np.where(budget > 0.0, budget, 1.0), 0.0))
    index = entry.argmax(axis=1) if y.shape[1] else np.full(len(y), -1)
    at = (np.arange(len(y)), index)
    error = (over + under)[at] if y.shape[1] else np.zeros(len(y))
    outcome = Outcome(
        RANGE,
        "weights",
        view.batch.real,
        view.batch.real & bad.any(axis=1),
        entry.max(axis=1, initial=0.0),
        error,
        budget[at] if y.shape[1] else np.zeros(len(y)),
        index,
        lambda r: weights_fault(view, r),
        y,
        view.tier("forward"),
        unmet=~view.batch.real,
    )
    return contracted(view, outcome, y)


def _row_sum(view: View, y: Floats) -> Outcome:
    """The exact sum of the returned weights is 1 up to the row-sum budget, on rows with an allowed key."""
    batch = view.batch
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(y).all(axis=1)
        total = view.truth.engine.total(np.where(finite[:, None], y, 0.0))
        error, slack = total.distance(np.ones(len(y)))
    error = np.where(finite, error, np.nan)
    budget = view.truth.budget(view.tier("forward")).sum_error
    # The oracle's error of a sum is far below the budget; what it leaves open is given to the subject.
    bad = ~(error - slack <= budget)
    return from_rows(
        SUM,
        "row sum",
        error,
        budget,
        bad,
        batch.real & ~batch.empty,
        diagnose=lambda r: weights_fault(view, r),
        returned=y,
        tier=view.tier("forward"),
        unmet=~batch.real | batch.empty,
    )
