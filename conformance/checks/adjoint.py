"""Checks that pair derivatives with each other: self-adjointness, JVP against VJP, the full Jacobian by both modes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...spec.batch import Bools
from ...spec.rounding import Mode, inner_budget
from ..diagnosis import derivative_fault
from ..judgement import Codes, Names, Outcome, from_rows, used
from ..truth import Side
from ..view import View

SELF = ("inner_derivative",)
ADJOINT = ("backward_eq_adjoint_fderiv",)
JACOBIAN = "full Jacobian by both modes"


def check(view: View) -> Iterator[Outcome]:
    """Every outcome that needs two derivatives of one row."""
    for mode in ("vjp", "jvp"):
        if mode in view.subject.methods:
            yield from _pair(view, SELF, (mode, "tangents"), (mode, "cotangents"), f"{mode.upper()} with itself")
    if {"vjp", "jvp"} <= set(view.subject.methods):
        yield from _pair(view, ADJOINT, ("jvp", "tangents"), ("vjp", "cotangents"), "JVP with VJP")
        if "jacobian" in view.batch.relations:
            yield from _jacobian(view)


def _pair(
    view: View, names: tuple[str, ...], left: tuple[Mode, Side], right: tuple[Mode, Side], remark: str
) -> Iterator[Outcome]:
    """``<J u, g> = <u, J g>`` with ``J u`` by one mode and ``J g`` by the other.

    A backward pass that consumes the stored output uses the same weights, right or wrong, for both vectors, and
    ``J(w)`` is symmetric for *any* ``w``: only the rounding after the weights counts, and the check sees what the value
    budgets cannot. Others may round their weights differently on the way (PyTorch's JVP does) and get the full budgets.
    """
    a, b = view.derivative_values(*left), view.derivative_values(*right)
    if a is None or b is None:
        return
    batch, truth = view.batch, view.truth
    same = left[0] == right[0]
    first, second = a, b
    u, g = truth.allowed(left[1]), truth.allowed(right[1])
    finite = np.all(np.isfinite(a), axis=1) & np.all(np.isfinite(b), axis=1)
    if not finite.all():
        a, b = (np.where(finite[:, None], x, 0.0) for x in (a, b))
    forth, back = truth.engine.inner(a, g), truth.engine.inner(b, u)
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.abs((forth.value - back.value) + (forth.low - back.low))
        slack = forth.error + back.error + 2.0**-51 * (error + np.abs(forth.low) + np.abs(back.low))
    error = np.where(finite, error, np.nan)
    if same and left[0] == "vjp" and "vjp-from-output" in view.promises:
        allowed = [view.given_budget(side) for _, side in (left, right)]
    else:
        allowed = [view.derivative_budget(*which) for which in (left, right)]
    budget = inner_budget(g, allowed[0], u, allowed[1])
    applies = batch.real & ~(_excused(view) & ~finite)

    def diagnose(rows: Codes) -> Names:
        out: Names = np.full(len(rows), "not self-adjoint" if same else "JVP and VJP disagree", dtype=object)
        broken = ~finite[rows]
        for mode, side, values in ((*left, first), (*right, second)):
            hit = broken & ~np.all(np.isfinite(values[rows]), axis=1)
            if hit.any():
                out[hit] = derivative_fault(view, mode, side, rows[hit])
        return out

    yield from_rows(
        names,
        "inner product",
        error,
        budget,
        ~(error - slack <= budget),
        applies,
        diagnose=diagnose,
        returned=first,
        tier=view.tier(left[0]),
        unmet=~batch.real,
        side=left[1],
        second=second,
        remark=remark,
    )


def _excused(view: View) -> Bools:
    """Empty rows whose NaN derivatives the contract ``nan`` permits; they are counted under the VJP and the JVP."""
    return view.batch.empty & (view.contract.kind == "nan")


def _jacobian(view: View) -> Iterator[Outcome]:
    """Entry ``(i, j)`` of the Jacobian by reverse mode (unit cotangents) and by forward mode (unit tangents)."""
    reverse, forward = view.derivative_values("vjp", "cotangents"), view.derivative_values("jvp", "tangents")
    if reverse is None or forward is None:
        return
    groups = view.batch.relations["jacobian"]
    turn = (0, 2, 1)
    with np.errstate(invalid="ignore"):
        error = np.abs(reverse[groups] - forward[groups].transpose(turn))
    by_reverse = view.derivative_budget("vjp", "cotangents")[groups]
    allowed = by_reverse + view.derivative_budget("jvp", "tangents")[groups].transpose(turn)
    worst = used(error, allowed).argmax(axis=2)[..., None]
    rows, keys = view.batch.shape
    row_error, row_budget, bad, index = np.zeros(rows), np.zeros(rows), np.zeros(rows, bool), np.full(rows, -1)
    other = np.zeros((rows, keys))
    row_error[groups] = np.take_along_axis(error, worst, axis=2)[..., 0]
    row_budget[groups] = np.take_along_axis(allowed, worst, axis=2)[..., 0]
    index[groups] = worst[..., 0]
    bad[groups] = ~(error <= allowed).all(axis=2)
    other[groups] = forward[groups].transpose(turn)
    member = np.zeros(rows, bool)
    member[groups] = True
    yield from_rows(
        ADJOINT,
        "difference",
        row_error,
        row_budget,
        bad,
        member & view.batch.real,
        diagnose=lambda r: np.full(len(r), "JVP and VJP disagree", dtype=object),
        returned=reverse,
        tier=view.tier("vjp"),
        index=index,
        side="cotangents",
        second=other,
        remark=JACOBIAN,
    )
