"""Checks of the VJP and the JVP against the exact derivative ``(diag(w) - w w^T) v``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...spec.batch import Bools, Floats
from ...spec.oracle.exact import Exact, ExactWeights
from ...spec.oracle.referee import decide_backward
from ...spec.rounding import Mode
from ..contracted import contracted
from ..diagnosis import derivative_fault
from ..judgement import Comparison, Outcome, RowWise, compare, from_entries
from ..truth import Side
from ..view import DERIVATIVES, View

VJP = ("backward_eq_derivative",)
JVP = ("derivative_apply", "hasFDerivAt_weights", "hasFDerivAt_spec")
BLOCKED = ("blocked_gradient_zero",)
GIVEN = "given the returned weights"


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that one derivative at a time decides."""
    for mode, side in DERIVATIVES:
        yield from _mode(view, mode, VJP if mode == "vjp" else JVP, side)


def _mode(view: View, mode: Mode, names: tuple[str, ...], side: Side) -> Iterator[Outcome]:
    values = view.derivative_values(mode, side)
    if values is None:
        return
    batch = view.batch

    def entries(
        declarations: tuple[str, ...],
        compared: RowWise,
        applies: Bools,
        *,
        met: Bools | None = None,
        remark: str = "",
        second: Floats | None = None,
        **more: Any,
    ) -> Outcome:
        outcome = from_entries(
            declarations,
            mode,
            compared,
            applies,
            diagnose=lambda r: derivative_fault(view, mode, side, r),
            returned=values,
            tier=view.tier(mode),
            unmet=None if met is None else ~met,
            side=side,
            remark=remark,
            second=second,
            **more,
        )
        return contracted(view, outcome, values)

    compared = view.derivative_compared(mode, side)
    yield entries(
        names,
        compared.everywhere,
        batch.real,
        met=batch.real,
        entries=view.errors(compared),
        bits=view.derivative_bits(mode, side),
    )
    blocked = ~batch.mask
    yield entries(BLOCKED, compared.among(blocked), batch.real & np.any(blocked, axis=1))
    if mode == "vjp" and "vjp-from-output" in view.promises and view.values is not None:
        applies = batch.real & view.forward_clean & ~batch.empty
        weights = np.where(batch.mask & applies[:, None], view.values, 0.0)
        given = _given_output(view, side, weights)
        yield entries(VJP, given.everywhere, applies, remark=GIVEN, second=weights)


def _given_output(view: View, side: Side, weights: Floats) -> Comparison:
    """The VJP against ``J(w) g`` at the *returned* weights: without the weights' own error the budget is far sharper.

    Holds for a backward pass that consumes the stored output, which the subject promises.
    """
    values = view.derivative_values("vjp", side)
    assert values is not None
    truth = view.truth
    vector = truth.allowed(side)
    zero = np.zeros_like(weights)
    returned = ExactWeights(Exact(weights, zero, zero), truth.weights.gap, truth.weights.total, truth.mask)

    def resolve(row: int, entries: list[int], got: list[float], budgets: list[float]) -> list[bool]:
        stored, g = weights[row].tolist(), vector[row].tolist()
        claims = zip(entries, got, budgets, strict=True)
        return [decide_backward(stored, g, i, y, budget).exceeds for i, y, budget in claims]

    budget = view.given_budget(side)
    return compare(truth.engine.derivative(returned, vector), values, budget, resolve)
