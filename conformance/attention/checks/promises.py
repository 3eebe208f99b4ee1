"""What numbers that are not real do: measured on every subject, judged where it was promised or is required.

A key that no query of a problem may see, or its value, is replaced by NaN, by an infinity, or by numbers whose products
overflow; the cotangent of a query without an allowed key becomes NaN. Isolation means that every answer is bit for bit
that of a zero in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ....adapters.subject import Method
from ....spec.attention.problem import Problem
from ....spec.batch import Array, Bools
from ...calls import Fault, same_bits
from ..calls import RESULTS, AttentionReturned, call_attention
from ..judgement import Judged, named
from ..view import AttentionView

ISOLATION, VISIBLE = "attention_isolation", "attention_allowed_nan_visible"


def check(view: AttentionView) -> Iterator[Judged]:
    """Both promises, on the problems whose masks leave keys unseen, and on small ones."""
    problem = view.problem
    if view.known.poison or problem.q.size > SMALL:
        return
    if problem.unseen.any():
        for what, changed in _garbage(problem):
            yield from _isolated(view, what, changed)
    if problem.empty.any() and "vjp" in view.subject.methods:
        cotangent = problem.cotangent.copy()
        cotangent[problem.empty] = np.nan
        filled = problem.cotangent.copy()
        filled[problem.empty] = 0
        clean = replace(problem, cotangent=filled)
        yield from _isolated(view, "NaN cotangent", replace(problem, cotangent=cotangent), clean, ("vjp",))
    if view.known.all_allowed and problem.k.size and problem.q.size:
        yield from _visible(view)


SMALL = 4096
"""Entries of the queries beyond which a problem is not tried with other numbers."""


def _garbage(problem: Problem) -> Iterator[tuple[str, Problem]]:
    unseen = problem.unseen
    largest = problem.format.max
    for what, value in (("NaN", np.nan), ("inf", np.inf), ("overflowing", largest)):
        yield f"{what} key", replace(problem, k=_filled(problem.k, unseen, value))
        yield f"{what} value", replace(problem, v=_filled(problem.v, unseen, value))


def _filled(array: Array, where: Bools, value: float) -> Array:
    copied = array.copy()
    copied[where] = value
    return copied


def _isolated(
    view: AttentionView, what: str, dirty: Problem, clean: Problem | None = None, methods: tuple[Method, ...] = ()
) -> Iterator[Judged]:
    problem = view.problem
    if clean is None:
        clean = replace(problem, k=_filled(problem.k, problem.unseen, 0.0), v=_filled(problem.v, problem.unseen, 0.0))
    reached = []
    for method in methods or tuple(m for m in view.subject.methods if m != "jvp"):
        a, b = (call_attention(view.subject, method, p) for p in (dirty, clean))
        if isinstance(a, Fault) or isinstance(b, Fault):
            if isinstance(a, Fault) != isinstance(b, Fault):
                reached.append(f"{method} fails")
            continue
        reached += [name for name in RESULTS[method] if not _alike(a, b, name)]
    text = f"{what} reaches {', '.join(reached)}" if reached else f"{what} isolated"
    yield _promise(view, ISOLATION, "isolation", bool(reached), text, dirty)


def _alike(a: AttentionReturned, b: AttentionReturned, name: str) -> bool:
    return same_bits(a.raw[name] + 0, b.raw[name] + 0)  # -0 counts as 0


def _visible(view: AttentionView) -> Iterator[Judged]:
    """A NaN in an allowed place must reach the outputs of the queries that see it."""
    problem = view.problem
    hidden = []
    for name in ("q", "k", "v"):
        array = getattr(problem, name).copy()
        array[0, 0, 0, 0] = np.nan
        answer = call_attention(view.subject, "forward", replace(problem, **{name: array}))
        if isinstance(answer, Fault):
            continue
        seen = answer.raw["output"][0, 0, :1] if name == "q" else answer.raw["output"][0, 0]
        if not np.isnan(seen.astype(np.float64)).any(axis=-1).all():
            hidden.append(name)
    text = f"NaN in {', '.join(hidden)} swallowed" if hidden else "NaN visible"
    yield _promise(view, VISIBLE, "allowed-nan-visible", bool(hidden), text, problem)


def _promise(view: AttentionView, key: str, promise: str, broken: bool, text: str, problem: Problem) -> Judged:
    """One entry for the problem: judged if promised, else a fact beside an unmet hypothesis."""
    judged = promise in view.promises
    zero = np.zeros(1)
    return Judged(
        (key,),
        "bits",
        (1, 1),
        np.array([judged]),
        np.array([judged and broken]),
        np.array([np.inf if broken else 0.0]),
        np.array([float(broken)]),
        zero,
        np.full(1, -1),
        np.array([[float(broken)]]),
        view.tier("forward"),
        named(text),
        unmet=0 if judged else 1,
        fact="" if judged and broken else text,
        problem=problem,
    )
