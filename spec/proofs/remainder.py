"""Differentiability as such: the remainder of the first-order expansion, over many decades of the step.

For a mask with allowed set ``A`` and a step ``h`` whose entries over ``A`` have range ``r = max - min``,

    ||f(x + h) - f(x) - J(x) h||_inf <= r^2 / 8,

because ``|D^2 w[h, h]_i| = |w_i ((h_i - <w,h>)^2 - Var_w h)| <= r^2 / 4`` everywhere, and the remainder is half of a
weighted mean of second derivatives. (Both parts of the difference are non-negative, so it is bounded by the larger:
``|h_i - <w,h>| <= (1 - w_i) r`` makes the first at most ``w_i (1 - w_i)^2 r^2 <= 4/27 r^2``, and ``Var_w h <= r^2/4``.)

The remainder is exactly 0 where at most one key is allowed. Its order in ``||h||`` is 2 where ``D^2 w[h, h]`` is not 0,
and 3 at a tie of two keys, where it is: the logarithmic slope between two steps converges to the order as the step
shrinks, at the rate of the step. Bounds and orders are decided in interval arithmetic, with more digits for smaller
steps; the exact zeros are evaluated in correctly rounded numbers, where ``e / e`` is exactly 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from mpmath.ctx_iv import MPIntervalContext
from mpmath.ctx_mp import MPContext

from ..arithmetic import Arithmetic, first_maximum
from .definitions_record import Definitions

DECADES = (1, 2, 3, 4, 6, 8, 11, 15, 20, 26, 33, 41, 50)


@dataclass(frozen=True)
class Base:
    """A row, a direction and the order expected of the remainder; order 0 means that it is exactly 0.

    With ``switching``, the two largest scores are half a step apart, so that the step moves the maximum.
    """

    family: str
    mask: tuple[bool, ...]
    x: tuple[Fraction, ...]
    direction: tuple[Fraction, ...]
    order: int
    switching: bool = False


@dataclass(frozen=True)
class Remainder:
    """What was measured; ``share`` is the largest part of the bound used, ``orders`` counts the rows of each order."""

    rows: int
    steps: int
    share: float
    smallest_step: float
    digits: int
    orders: dict[int, int]
    failure: str | None = None
    bound: str = "r^2/8"


def _quarters(*values: int) -> tuple[Fraction, ...]:
    return tuple(Fraction(value, 4) for value in values)


BASES = (
    Base("partial", (True, False, True, True, True), _quarters(3, 30, -2, 5, 1), _quarters(4, 9, -3, 1, -2), 2),
    Base("empty", (False, False, False), _quarters(1, 2, 3), _quarters(4, -4, 2), 0),
    Base("single", (False, True, False), _quarters(1, 2, 3), _quarters(4, -4, 2), 0),
    Base("no keys", (), (), (), 0),
    Base("tie of two", (True, True), _quarters(7, 7), _quarters(4, -2), 3),
    Base(
        "tie of two beside blocked keys", (True, False, True, False), _quarters(7, 9, 7, 7), _quarters(3, 1, -4, 2), 3
    ),
    Base("tie of three", (True, True, False, True), _quarters(2, 2, 5, 2), _quarters(4, -3, 1, 1), 2),
    Base("argmax switch", (True, True, True, False), _quarters(6, 6, 4, 9), _quarters(-3, 4, 2, 1), 2, switching=True),
    Base("spread of 60", (True, True, True), _quarters(0, -240, -100), _quarters(1, 3, 4), 2),
)


@cache
def interval_context(digits: int) -> MPIntervalContext:
    """Intervals of that many digits."""
    context = MPIntervalContext()
    context.dps = digits
    return context


@cache
def rounded_context(digits: int) -> MPContext:
    """Correctly rounded numbers of that many digits."""
    context = MPContext()
    context.dps = digits
    return context


def measure(function: str, definitions: Definitions) -> Remainder:
    """Measure the remainder of ``function`` (``"weights"`` or ``"hardMaskedSoftmaxVecSpec"``) against ``derivative``.

    Stops at the first step where the bound or the order fails.
    """
    share, steps, orders = 0.0, 0, {0: 0, 2: 0, 3: 0}
    for number, base in enumerate(BASES):
        failure, base_share, base_steps = _measure_base(base, function, definitions)
        share, steps = max(share, base_share), steps + base_steps
        orders[base.order] += failure is None
        if failure:
            return Remainder(number + 1, steps, share, _smallest(), digits_for(DECADES[-1]), orders, failure)
    return Remainder(len(BASES), steps, share, _smallest(), digits_for(DECADES[-1]), orders)


def _smallest() -> float:
    return 10.0 ** -DECADES[-1]


def digits_for(decade: int) -> int:
    """The digits that show a remainder at the step ``10^-decade``."""
    # The remainder is of size 10^(-3 decade) at the least, below weights of size 1; and the wide row has weights
    # near 10^-26.
    return 100 + 3 * decade


def _measure_base(base: Base, function: str, definitions: Definitions) -> tuple[str | None, float, int]:
    share = 0.0
    previous: tuple[int, Any] | None = None
    for count, decade in enumerate(DECADES, start=1):
        try:
            if base.order == 0:
                parts, _ = _remainder(base, decade, function, definitions, rounded_context(digits_for(decade)))
                if any(part != 0 for part in parts):
                    return f"the remainder of row '{base.family}' at step 1e-{decade} is not exactly 0", share, count
                continue
            context = interval_context(digits_for(decade))
            parts, bound = _remainder(base, decade, function, definitions, context)
        except ArithmeticError as error:
            return f"{type(error).__name__} on the remainder of row '{base.family}'", share, count
        where = f"the remainder of row '{base.family}' at step 1e-{decade}"
        worst = context.mpf([max(part.a for part in parts), max(part.b for part in parts)])
        if not worst.b <= bound.a:
            return f"{where} exceeds its bound", share, count
        share = max(share, float((worst / bound).b))
        if previous is not None and previous[0] > 1:
            slope = (
                interval_context(30).log(previous[1] / worst) / interval_context(30).log(10) / (decade - previous[0])
            )
            distance = abs(slope - base.order).b
            if not distance <= 10 * interval_context(30).mpf(10) ** -previous[0] + interval_context(30).mpf(10) ** -25:
                return f"{where} has order {float(slope.b):.6f}, not {base.order}", share, count
        previous = (decade, worst)
    return None, share, len(DECADES)


def _remainder(base: Base, decade: int, function: str, definitions: Definitions, context: Any) -> tuple[list[Any], Any]:
    """The entries of ``|f(x + h) - f(x) - J h|``, and ``r^2 / 8``, in the numbers of the context."""
    step = context.mpf(1) / context.mpf(10) ** decade
    ar = Arithmetic("remainder", context.exp, context.mpf(0), _maximum)
    x = [context.mpf(value.numerator) / value.denominator for value in base.x]
    h = [step * value.numerator / value.denominator for value in base.direction]
    if base.switching:
        x[0] = x[0] + step / 2
    moved = [a + b for a, b in zip(x, h, strict=True)]
    before, after = (
        definitions.weights(base.mask, scores, ar)
        if function == "weights"
        else definitions.hardMaskedSoftmaxVecSpec(scores, base.mask, ar)
        for scores in (x, moved)
    )
    linear = definitions.derivative(base.mask, x, h, ar)
    parts = [abs(new - old - slope) for old, new, slope in zip(before, after, linear, strict=True)]
    kept = [value for value, allowed in zip(base.direction, base.mask, strict=True) if allowed]
    spread = max(kept) - min(kept) if kept else Fraction(0)
    reach = step * spread.numerator / spread.denominator
    return parts, reach * reach / 8


def _maximum(mask: Any, scores: Any) -> int | None:
    """The shipped choice, by the lower ends of intervals: a step is no dyadic number, so scores have some width."""
    return first_maximum(mask, [getattr(score, "a", score) for score in scores])
