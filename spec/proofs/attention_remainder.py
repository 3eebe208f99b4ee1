"""Differentiability of attention as such: the remainder of the first-order expansion, over many decades of the step.

Along ``(q, k, v) + e (dq, dk, dv)`` the scores of one query are ``s(e)``, with slopes ``s'(e)`` and ``s'' = 2 scale
<dq, dk_j>``, and a column of the output is ``f(e) = sum_j w_j(s(e)) (v_j + e dv_j)``. For ``0 <= t <= e`` let ``r`` be
the largest range of ``s'(t)`` over the allowed keys, ``c`` the range of ``s''``, ``V`` the largest range of
``v + t dv`` and ``U`` that of ``dv``. Then

    |f(e) - f(0) - e f'(0)| <= e^2/2 (V r^2/4 + V c/4 + U r/2).

For ``f'' = sum_j w_j'' (v_j + t dv_j) + 2 sum_j w_j' dv_j``. Both ``w'`` and ``w''`` sum to 0, so a vector that they
meet may be centred, and ``|sum_j w_j'' v_j| <= V/2 sum |w_j''|``. With ``Var`` the variance under ``w``,
``sum_j |w_j'| = sum_j w_j |s'_j - mean| <= sqrt Var <= r/2``, and ``w'' = D^2 w[s', s'] + J s''`` has
``sum_j |D^2 w[s', s']_j| <= 2 Var <= r^2/2`` and ``sum_j |(J s'')_j| <= c/2``.

The remainder is exactly 0 where a query may see at most one key, and of order 2 elsewhere in these heads, at ties too.
Bounds and orders are decided in interval arithmetic, exact zeros in correctly rounded numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from ..arithmetic import Arithmetic, first_maximum
from .definitions_record import Definitions
from .remainder import DECADES, Remainder, digits_for, interval_context, rounded_context
from .samples_heads import HeadSample, Table, head_samples

_FAMILIES = ("partial", "an empty query and an unseen key", "causal", "all empty", "tie of all keys")
_BOUND = "e^2/2 (V r^2/4 + V c/4 + U r/2)"
_STEPS = tuple(decade for decade in DECADES if decade in (1, 2, 4, 8, 15, 26, 41, 50))


@cache
def _heads() -> tuple[HeadSample, ...]:
    return tuple(sample for sample in head_samples() if sample.family in _FAMILIES)


def measure(definitions: Definitions) -> Remainder:
    """Measure the remainder of ``scaledDotProductAttention`` against ``scaledDotProductAttentionJvp``.

    Stops at the first step where the bound or the order fails. Rows are the queries of a few sample heads.
    """
    share, steps, orders, rows = 0.0, 0, {0: 0, 2: 0, 3: 0}, 0
    failure = None
    for sample in _heads():
        for i, allowed in enumerate(sample.mask):
            order = 2 if sum(allowed) > 1 else 0
            failure, used, count = _measure_query(sample, i, order, definitions)
            rows, steps, share = rows + 1, steps + count, max(share, used)
            if failure:
                break
            orders[order] += 1
        if failure:
            break
    digits = digits_for(DECADES[-1])
    return Remainder(rows, steps, share, 10.0 ** -_STEPS[-1], digits, orders, failure, _BOUND)


def _measure_query(sample: HeadSample, i: int, order: int, definitions: Definitions) -> tuple[str | None, float, int]:
    share, previous = 0.0, None
    for count, decade in enumerate(_STEPS, start=1):
        context = interval_context(digits_for(decade)) if order else rounded_context(digits_for(decade))
        where = f"the remainder of query {i} of head '{sample.family}' at step 1e-{decade}"
        try:
            parts, bounds = _remainder(sample, i, decade, definitions, context)
        except ArithmeticError as error:
            return f"{type(error).__name__} on {where}", share, count
        if order == 0:
            if any(part != 0 for part in parts):
                return f"{where} is not exactly 0", share, count
            continue
        if not all(part.b <= bound.a for part, bound in zip(parts, bounds, strict=True)):
            return f"{where} exceeds its bound", share, count
        share = max(share, *(float((part / bound).b) for part, bound in zip(parts, bounds, strict=True)))
        worst = context.mpf([max(part.a for part in parts), max(part.b for part in parts)])
        if previous is not None and previous[0] > 1:
            short = interval_context(30)
            slope = short.log(previous[1] / worst) / short.log(10) / (decade - previous[0])
            # The next term of the expansion is smaller by the step, times what these numbers of size 2 make of it.
            if not abs(slope - order).b <= 1000 * short.mpf(10) ** -previous[0] + short.mpf(10) ** -20:
                return f"{where} has order {float(slope.b):.6f}, not {order}", share, count
        previous = (decade, worst)
    return None, share, len(_STEPS)


def _remainder(
    sample: HeadSample, i: int, decade: int, definitions: Definitions, context: Any
) -> tuple[list[Any], list[Any]]:
    """For every column of one query, the size of the remainder and its bound."""
    # An exact zero asks for a step, near the decade, whose sums are exact.
    exact = sum(sample.mask[i]) < 2
    step = context.mpf(2) ** (-3 * decade) if exact else context.mpf(1) / context.mpf(10) ** decade
    ar = Arithmetic("remainder", context.exp, context.mpf(0), _maximum)
    one = slice(i, i + 1)

    def matrix(table: Table) -> list[list[Any]]:
        return [[context.mpf(value.numerator) / value.denominator for value in row] for row in table]

    q, k, v = matrix(sample.q[one]), matrix(sample.k), matrix(sample.v)
    dq, dk, dv = ([[step * x for x in row] for row in matrix(t)] for t in (sample.dq[one], sample.dk, sample.dv))
    scale = context.mpf(sample.scale.numerator) / sample.scale.denominator
    mask = sample.mask[one]
    before = definitions.scaledDotProductAttention(q, k, v, mask, scale, ar)[0]
    moved = [_sum(q, dq), _sum(k, dk), _sum(v, dv)]
    after = definitions.scaledDotProductAttention(*moved, mask, scale, ar)[0]
    linear = definitions.scaledDotProductAttentionJvp(q, k, v, mask, scale, (dq, dk, dv), ar)[0]
    parts = [abs(new - old - slope) for old, new, slope in zip(before, after, linear, strict=True)]
    kept = [j for j, m in enumerate(mask[0]) if m]
    if len(kept) < 2:
        return parts, [context.mpf(0)] * len(parts)

    def pairing(a: Sequence[Any], b: Sequence[Any]) -> Any:
        return scale * sum((x * y for x, y in zip(a, b, strict=True)), context.mpf(0))

    # All of these already hold the step; s' is linear in it, so that its range is largest at an end.
    bend = [2 * pairing(dq[0], dk[j]) for j in kept]
    slopes = [pairing(dq[0], k[j]) + pairing(q[0], dk[j]) for j in kept]
    r = _larger(_range(slopes), _range([a + b for a, b in zip(slopes, bend, strict=True)]))
    bounds = []
    for l in range(len(before)):
        values = [v[j][l] for j in kept]
        drift = [dv[j][l] for j in kept]
        spread = _larger(_range(values), _range([a + b for a, b in zip(values, drift, strict=True)]))
        bounds.append((spread * r * r / 4 + spread * _range(bend) / 4 + _range(drift) * r / 2) / 2)
    return parts, bounds


def _sum(a: Sequence[Sequence[Any]], b: Sequence[Sequence[Any]]) -> list[list[Any]]:
    return [[x + y for x, y in zip(left, right, strict=True)] for left, right in zip(a, b, strict=True)]


def _range(values: Sequence[Any]) -> Any:
    """The largest distance of two intervals."""
    distances = [abs(x - y) for x in values for y in values]
    return max(distances, key=lambda x: x.a)


def _larger(a: Any, b: Any) -> Any:
    return a if a.a >= b.a else b


def _maximum(mask: Any, scores: Any) -> int | None:
    """The shipped choice, by the lower ends of intervals."""
    return first_maximum(mask, [getattr(score, "a", score) for score in scores])
