"""What a poison at a place that nobody may read reaches in an attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ...adapters.attention import Attention
from ...adapters.subject import Method
from ...spec.attention.problem import Problem
from ...spec.batch import Array
from ..attention.calls import call_attention
from ..calls import Fault
from .layouts import Pattern, arranged, problem, width
from .probe import EMPTY, FULL, KEYS, PARTIAL, POISONS, SCORES, Answers, arguments, isolation, number, smallest
from .record import Isolation


def attention_isolation(subject: Attention, dtype: str, alignment: str) -> list[Isolation]:
    """What a poison at a blocked key or value, or in the cotangent of an empty row, reaches; from the smallest problem
    that shows it. ``alignment``: that of a causal flag."""
    found: list[Isolation] = []
    for place in ("blocked key", "blocked value", "cotangent of an empty row"):
        empty = place.startswith("cotangent")
        methods = tuple(m for m in subject.methods if m == "vjp" or not empty)
        poisons = ("NaN",) if empty else POISONS
        attempts = [
            partial(
                isolation,
                place,
                methods,
                dtype,
                partial(_ask, subject, make),
                partial(_show, make),
                poisons,
            )
            for make in _spoilers(subject, dtype, alignment, place)
        ]
        found += smallest(*attempts)
    return found


def _spoilers(subject: Attention, dtype: str, alignment: str, place: str) -> list[Callable[[str], Problem]]:
    """From the smallest problem that shows the place to the larger one: functions from a poison to a problem."""
    empty = place.startswith("cotangent")
    makers: list[Callable[[str], Problem]] = []
    small: list[Pattern] = [(False, False)] if empty else [(True, False)]
    large: list[Pattern] = [FULL, EMPTY, PARTIAL] if empty else [PARTIAL]
    for patterns, wanted, heads, queries in ((small, 0, 1, 1), (large, int(empty), 2, 0)):
        if "queries other than keys" in subject.limits:
            queries = len(patterns[0])
        found = arranged(subject, patterns, wanted, alignment=alignment, queries=queries)
        d = width(subject, 1 if patterns is small else KEYS)
        if found is None or d is None:
            continue
        keys = len(patterns[0])
        scores = SCORES[:keys] if patterns is large else np.zeros(keys)
        made = problem(subject, dtype, found, scores, heads=heads, d=d, family=place)
        makers.append(partial(_spoil, made, place))
    return makers


def ask(subject: Attention, method: Method, problem: Problem) -> dict[str, Array] | Fault:
    """One guarded call; the answer by quantity, with ``weights`` and ``valid`` where ``forward`` returns them."""
    answer = call_attention(subject, method, problem)
    if isinstance(answer, Fault):
        return answer
    more = {"weights": answer.weights_raw, "valid": answer.valid}
    return {**answer.raw, **{name: array for name, array in more.items() if array is not None}}


def _spoil(clean: Problem, place: str, poison: str) -> Problem:
    """The problem with a poison in that place: the last key, its value, or the cotangents of all empty queries."""
    q, k, v, g = clean.q.copy(), clean.k.copy(), clean.v.copy(), clean.cotangent.copy()
    value = number(poison, clean.dtype)
    if place == "blocked key":
        k[:, :, -1] = value
        q[..., 0] = np.maximum(q[..., 0], 4)  # so that the product with the largest number overflows
    elif place == "blocked value":
        v[:, :, -1] = value
    else:
        g[clean.empty] = value
    return replace(clean, q=q, k=k, v=v, cotangent=g)


def _ask(subject: Attention, make: Callable[[str], Problem], method: Method, poison: str) -> Answers:
    """What may not depend on the poison: rows that may not see the last key, and shared gradients where none may."""
    asked = make(poison)
    answer = ask(subject, method, asked)
    if isinstance(answer, Fault):
        return answer
    sees = asked.full_mask[..., -1] if asked.family.startswith("blocked") else np.zeros(asked.empty.shape, np.bool_)
    kept: dict[str, Array] = {}
    for name, array in answer.items():
        if name in ("dk", "dv"):
            if not sees.any():
                kept[name] = array
        elif name != "valid":
            kept[name] = np.where(sees[..., None], np.zeros_like(array), array)
    return kept


def _show(make: Callable[[str], Problem], method: str, poison: str) -> dict[str, Any]:
    return arguments(make(poison), method)
