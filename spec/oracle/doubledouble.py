"""Double-double arithmetic on arrays: a number is the unevaluated sum of two float64 words.

Built from IEEE ``+ - * /`` and ``rint`` only. With ``u = 2^-53`` and operands whose low word is at most half an ulp
of the high one, the relative errors are those proved by Joldes, Muller and Popescu, "Tight and rigorous error bounds
for basic building blocks of double-word arithmetic", ACM TOMS 44(2), 2017, up to terms of order ``u^3``:

| function | algorithm there | bound |
|---|---|---|
| :func:`add` | AccurateDWPlusDW | ``3 u^2`` |
| :func:`add_same_sign` | SloppyDWPlusDW, equal signs | ``3 u^2`` |
| :func:`add_float` | DWPlusFP | ``2 u^2`` |
| :func:`multiply` | DWTimesDW | ``5 u^2`` |
| :func:`multiply_float` | DWTimesFP | ``2 u^2`` |
| :func:`reciprocal` | DWDivDW | ``10 u^2`` |

They hold without overflow and underflow. Products are split by Dekker's method, which overflows beyond ``2^996``:
callers scale rows by a power of two (:func:`row_exponent`). A product below ``2^-967`` loses at most a few
``2^-1074`` absolutely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch import Floats

Pair = tuple[Floats, Floats]

_SPLITTER = 2.0**27 + 1.0


def two_sum(a: Floats, b: Floats) -> Pair:
    """``(s, t)`` with ``s = fl(a + b)`` and ``s + t = a + b`` exactly (Knuth), without overflow.

    >>> two_sum(np.float64(1.0), np.float64(2.0**-60))[1] == 2.0**-60
    np.True_
    """
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def fast_two_sum(a: Floats, b: Floats) -> Pair:
    """The same for ``|a| >= |b|`` or ``a = 0`` (Dekker)."""
    s = a + b
    t = s - a
    return s, b - t


def split(a: Floats) -> Pair:
    """``a`` as the exact sum of two numbers of 26 bits (Dekker), for ``|a| <= 2^996``."""
    t = a * _SPLITTER
    high = t - (t - a)
    return high, a - high


def two_prod(a: Floats, b: Floats) -> Pair:
    """``(p, e)`` with ``p = fl(a b)`` and ``p + e = a b`` exactly, unless ``|a b| < 2^-967``.

    >>> p, e = two_prod(np.float64(2.0**27 + 1), np.float64(2.0**27 + 1))
    >>> int(p) + int(e) == (2**27 + 1) ** 2
    True
    """
    return _two_prod(a, b, split(b))


def _two_prod(a: Floats, b: Floats, halves: Pair) -> Pair:
    """:func:`two_prod` where ``b`` is split already; ``b`` may be a row that broadcasts."""
    bh, bl = halves
    p = a * b
    ah, al = split(a)
    e = ah * bh
    e -= p
    ah *= bl
    e += ah
    e += al * bh
    al *= bl
    e += al
    return p, e


def add(a: Pair, b: Pair) -> Pair:
    """Sum of two double-doubles of any signs."""
    sh, sl = two_sum(a[0], b[0])
    th, tl = two_sum(a[1], b[1])
    sl += th
    vh, vl = fast_two_sum(sh, sl)
    vl += tl
    return fast_two_sum(vh, vl)


def add_same_sign(a: Pair, b: Pair) -> Pair:
    """Sum of two double-doubles of equal sign, at half the cost of :func:`add`.

    The low words are added with error ``u |al + bl| <= u^2 (|a| + |b|)``, which equal signs make ``u^2 |a + b|``; the
    second rounding adds at most ``2 u^2 |a + b|``.
    """
    sh, sl = two_sum(a[0], b[0])
    sl += a[1] + b[1]
    return fast_two_sum(sh, sl)


def add_float(a: Pair, b: Floats) -> Pair:
    """Sum of a double-double and a float64."""
    sh, sl = two_sum(b, a[0])
    sl += a[1]
    return fast_two_sum(sh, sl)


def multiply(a: Pair, b: Pair) -> Pair:
    """Product of two double-doubles; ``b`` may be a row that broadcasts against ``a``."""
    p, e = _two_prod(a[0], b[0], split(b[0]))
    e += a[0] * b[1] + a[1] * b[0]
    return fast_two_sum(p, e)


def multiply_float(a: Pair, b: Floats) -> Pair:
    """Product of a double-double and a float64."""
    p, e = two_prod(a[0], b)
    e += a[1] * b
    return fast_two_sum(p, e)


def reciprocal(a: Pair) -> Pair:
    """``1 / a``."""
    high = 1.0 / a[0]
    rh, rl = multiply_float(a, high)
    residue = (1.0 - rh) - rl
    return fast_two_sum(high, residue / a[0])


def tree_sum(a: Pair, plus: Callable[[Pair, Pair], Pair] = add) -> Pair:
    """Sum over the first axis by halving; every term meets at most ``ceil(log2 n)`` additions. Destroys its input.

    >>> tree_sum((np.arange(5.0), np.zeros(5)))
    (np.float64(10.0), np.float64(0.0))
    """
    high, low = a
    n = high.shape[0]
    if n == 0:
        return np.zeros(high.shape[1:]), np.zeros(high.shape[1:])
    while n > 1:
        keep = (n + 1) // 2
        fold = n - keep
        high[:fold], low[:fold] = plus((high[:fold], low[:fold]), (high[keep:n], low[keep:n]))
        n = keep
    return high[0], low[0]


def row_exponent(values: Floats) -> npt.NDArray[Any]:
    """The integer ``e`` of each column with ``2^(e-1) <= max |value| < 2^e``; 0 for a column of zeros."""
    exponent: npt.NDArray[Any] = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1]
    return exponent


def scaled(values: Floats, k: npt.NDArray[Any]) -> Floats:
    """``values * 2^k`` with one integer ``k`` in ``[-2000, 2000]`` for each column.

    In two steps, since ``2^k`` itself may not be representable; exact up to ``2^-1074`` absolutely.
    """
    half = k // 2
    result: Floats = values * np.ldexp(1.0, half)
    result *= np.ldexp(1.0, k - half)
    return result
