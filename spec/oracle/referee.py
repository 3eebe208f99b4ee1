"""The referee: single rows in arbitrary precision, for what the fast engines leave open and for every reported failure.

It evaluates the very code of :mod:`hardmask.spec.definitions` over rigorous enclosures, with a precision that doubles
until the question is decided. The index of the maximum is found on the exact scores. All inputs are floats and are
exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..arithmetic import Arithmetic, first_maximum
from ..definitions import hardMaskedSoftmaxVecSpec, softmaxBackwardFromWeightsSpec
from .interval import Interval
from .libraries import Library, Name, library

START = 128
CAP = 8192

Row = Sequence[float]
Bits = Sequence[bool]


@dataclass(frozen=True)
class Decision:
    """Whether ``|returned - true|`` exceeds a budget.

    ``true`` and ``error`` enclose the true value and the distance. ``decided`` is False when they could not be told
    apart with ``bits`` bits, which in practice means that the distance equals the budget; ``exceeds`` is False then.
    """

    exceeds: bool
    decided: bool
    true: Interval
    error: Interval
    bits: int

    def __str__(self) -> str:
        verdict = "exceeds the budget" if self.exceeds else "is within the budget"
        if not self.decided:
            verdict = "cannot be told from the budget"
        return f"The true value is {self.true}; the error is {self.error} and {verdict} ({self.bits} bits)."


def engine_name(name: Name | None = None) -> str:
    """Which library the referee computes with.

    >>> engine_name("mpmath")
    'mpmath'
    """
    return library(name).name


def enclose(
    scores: Row, mask: Bits, vector: Row | None = None, *, bits: int = START, lib: Name | None = None
) -> list[Interval]:
    """The masked softmax of a row, or with ``vector`` the derivative ``(diag(w) - w w^T) vector``, entry by entry.

    Blocked entries of ``scores`` and ``vector`` are not read. Raises ValueError if another one is not finite.

    >>> [str(w) for w in enclose([0.0, 0.0, math.nan], [True, True, False])]
    ['0.5', '0.5', '0']
    """
    real = library(lib)
    with real.precision(bits):
        return [real.interval(x) for x in row(real, scores, mask, vector)]


def decide(
    scores: Row,
    mask: Bits,
    index: int,
    returned: float,
    budget: float,
    vector: Row | None = None,
    *,
    lib: Name | None = None,
    cap: int = CAP,
) -> Decision:
    """Whether entry ``index`` of the weights (with ``vector``: of the derivative) is off by more than ``budget``.

    ``returned`` and ``budget`` are finite floats, taken exactly. Raises ValueError for anything else.

    >>> decide([0.0, 0.0], [True, True], 0, 0.5 + 2.0**-50, budget=2.0**-51).exceeds
    True
    """
    return _decide(lambda real: row(real, scores, mask, vector)[index], returned, budget, lib, cap)


def exceeding(
    scores: Row,
    mask: Bits,
    indices: Sequence[int],
    returned: Row,
    budgets: Row,
    vector: Row | None = None,
    *,
    low: Row | None = None,
    lib: Name | None = None,
    cap: int = CAP,
) -> list[bool]:
    """:func:`decide` for many entries of one row, which is evaluated once for all; only the verdicts are returned.

    ``returned``, ``budgets`` and ``low`` (a second word, added to ``returned`` exactly) run parallel to ``indices``.

    >>> exceeding([0.0, 0.0], [True, True], [0, 1], [0.5, 0.6], [0.0, 0.0])
    [False, True]
    """
    real = library(lib)
    second = [0.0] * len(indices) if low is None else low
    claims = list(zip(indices, returned, second, budgets, strict=True))
    verdicts = [False] * len(claims)
    pending = list(range(len(claims)))
    for _, first, rest, budget in claims:
        _check(first + rest, budget)
    for bits in precisions(cap):
        if not pending:
            break
        with real.precision(bits):
            true = row(real, scores, mask, vector)
            undecided = []
            for c in pending:
                index, first, rest, budget = claims[c]
                value, remainder, limit = (real.number(float(x)) for x in (first, rest, budget))
                distance = abs(true[index] - value - remainder)
                verdicts[c] = bool(distance > limit)
                if not verdicts[c] and not distance <= limit:
                    undecided.append(c)
        pending = undecided
    return verdicts


def decide_backward(
    weights: Row,
    vector: Row,
    index: int,
    returned: float,
    budget: float,
    *,
    lib: Name | None = None,
    cap: int = CAP,
) -> Decision:
    """Whether entry ``index`` of ``softmaxBackwardFromWeightsSpec``, at weights taken exactly, is off by more than
    ``budget``.

    >>> decide_backward([0.5, 0.5], [1.0, 0.0], 0, returned=0.25, budget=0.0).exceeds
    False
    """

    def entry(real: Library) -> Any:
        exact = [_finite(real, w, "weight", i) for i, w in enumerate(weights)]
        return along(real, exact, [True] * len(exact), vector)[index]

    return _decide(entry, returned, budget, lib, cap)


def decide_sum(
    values: Row,
    target: float,
    budget: float,
    factors: Row | None = None,
    *,
    lib: Name | None = None,
    cap: int = CAP,
) -> Decision:
    """Whether ``sum values`` (with ``factors``: ``sum values * factors``), all taken exactly, is off ``target`` by more
    than ``budget``.

    >>> decide_sum([0.1] * 10, target=1.0, budget=2.0**-55).exceeds
    True
    """

    def total(real: Library) -> Any:
        terms = [_finite(real, v, "value", i) for i, v in enumerate(values)]
        if factors is not None:
            others = [_finite(real, f, "factor", i) for i, f in enumerate(factors)]
            terms = [a * b for a, b in zip(terms, others, strict=True)]
        return sum(terms, real.number(0.0))

    return _decide(total, target, budget, lib, cap)


def row(real: Library, scores: Row, mask: Bits, vector: Row | None = None) -> list[Any]:
    """Enclosures, as numbers of ``real``, of the weights of a row or of the derivative along ``vector``."""
    exact = [_finite(real, s, "score", i) if m else None for i, (s, m) in enumerate(zip(scores, mask, strict=True))]
    top = first_maximum(mask, [float(s) for s in scores])
    ar = Arithmetic(real.name, real.exp, real.number(0.0), maximum=lambda *_: top)
    weights = hardMaskedSoftmaxVecSpec(exact, mask, ar)
    return weights if vector is None else along(real, weights, mask, vector)


def precisions(cap: int) -> Iterator[int]:
    """128, 256, 512, ... up to ``cap``.

    >>> list(precisions(512))
    [128, 256, 512]
    """
    bits = START
    while bits <= max(cap, START):
        yield bits
        bits *= 2


def along(real: Library, weights: list[Any], mask: Bits, vector: Row) -> list[Any]:
    """Enclosures of the derivative along ``vector`` at the given weights, numbers of ``real``."""
    zero = real.number(0.0)
    pairs = enumerate(zip(vector, mask, strict=True))
    exact = [_finite(real, g, "vector entry", i) if m else zero for i, (g, m) in pairs]
    return softmaxBackwardFromWeightsSpec(weights, exact, Arithmetic(real.name, real.exp, zero))


def _finite(real: Library, value: float, what: str, index: int) -> Any:
    if not math.isfinite(value):
        raise ValueError(
            f"The referee computes with real numbers; the {what} at key {index} is {float(value)}. "
            "Such rows do not meet the theorems' hypothesis: leave them out, or block that key."
        )
    return real.number(float(value))


def _check(returned: float, budget: float) -> None:
    if not math.isfinite(returned) or not 0.0 <= budget < math.inf:
        raise ValueError(
            f"The referee weighs a finite value against a finite budget of at least 0; it was given {returned} and "
            f"{budget}. Judge values that are not finite without it."
        )


def _decide(value: Callable[[Library], Any], returned: float, budget: float, lib: Name | None, cap: int) -> Decision:
    _check(returned, budget)
    real = library(lib)
    for bits in precisions(cap):
        with real.precision(bits):
            true = value(real)
            error = abs(real.number(float(returned)) - true)
            limit = real.number(float(budget))
            exceeds, within = bool(error > limit), bool(error <= limit)
            decision = Decision(exceeds, exceeds or within, real.interval(true), real.interval(error), bits)
        if decision.decided:
            break
    return decision
