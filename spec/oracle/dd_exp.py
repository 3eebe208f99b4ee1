"""``exp`` of non-positive double-doubles, with a derived error bound.

With ``u = 2^-53``, ``N = 4096``, ``|x| <= 746``:

**Reduction.** ``q = rint(x N / ln 2)`` has at most 23 bits, ``r = x - q ln2/N``. The constant is the sum of three
words; the first two have at most 30 bits, so their products with ``q`` are exact. ``x_high - q C1`` is exact: for ``q
!= 0`` both are multiples of ``2^-66`` and the difference is below ``2^-13``. The second subtraction keeps its
rounding error. What is left is the rounding of ``x_low - q C3`` and of its sum with that error, each at most
``2^-97`` because ``|x_low| <= 2^-44``. Together with the third word's own error: ``2^-95.9`` absolutely in ``r``,
hence relatively in the result.

**Polynomial.** ``|r| <= 2^-13.5``, so ``e^r - 1 = r + r^2/2 + r^2/2 (r/3 + r^2/12 + r^3/60 + r^4/360) + rest`` with
``rest <= r^7/5040 < 2^-106``. ``r + r^2/2`` is carried in two words. The third summand is below ``2^-43.1`` and has
fewer than five roundings: ``2^-93.8``. Leaving ``r_low`` out of it costs ``r^2/2 |r_low| <= 2^-94.6``.

**Table.** ``2^(j/N)`` in two words, relative error ``2^-106``, and a product with four roundings of size ``u^2`` or
less.

Sum: ``2^-95.9 + 2^-93.8 + 2^-94.6 + 2^-103 < 2^-92.8``, which is :data:`DD_EXP_BOUND`.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch import Floats
from .doubledouble import fast_two_sum, two_prod, two_sum

_BITS = 12
_N = 1 << _BITS
_INVERSE = float.fromhex("0x1.71547652b82fep+12")
_C1 = float.fromhex("0x1.62e42fe8p-13")
_C2 = float.fromhex("0x1.e8e7bcdp-43")
_C3 = float.fromhex("0x1.793c7673007e6p-73")

DD_EXP_BOUND = 2.0**-92.8
"""Relative error of :func:`dd_exp`."""


@cache
def _table() -> tuple[Floats, Floats]:
    """``2^(j/4096)`` for ``j = 0..4095`` as two words, from integer square roots and products with 256 bits."""
    bits = 256
    root = 2 << bits
    for _ in range(_BITS):  # root of 2^bits * value, twelve times: value = 2^(1/4096)
        root = math.isqrt(root << bits)
    high, low = np.empty(_N), np.empty(_N)
    value = 1 << bits
    for j in range(_N):
        head = value / (1 << bits)  # division of integers rounds correctly
        high[j] = head
        low[j] = (value - int(head * 2.0**60) * (1 << (bits - 60))) / (1 << bits)
        value = (value * root) >> bits
    return high, low


def dd_exp(high: Floats, low: Floats) -> tuple[Floats, Floats, npt.NDArray[Any]]:
    """``(h, l, k)`` with ``(h + l) 2^k = exp(high + low)`` up to the relative error :data:`DD_EXP_BOUND`.

    ``high`` in ``[-746, 0]``, ``|low|`` at most half an ulp of it; any shape. ``h`` lies in ``[0.99, 2.01]`` and
    ``k`` in ``[-1077, 0]``. Source: extension; the derivation is the module docstring.

    >>> h, l, k = dd_exp(np.zeros(1), np.zeros(1))
    >>> float(h[0]), float(l[0]), int(k[0])
    (1.0, 0.0, 0)
    """
    q = np.rint(high * _INVERSE)
    rh, rl = two_sum(high - q * _C1, q * -_C2)
    rl += low - q * _C3
    rh, rl = two_sum(rh, rl)

    g = rh * (1.0 / 360.0)
    g += 1.0 / 60.0
    g *= rh
    g += 1.0 / 12.0
    g *= rh
    g += 1.0 / 3.0
    g *= rh
    p, pe = two_prod(rh, rh * 0.5)
    g *= p
    s, se = fast_two_sum(p, g)
    mh, ml = fast_two_sum(rh, s)
    rl += rl * rh
    rl += pe
    rl += se
    ml += rl

    index = q.astype(np.int64)
    k = index >> _BITS
    index &= _N - 1
    table_high, table_low = _table()
    th, tl = table_high[index], table_low[index]
    p, pe = two_prod(mh, th)
    h, e = fast_two_sum(th, p)
    ml *= th
    mh *= tl
    pe += ml
    pe += mh
    pe += tl
    e += pe
    h, e = fast_two_sum(h, e)
    return h, e, k
