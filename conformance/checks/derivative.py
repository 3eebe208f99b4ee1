"""Checks of the VJP and the JVP against the exact derivative ``(diag(w) - w w^T) v``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...spec.batch import Bools
from ...spec.oracle.exact import Exact, ExactWeights
from ...spec.rounding import Mode
from ..contracted import contracted
from ..diagnosis import derivative_fault
from ..judgement import Comparison, Outcome, RowWise, compare, from_entries
from ..truth import Side
from ..view import View

VJP = ("backward_eq_derivative",)
JVP = ("derivative_apply", "hasFDerivAt_weights", "hasFDerivAt_spec")
BLOCKED = ("blocked_gradient_zero",)

SIDES: tuple[Side, ...] = ("cotangents", "tangents")


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that one derivative at a time decides."""
    for mode, names, side in (("vjp", VJP, SIDES[0]), ("jvp", JVP, SIDES[1])):
        yield from _mode(view, mode, names, side)  # type: ignore[arg-type]  # the literals are lost in the tuple


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
        )
        return contracted(view, outcome, values)

    compared = view.derivative_compared(mode, side)
    yield entries(names, compared.everywhere, batch.real, met=batch.real)
    blocked = ~batch.mask
    yield entries(BLOCKED, compared.among(blocked), batch.real & np.any(blocked, axis=1))
    if mode == "vjp" and "vjp-from-output" in view.promises and view.values is not None:
        applies = batch.real & view.forward_clean & ~batch.empty
        remark = "given the returned weights"
        yield entries(VJP, _given_output(view, side).everywhere, applies, remark=remark)


def _given_output(view: View, side: Side) -> Comparison:
    """The VJP against ``J(w) g`` at the *returned* weights: without the weights' own error the budget is far sharper.

    Holds for a backward pass that consumes the stored output, which the subject promises.
    """
    assert view.values is not None
    values = view.derivative_values("vjp", side)
    assert values is not None
    truth = view.truth
    usable = truth.mask & view.forward_clean[:, None]
    stored = view.values * usable
    zero = stored * 0.0
    returned = ExactWeights(Exact(stored, zero, zero), truth.weights.gap, truth.weights.total, usable)
    exact = truth.engine.derivative(returned, truth.vectors[side])
    budget = truth.derivative_budget(view.tier("vjp"), side).given
    # The referee knows the true weights only, so entries that the oracle leaves open are given to the subject.
    error, slack = exact.distance(values)
    return compare(truth, Exact(exact.value, exact.low, zero), values, budget + slack * (error > budget), None)
