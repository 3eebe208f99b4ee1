"""The enclosures of a certificate, read back and held against freshly computed ones."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from ...spec.oracle.interval import Interval

_NUMBER = r"-?\d{1,400}(?:\.\d{1,60})?(?:[eE][+-]?\d{1,5})?"
_SHOWN = re.compile(rf"({_NUMBER})(?: ± ({_NUMBER}))?", re.ASCII)

SLACK = Fraction(1, 10**15)
"""How wide an enclosure may be, relative to the value, whatever the library that computed it."""


def agrees(shown: str, true: Interval) -> bool:
    """Whether a decimal with its bound, as an enclosure is written, holds the true value and says something about it.

    >>> third = Interval(Fraction(1, 3), Fraction(1, 3))
    >>> agrees("0.3333333333333333333333333 ± 3.4E-26", third), agrees("0.34", third), agrees("0 ± 1.0E+0", third)
    (True, False, False)
    """
    if shown == str(true):
        return True
    found = _SHOWN.fullmatch(shown)
    if found is None:
        return False
    middle, radius = _value(found[1]), _value(found[2] or "0")
    if middle is None or radius is None or radius < 0:
        return False
    return middle - radius <= true.hi and true.lo <= middle + radius and radius <= _allowed(true)


def contains(bounds: Sequence[str], true: Interval) -> bool:
    """Whether two decimals are bounds of the true value, and close ones.

    >>> contains(["0.0", "1.0"], Interval(Fraction(1, 3), Fraction(1, 3)))
    False
    """
    low, high = (_float(text) for text in bounds) if len(bounds) == 2 else (None, None)
    if low is None or high is None or not low <= high:
        return False
    if math.isinf(low) or math.isinf(high):
        return [low, high] == list(true.floats())
    exact = Fraction(low), Fraction(high)
    apart = exact[1] - exact[0]
    near = apart <= _allowed(true) or math.nextafter(math.nextafter(low, math.inf), math.inf) >= high
    return exact[0] <= true.lo and true.hi <= exact[1] and near


def _allowed(true: Interval) -> Fraction:
    return SLACK * max(abs(true.lo), abs(true.hi)) + 2**24 * true.width


def _value(text: str) -> Fraction | None:
    exponent = re.search(r"[eE]([+-]?\d+)$", text)
    if exponent is not None and abs(int(exponent[1])) > 5000:
        return None  # a power of ten that no float64 reaches
    return Fraction(text)


def _float(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value
