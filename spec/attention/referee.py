"""The referee of attention: single entries in arbitrary precision.

It evaluates the very code of :mod:`.definitions` over rigorous enclosures, on the queries that the entry depends on
(one for the output, the weights, ``dq`` and the JVP; for ``dk`` and ``dv`` those of the group that see the key) and on
the keys that these queries see, with a precision that doubles until the question is decided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..arithmetic import Arithmetic
from ..oracle.interval import Interval
from ..oracle.libraries import Library, Name, library
from ..oracle.referee import CAP, START, Decision, precisions
from .definitions import (
    centred,
    hardMaskedSoftmaxSpec,
    matmul,
    scaled_scores,
    scaledDotProductAttention,
    scaledDotProductAttentionJvp,
    transpose,
)
from .problem import Problem
from .rounding import QUANTITIES, Quantity

Index = tuple[int, int, int, int]


def enclose(
    problem: Problem, quantity: Quantity, index: Index, *, bits: int = START, lib: Name | None = None
) -> Interval:
    """One entry of a quantity of a problem, with an enclosure.

    ``quantity``: ``output``, ``dq``, ``dk``, ``dv``, ``jvp`` or ``weights``; ``index``: four integers, in the shape of
    that quantity. Raises ValueError for another quantity, and for numbers that are not finite where they are needed.
    """
    real = library(lib)
    with real.precision(bits):
        return real.interval(entry(real, problem, quantity, index))


def decide(
    problem: Problem,
    quantity: Quantity,
    index: Index,
    returned: float,
    budget: float,
    *,
    lib: Name | None = None,
    cap: int = CAP,
) -> Decision:
    """Whether one entry of a quantity is off by more than ``budget``.

    ``returned`` and ``budget`` are finite floats, taken exactly. Raises ValueError for anything else.

    >>> import numpy as np
    >>> one, two = np.ones((1, 1, 1, 1)), np.array([2.0, 4.0]).reshape(1, 1, 2, 1)
    >>> zeros, mask = np.zeros((1, 1, 2, 1)), np.ones((1, 1, 1, 2), bool)
    >>> problem = Problem("a", "a", "float64", one, zeros, two, mask, 1.0, one, (one, zeros, zeros))
    >>> decide(problem, "output", (0, 0, 0, 0), 3.0, budget=0.0).exceeds
    False
    """
    if not math.isfinite(returned) or not 0.0 <= budget < math.inf:
        raise ValueError(
            f"The referee weighs a finite value against a finite budget of at least 0; it was given {returned} and "
            f"{budget}. Judge values that are not finite without it."
        )
    real = library(lib)
    for bits in precisions(cap):
        with real.precision(bits):
            true = entry(real, problem, quantity, index)
            error = abs(real.number(float(returned)) - true)
            limit = real.number(float(budget))
            exceeds, within = bool(error > limit), bool(error <= limit)
            decision = Decision(exceeds, exceeds or within, real.interval(true), real.interval(error), bits)
        if decision.decided:
            break
    return decision


def exceeding(
    problem: Problem,
    quantity: Quantity,
    indices: Sequence[Index],
    returned: Sequence[float],
    budgets: Sequence[float],
    *,
    low: Sequence[float] | None = None,
    lib: Name | None = None,
    cap: int = CAP,
) -> list[bool]:
    """:func:`decide` for many entries; only the verdicts are returned.

    ``returned``, ``budgets`` and ``low`` (a second word, added to ``returned`` exactly) run parallel to ``indices``.
    """
    real = library(lib)
    second = [0.0] * len(indices) if low is None else low
    verdicts = []
    for index, first, rest, budget in zip(indices, returned, second, budgets, strict=True):
        exceeds = False
        for bits in precisions(cap):
            with real.precision(bits):
                true = entry(real, problem, quantity, index)
                distance = abs(true - real.number(float(first)) - real.number(float(rest)))
                limit = real.number(float(budget))
                exceeds = bool(distance > limit)
                if exceeds or distance <= limit:
                    break
        verdicts.append(exceeds)
    return verdicts


def entry(real: Library, problem: Problem, quantity: Quantity, index: Index) -> Any:
    """One entry as a number of ``real``; call it inside a precision block."""
    if quantity not in QUANTITIES:
        raise ValueError(f"The referee knows no quantity '{quantity}'. Choose one of: {', '.join(QUANTITIES)}.")
    return (
        _to_key(real, problem, quantity, index)
        if quantity in ("dk", "dv")
        else _to_query(real, problem, quantity, index)
    )


def _to_query(real: Library, problem: Problem, quantity: Quantity, index: Index) -> Any:
    b, h, i, l = index
    _, heads, groups, *_ = problem.sizes
    g, ar = h // (heads // groups), Arithmetic(real.name, real.exp, real.number(0.0))
    allowed = np.flatnonzero(problem.full_mask[b, h, i])
    if not len(allowed) or (quantity == "weights" and l not in allowed):
        return ar.zero
    mask = [[True] * len(allowed)]
    tq, tk, tv = problem.tangents
    scale = real.number(float(problem.scale))
    q, k = _matrix(real, problem.q[b, h, i : i + 1]), _matrix(real, problem.k[b, g, allowed])
    if quantity == "weights":
        return hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)[0][int(np.searchsorted(allowed, l))]
    if quantity == "output":
        v = _matrix(real, problem.v[b, g, allowed, l : l + 1])
        return scaledDotProductAttention(q, k, v, mask, scale, ar)[0][0]
    if quantity == "jvp":
        v = _matrix(real, problem.v[b, g, allowed, l : l + 1])
        moved = tq[b, h, i : i + 1], tk[b, g, allowed], tv[b, g, allowed, l : l + 1]
        tangents = _matrix(real, moved[0]), _matrix(real, moved[1]), _matrix(real, moved[2])
        return scaledDotProductAttentionJvp(q, k, v, mask, scale, tangents, ar)[0][0]
    v, cotangent = _matrix(real, problem.v[b, g, allowed]), _matrix(real, problem.cotangent[b, h, i : i + 1])
    d_scores = _d_scores(q, k, v, mask, scale, cotangent, ar)
    return matmul(d_scores, [[row[l]] for row in k], 1, ar)[0][0]


def _to_key(real: Library, problem: Problem, quantity: Quantity, index: Index) -> Any:
    b, g, j, l = index
    _, heads, groups, *_ = problem.sizes
    ar = Arithmetic(real.name, real.exp, real.number(0.0))
    scale, total = real.number(float(problem.scale)), ar.zero
    for h in range(g * (heads // groups), (g + 1) * (heads // groups)):
        for i in np.flatnonzero(problem.full_mask[b, h, :, j]).tolist():
            allowed = np.flatnonzero(problem.full_mask[b, h, i])
            here, mask = int(np.searchsorted(allowed, j)), [[True] * len(allowed)]
            q, k = _matrix(real, problem.q[b, h, i : i + 1]), _matrix(real, problem.k[b, g, allowed])
            if quantity == "dv":
                weights = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
                total = total + weights[0][here] * _number(real, problem.cotangent[b, h, i, l])
                continue
            v, cotangent = _matrix(real, problem.v[b, g, allowed]), _matrix(real, problem.cotangent[b, h, i : i + 1])
            total = total + _d_scores(q, k, v, mask, scale, cotangent, ar)[0][here] * q[0][l]
    return total


def _d_scores(q: Any, k: Any, v: Any, mask: Any, scale: Any, cotangent: Any, ar: Arithmetic) -> list[list[Any]]:
    """The middle of ``scaledDotProductAttentionBackward``: what the gradients of queries and keys are made of."""
    weights = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    d_weights = matmul(cotangent, transpose(v, len(v[0])), len(k), ar)
    return [[scale * s for s in row] for row in centred(weights, d_weights, ar)]


def _matrix(real: Library, array: Any) -> list[list[Any]]:
    return [[_number(real, x) for x in row] for row in array.astype(np.float64)]


def _number(real: Library, x: Any) -> Any:
    value = float(x)
    if not math.isfinite(value):
        raise ValueError(
            f"The referee computes with real numbers; an allowed number of the problem is {value}. Such queries do "
            "not meet the theorems' hypothesis: leave them out, or block the key."
        )
    return real.number(value)
