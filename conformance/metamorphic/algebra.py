"""What one answer must satisfy by itself, and two derivatives of one row between them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...adapters.subject import Method
from ...spec.batch import Floats
from ...spec.oracle import engine_for
from ...spec.rounding import inner_budget
from ..calls import Fault
from ..judgement import used
from ..promises import declared
from ..truth import SIDES, Side
from .asked import Asked
from .record import Comparison
from .variants import Codes


def laws(asked: Asked) -> Iterator[Comparison]:
    """Exact zeros, range and sum of the weights; zeros, column sum, null space and symmetry of the derivatives."""
    subject = asked.subject
    for method in subject.methods:
        answer = asked.answer(method)
        if isinstance(answer, Fault):
            continue  # told by the comparisons
        yield _zeros(asked, method, answer.values)
        yield from _weights(asked, answer.values) if method == "forward" else _derivative(asked, method, answer.values)
    derivatives: list[Method] = [m for m in subject.methods if m != "forward"]
    for method in derivatives:
        yield from _symmetric(asked, (method, "tangents"), (method, "cotangents"), "inner_derivative")
    if len(derivatives) == 2:
        yield from _symmetric(asked, ("jvp", "tangents"), ("vjp", "cotangents"), "backward_eq_adjoint_fderiv")


def _law(
    asked: Asked,
    method: Method,
    relation: str,
    declaration: str,
    error: Floats,
    bound: Floats,
    words: str,
    values: Floats,
    keys: Codes | None = None,
    rows: Codes | None = None,
) -> Comparison:
    """One number per row against its bound; an error that is not a number fails. ``values``: what is shown of a row."""
    chosen = np.arange(len(error)) if rows is None else rows
    share = used(error, bound)
    bad = ~(error <= bound)
    worst = int((share + bad).argmax())
    failed = int(bad.sum())
    number = bool(np.isfinite(error[worst]))
    return Comparison(
        subject=asked.subject.id,
        dtype=asked.rows.dtype,
        keys=asked.rows.shape[1],
        method=method,
        relation=relation,
        declaration=declared(declaration).name,
        verdict="fail" if failed else "pass",
        diagnosis=(words if number else "not a number") if failed else "",
        rows=len(error),
        failed=failed,
        share=float(share[worst]) if np.isfinite(share[worst]) else None,
        row=int(chosen[worst]),
        key=None if keys is None else int(keys[worst]),
        first=float(values[worst]).hex(),
        difference=float(error[worst]) if number else None,
        bound=float(bound[worst]),
    )


def _largest(error: Floats) -> tuple[Floats, Codes]:
    """Per row the largest error and where it is; NaN counts as the largest."""
    key = np.where(np.isnan(error), np.inf, error).argmax(axis=1)
    return np.take_along_axis(error, key[:, None], axis=1)[:, 0], key


def _zeros(asked: Asked, method: Method, values: Floats) -> Comparison:
    error, key = _largest(np.where(asked.rows.mask, 0.0, np.abs(values)))
    name = "hardMaskedSoftmaxVecSpec_blocked_eq_zero" if method == "forward" else "blocked_gradient_zero"
    words = "a blocked key has weight" if method == "forward" else "a blocked key has a derivative"
    return _law(asked, method, "blocked keys are 0", name, error, np.zeros(len(error)), words, error, key)


def _weights(asked: Asked, y: Floats) -> Iterator[Comparison]:
    budget = asked.budget()
    with np.errstate(invalid="ignore"):
        outside = np.where(np.isfinite(y), np.maximum(np.maximum(y - 1.0, -y), 0.0), np.nan)
    error, key = _largest(outside)
    at = np.arange(len(y)), key
    granted = np.where(y[at] > 1.0, budget.error[at], 0.0)
    yield _law(
        asked, "forward", "0 <= w <= 1", "hardMaskedSoftmaxVecSpec_mem_Icc", error, granted, "not in [0, 1]", y[at], key
    )
    total, slack = _summed(asked, y)
    error = np.maximum(np.abs(total - 1.0) - slack, 0.0)
    yield _law(asked, "forward", "row sum is 1", "row_sum", error, budget.sum_error, "not normalised", total)


def _derivative(asked: Asked, method: Method, y: Floats) -> Iterator[Comparison]:
    bound = asked.bound(method)
    total, slack = _summed(asked, y)
    name = "shift_invariance"
    error = np.maximum(np.abs(total) - slack, 0.0)
    yield _law(
        asked, method, "column sum is 0", name, error, bound.sum(axis=1), "the derivative does not sum to 0", total
    )
    rows = np.flatnonzero(asked.rows.constant)
    if len(rows):
        with np.errstate(invalid="ignore"):
            share = used(np.where(np.isfinite(y[rows]), np.abs(y[rows]), np.nan), bound[rows])
        key = share.argmax(axis=1)
        at = rows, key
        words = "a constant vector has a derivative"
        yield _law(asked, method, "J 1 = 0", name, np.abs(y[at]), bound[at], words, y[at], key, rows)


def _summed(asked: Asked, values: Floats) -> tuple[Floats, Floats]:
    """The sum of each row and how well it is known; NaN where an entry is not finite."""
    finite = np.all(np.isfinite(values), axis=1)
    total = engine_for(asked.rows.dtype).total(np.where(finite[:, None], values, 0.0))
    return np.where(finite, total.value + total.low, np.nan), total.error + 2.0**-52 * np.abs(total.value)


def _symmetric(
    asked: Asked, left: tuple[Method, Side], right: tuple[Method, Side], declaration: str
) -> Iterator[Comparison]:
    """``<J u, g> = <u, J g>`` with the one by one method and the other by another, or by the same."""
    a, b = asked.values(*left), asked.values(*right)
    if a is None or b is None:
        return
    u, g = (np.where(asked.rows.mask, getattr(asked.rows, side).astype(np.float64), 0.0) for side in SIDES[::-1])
    finite = np.all(np.isfinite(a) & np.isfinite(b), axis=1)
    engine = engine_for(asked.rows.dtype)
    forth, back = engine.inner(np.where(finite[:, None], a, 0.0), g), engine.inner(np.where(finite[:, None], b, 0.0), u)
    apart = np.abs((forth.value - back.value) + (forth.low - back.low))
    slack = forth.error + back.error + 2.0**-51 * apart
    error = np.where(finite, np.maximum(apart - slack, 0.0), np.nan)
    budget = inner_budget(g, asked.bound(*left), u, asked.bound(*right))
    same = left[0] == right[0]
    relation = "<J u, g> = <u, J g>" if same else "JVP and VJP agree"
    words = "not self-adjoint" if same else "JVP and VJP disagree"
    yield _law(asked, left[0], relation, declaration, error, budget, words, apart)
