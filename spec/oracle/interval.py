"""A real number known to lie between two exact rationals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction

_FINEST = 4300
"""Endpoints are multiples of ``2^-4300``, finer than the square of the smallest float64 squared."""

_DIGITS = 25


def rounded_down(mantissa: int, exponent: int) -> Fraction:
    """The largest multiple of ``2^-4300`` not above ``mantissa * 2^exponent``, however small that is.

    >>> rounded_down(-1, -(10**30)) == Fraction(-1, 2**4300)
    True
    """
    if exponent >= 0:
        return Fraction(mantissa << exponent)
    if exponent >= -_FINEST:
        return Fraction(mantissa, 1 << -exponent)
    drop = min(-exponent - _FINEST, mantissa.bit_length() + 1)  # shifting further gives the same 0 or -1
    return Fraction(mantissa >> drop, 1 << _FINEST)


@dataclass(frozen=True)
class Interval:
    """``lo <= true value <= hi``, both exact.

    >>> third = Interval(Fraction(1, 4), Fraction(1, 2))
    >>> str(third)
    '0.4 ± 1.5E-1'
    >>> third.width
    Fraction(1, 4)
    """

    lo: Fraction
    hi: Fraction

    @property
    def width(self) -> Fraction:
        """``hi - lo``."""
        return self.hi - self.lo

    def floats(self) -> tuple[float, float]:
        """The endpoints as float64, rounded outwards.

        >>> low, high = Interval(Fraction(1, 3), Fraction(1, 3)).floats()
        >>> low < Fraction(1, 3) < high
        True
        """
        low, high = _nearest(self.lo), _nearest(self.hi)
        if low > self.lo:
            low = math.nextafter(low, -math.inf)
        if high < self.hi:
            high = math.nextafter(high, math.inf)
        return low, high

    def __str__(self) -> str:
        """The value in decimal; where digits are missing, followed by ``±`` and a bound on what is missing."""
        middle = (self.lo + self.hi) / 2
        digits = _DIGITS
        if self.width and middle:
            digits = max(1, min(digits, 1 + math.floor(_log10(abs(middle)) - _log10(self.width))))
        shown = _decimal(middle, digits, ROUND_HALF_EVEN)
        missing = max(self.hi - Fraction(shown), Fraction(shown) - self.lo)
        return f"{shown:g}" if missing == 0 else f"{shown} ± {_decimal(missing, 2, ROUND_CEILING):.1E}"


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _log10(value: Fraction) -> float:
    return (value.numerator.bit_length() - value.denominator.bit_length()) * math.log10(2.0)


def _decimal(value: Fraction, digits: int, rounding: str) -> Decimal:
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return context.divide(Decimal(value.numerator), Decimal(value.denominator))
