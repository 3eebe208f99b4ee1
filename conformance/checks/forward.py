"""Checks of the returned weights: values, exact zeros, range, special masks, row sums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...spec.batch import Bools, Floats
from ..contracted import contracted
from ..diagnosis import weights_fault
from ..judgement import Comparison, Outcome, RowWise, from_entries, from_rows, used
from ..view import View

VALUES = ("getScalar_hardMaskedSoftmaxVecSpec", "spec_eq_weights")
ZEROS = ("hardMaskedSoftmaxVecSpec_blocked_eq_zero", "hardMaskedSoftmaxSpec_blocked_eq_zero")
RANGE = ("hardMaskedSoftmaxVecSpec_mem_Icc",)
ONE = ("hardMaskedSoftmaxVecSpec_eq_one",)
ALL_TRUE = ("hardMaskedSoftmaxVecSpec_allTrue", "hardMaskedSoftmaxSpec_allTrueMask")
CAUSAL = ("hardMaskedSoftmaxSpec_causal_future_zero",)
SUM = ("denominator_pos", "row_sum")
NAMES = (*VALUES, *ZEROS, *RANGE, *ONE, *ALL_TRUE, *CAUSAL, *SUM)


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that the weights decide."""
    if view.values is None:
        return
    batch, y = view.batch, view.values
    mask, real, empty = batch.mask, batch.real, batch.empty
    keys = batch.shape[1]
    blocked = ~mask
    some_blocked = real & np.any(blocked, axis=1)
    blind = blind_rows(view)

    def entries(
        names: tuple[str, ...], compared: RowWise, applies: Bools, unmet: Bools | None = None, **more: Any
    ) -> Outcome:
        outcome = from_entries(
            names,
            "weights",
            compared,
            applies,
            diagnose=lambda r: weights_fault(view, r),
            returned=y,
            tier=view.tier("forward"),
            unmet=unmet,
            blind=blind,
            **more,
        )
        return contracted(view, outcome, y)

    whole, at_blocked = view.compared.everywhere, view.compared.among(blocked)
    errors = view.errors(view.compared)
    yield entries(VALUES, whole, real, ~real, entries=errors, bits=view.bits)
    yield entries(ZEROS, at_blocked, some_blocked)
    yield _in_unit_interval(view, y)
    count = mask.sum(axis=1)
    yield entries(ONE, whole, real & (count == 1), entries=errors)
    yield entries(ALL_TRUE, whole, real & (count == keys) & ~empty, entries=errors)
    if "causal" in batch.families:
        yield entries(CAUSAL, at_blocked, some_blocked)
    yield _row_sum(view, y)


def blind_rows(view: View) -> Bools:
    """Rows of several allowed keys whose budget would accept zeros and uniform weights alike."""
    mask = view.batch.mask
    w = view.truth.weights.weights.value
    budget = view.budget().error
    count = np.maximum(mask.sum(axis=1, keepdims=True), 1)
    wide = (budget >= w) & (budget >= np.abs(w - 1.0 / count))
    return np.asarray(np.all(wide | ~mask, axis=1) & (mask.sum(axis=1) > 1))


def _in_unit_interval(view: View, y: Floats) -> Outcome:
    """Weights are ``>= 0`` exactly and ``<= 1`` up to the budget of the weight itself."""
    budget = view.budget().error
    if np.all((y >= 0.0) & (y <= 1.0)):
        zero = np.zeros(len(y))
        return _range_outcome(view, y, RowWise(zero > 0.0, np.full(len(y), -1), zero, zero, zero))
    with np.errstate(invalid="ignore"):
        # The distance to [0, 1]; nothing is granted below 0.
        error = np.where(np.isnan(y), np.nan, np.maximum(np.maximum(y - 1.0, -y), 0.0))
        granted = np.where(y > 1.0, budget, 0.0)
        bad = ~(error <= granted)
    return _range_outcome(view, y, Comparison(error, granted, used(error, granted), bad).everywhere)


def _range_outcome(view: View, y: Floats, rows: RowWise) -> Outcome:
    outcome = from_entries(
        RANGE,
        "weights",
        rows,
        view.batch.real,
        diagnose=lambda r: weights_fault(view, r),
        returned=y,
        tier=view.tier("forward"),
        unmet=~view.batch.real,
    )
    return contracted(view, outcome, y)


def _row_sum(view: View, y: Floats) -> Outcome:
    """The exact sum of the returned weights is 1 up to the row-sum budget, on rows with an allowed key."""
    batch = view.batch
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.all(np.isfinite(y), axis=1)
        total = view.truth.engine.total(np.where(finite[:, None], y, 0.0))
        error, slack = total.distance(np.ones(len(y)))
    error = np.where(finite, error, np.nan)
    budget = view.budget().sum_error
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
