"""The script of a failure on a problem of attention."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...adapters.attention import Attention
from ...adapters.recipe import Which
from ...spec.attention.problem import Problem
from ..attention.judgement import WorstVector
from ..attention.minimised import judged
from ..attention.smallest import smallest
from ..attention.verdicts import confirmed
from ..attention.view import AttentionView, Known
from ..finding import AttentionWitness
from ..replay.problems import planned_problems, problem_of, whole_of
from ..verification.claims import key_of
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

LARGEST = 400
"""Numbers of a problem that a script may hold, where it is shrunk for it."""


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
    if w is not None and w.q is None and w.quantity in PLACE:
        w = _smaller(told, subject)
    if w is not None and w.quantity == "bits":
        raise told.refused("is about what numbers that are not real reach, in several answers at once.")
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


def shrunk(told: Told, shows: Callable[[Problem], bool]) -> Problem:
    """The smallest problem found that shows the fault, made from those that the seed gives for the finding."""
    f = told.finding
    for case in whole_of(f, planned_problems(told.asked, told.certificate.seed, f)):
        problem = case.build()
        if shows(problem):
            found = smallest(problem, shows)
            if found.q.size + found.k.size + found.v.size > LARGEST:
                raise told.refused("takes a problem that is too large for a script.")
            return found
    raise told.refused("compares two answers that do not differ here, on any problem that the seed gives for it.")


def _smaller(told: Told, subject: Attention) -> AttentionWitness | None:
    """The witness of the smallest problem found, where the certificate's own is too large to hold."""
    f = told.finding

    def failing(problem: Problem) -> WorstVector | None:
        tally = judged(subject, key_of(f.declaration), problem, told.policy)
        return None if tally is None or not tally.failed else tally.worst

    worst = failing(shrunk(told, lambda p: failing(p) is not None))
    return None if worst is None else confirmed(worst, subject.id, f.declaration)
