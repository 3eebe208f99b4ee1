"""``exp`` of non-positive float64 numbers from IEEE operations alone, with a proved error bound.

NumPy's own ``exp`` differs between builds and carries no proof. This one uses ``+ - * rint`` and scaling by powers of
two, so its error can be bounded once for every IEEE machine. With ``u = 2^-53`` and ``|x| <= 746``:

**Reduction.** ``k = rint(x / ln 2)``, ``r = (x - k L1) - k L2`` where ``L1 + L2`` is ln 2, ``L1`` holding its first
32 bits. ``k L1`` is exact (11 + 32 bits). So is ``x - k L1``: for ``k != 0`` both operands are multiples of ``2^-54``
(``|x| > 1/4``) and the difference is below ``1/2``. ``L1 + L2`` misses ln 2 by less than ``2^-86``, ``k L2`` is
rounded by less than ``2^-75``, and the last subtraction by at most ``2^-55`` because ``|r| < 1/2``. Hence ``|r - (x -
k ln 2)| <= REDUCTION = 2^-55 + 2^-73``, which is also the relative error that it causes. ``rint`` is given a product
with two roundings, so ``|r|`` may pass ``ln 2 / 2`` by ``746 * 2^-51``, far below the slack of ``RADIUS``.

**Polynomial.** Horner's rule for the Taylor polynomial of degree 13. All coefficients are positive, so every
intermediate value and error at ``r`` is bounded by the same recursion at ``RADIUS``: with ``p`` the value and ``e``
its error, one step is ``m = p R``, ``e <- e R + (m + e R) u`` (product), ``p <- m + c``, ``e <- e + (p + e) u + c u``
(sum and rounding of the coefficient ``c``). The remainder of the series is at most ``R^14 / 14! * e^R``.

**Result.** Dividing by the smallest value ``e^-R`` gives :data:`EXP64_BOUND`, about 5.7 u. Scaling by ``2^k`` is
exact for normal results; a subnormal result is rounded once more, by at most ``2^-1075``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch import Floats

UNIT = 2.0**-53
TINY = 2.0**-1074
LOWEST = -746.0
"""Arguments below this are taken as this one, whose exponential rounds to 0."""

_LOG2E = float.fromhex("0x1.71547652b82fep+0")
_LN2_HEAD = float.fromhex("0x1.62e42feep-1")
_LN2_TAIL = float.fromhex("0x1.a39ef35793c76p-33")
_COEFFICIENTS = tuple(1.0 / math.factorial(k) for k in range(14))
"""Correctly rounded: both operands of each division are exact, as ``13! < 2^53``."""

RADIUS = 0.34658
REDUCTION = 2.0**-55 + 2.0**-73

_SHIFT = 64
_POWERS = np.array([math.ldexp(1.0, k) for k in range(-1100 + _SHIFT, _SHIFT + 1)])


def power_of_two(k: npt.NDArray[Any]) -> Floats:
    """``2^(k + 64)`` for integer ``k`` in ``[-1100, 0]``; a table, since ``numpy.ldexp`` costs ten multiplications.

    >>> float(power_of_two(np.array([-64]))[0])
    1.0
    """
    powers: Floats = _POWERS[k + 1100]
    return powers


def _horner_bound() -> float:
    """The relative error bound of the module docstring, in float64 with a margin for its own rounding."""
    p, e = _COEFFICIENTS[-1], _COEFFICIENTS[-1] * UNIT
    for c in _COEFFICIENTS[-2::-1]:
        m = p * RADIUS
        e = e * RADIUS + (m + e * RADIUS) * UNIT
        p = m + c
        e += (p + e) * UNIT + c * UNIT
    # e^-R >= 1 - R + R^2/2 - R^3/6 and e^R <= 2, by the alternating series; no library exponential is trusted here.
    smallest = 1.0 - RADIUS + RADIUS**2 / 2.0 - RADIUS**3 / 6.0
    remainder = 2.0 * RADIUS**14 / math.factorial(14)
    polynomial = (e + remainder) / smallest
    return (polynomial + REDUCTION * (1.0 + 2.0**-40) + polynomial * REDUCTION) * (1.0 + 2.0**-40)


EXP64_BOUND = _horner_bound()
"""Relative error of :func:`exp64` on normal results."""


def exp64(x: Floats) -> Floats:
    """``exp(x)`` for ``x <= 0`` (``-inf`` included), any shape, float64.

    ``|exp64(x) - e^x| <= EXP64_BOUND * e^x + 2^-1075``. NaN gives an undefined result: callers mask first.
    Source: extension; the derivation is the module docstring.

    >>> float(exp64(np.array([0.0]))[0])
    1.0
    """
    x = np.maximum(x, LOWEST)
    k = np.rint(x * _LOG2E)
    r = x - k * _LN2_HEAD
    r -= k * _LN2_TAIL
    p = r * _COEFFICIENTS[13]
    p += _COEFFICIENTS[12]
    for c in _COEFFICIENTS[11::-1]:
        p *= r
        p += c
    # 2^-64 first, exactly: 2^k itself would be subnormal and the product rounded twice.
    p *= 2.0**-_SHIFT
    p *= power_of_two(k.astype(np.int64))
    return p
