"""The script of a failure on a problem of attention."""

from __future__ import annotations

import numpy as np

from ...adapters.attention import Attention
from ...adapters.recipe import Which
from ...spec.attention.problem import Problem
from ..attention.view import AttentionView, Known
from ..replay.problems import problem_of
from .literals import number, numbers
from .told import Body, Told
from .verdict import MANY, NOT_NAN

PLACE: dict[str, tuple[Which, str]] = {
    "output": ("forward", ""),
    "weights": ("forward", "[1]"),
    "tangent": ("jvp", ""),
    "dq": ("vjp", "[0]"),
    "dk": ("vjp", "[1]"),
    "dv": ("vjp", "[2]"),
}
"""Quantity -> the method that returns it, and where in its answer."""


def place_of(told: Told, quantity: str) -> tuple[Which, str]:
    """The method that returns a quantity, and where in its answer."""
    method, place = PLACE[quantity]
    return method, "[0]" if told.recipe.several and quantity == "output" else place


def arguments(told: Told, p: Problem, method: Which, suffix: str = "") -> tuple[list[str], str]:
    """The lines that give a problem, and the arguments of a call about it; ``suffix`` ends the names."""
    lines = [told.given(f"{n}{suffix}", x) for n, x in (("q", p.q), ("k", p.k), ("v", p.v))]
    lines.append(told.allowed(p.full_mask, f"mask{suffix}"))
    if method == "vjp":
        lines.append(told.given(f"vector{suffix}", p.cotangent))
    elif method == "jvp":
        lines += [told.given(f"{n}{suffix}", x) for n, x in zip(("u", "r", "t"), p.tangents, strict=True)]
        lines.append(f"vector{suffix} = (u{suffix}, r{suffix}, t{suffix})")
    text = f"q{suffix}, k{suffix}, v{suffix}, mask{suffix}, {number(p.scale)}"
    return lines, text if method == "forward" else f"{text}, vector{suffix}"


def of_problem(told: Told, subject: Attention) -> Body:
    """The lines of the script that judge, and the methods that they call. Raises ValueError, with a sentence."""
    f = told.finding
    w = f.smallest or f.attention
    if w is None or w.q is None:
        raise told.refused("speaks of a problem that is too large for a script.")
    if w.quantity not in PLACE or not w.index:
        raise told.refused(f"compares several answers ({w.quantity}), which one call does not show.")
    method, place = place_of(told, w.quantity)
    p = problem_of(w, f)
    lines, given = arguments(told, p, method)
    at = tuple(w.index[:-1])
    lines.append(f"returned = {told.exactly(f'run({given}){place}')}[{', '.join(map(str, at))}]")
    if told.rule.kind == "nan" and w.quantity == "output" and bool(p.empty[at]):
        return [*lines, *NOT_NAN], (method,)
    view = AttentionView(subject, told.rule, Known(p), frozenset())
    exact = view.known.exact(w.quantity).value[at]  # type: ignore[arg-type]
    budget = view.budget(w.quantity)[at]  # type: ignore[arg-type]
    if not np.all(np.isfinite(exact)):
        raise told.refused("is about numbers that are not real: nothing is true of them.")
    lines += [
        f"true = np.array({numbers(np.asarray(exact).tolist())})",
        f"budget, at = np.array({numbers(np.asarray(budget).tolist())}), slice(None)",
        *MANY,
    ]
    return lines, (method,)
