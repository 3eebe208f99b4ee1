"""``jvp_backward_pairing``: ``<JVP(dQ, dK, dV), g> = <dQ, gQ> + <dK, gK> + <dV, gV>``, by a subject's own answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....spec.oracle.dd_engine import DoubleDoubleEngine
from ...judgement import used
from ..judgement import Judged, Quantity, named
from ..view import AttentionView

NAME = "jvp_backward_pairing"
GRADIENTS: tuple[Quantity, ...] = ("dq", "dk", "dv")


def check(view: AttentionView) -> Iterator[Judged]:
    """One number for the whole problem. Where a contract lets a NaN into the gradients there is nothing to pair."""
    if not {"vjp", "jvp"} <= set(view.methods):
        return
    tangent = view.values("tangent")
    gradients = [view.values(name) for name in GRADIENTS]
    if tangent is None or any(g is None for g in gradients):
        return
    problem = view.problem
    left = [(tangent, problem.wide("cotangent"), view.budget("tangent"))]
    right = [
        (g, t.astype(np.float64), view.budget(name))
        for g, t, name in zip(gradients, problem.tangents, GRADIENTS, strict=True)
        if g is not None
    ]
    if not all(np.isfinite(a).all() for a, _, _ in (*left, *right)) and view.contract.kind == "nan":
        return
    terms = np.concatenate([a.reshape(-1) for a, _, _ in left] + [-a.reshape(-1) for a, _, _ in right])
    factors = np.concatenate([b.reshape(-1) for _, b, _ in (*left, *right)])
    budget = sum(float((np.abs(b) * e).sum()) for _, b, e in (*left, *right)) * (1.0 + 1e-9)
    if np.isfinite(terms).all():
        total = DoubleDoubleEngine().inner(terms[None], factors[None])
        error = abs(float(total.value[0])) - float(total.error[0])
    else:
        error = np.nan
    errors, budgets = np.array([max(error, 0.0) if error == error else error]), np.array([budget])
    bad = ~(errors <= budgets)
    yield Judged(
        (NAME,),
        "pairing",
        (1, 1),
        np.ones(1, bool),
        bad,
        used(errors, budgets),
        errors,
        budgets,
        np.zeros(1, dtype=np.int64),
        errors[:, None],
        view.tier("vjp"),
        named("NaN" if error != error else "not adjoint"),
    )
