r"""Products of stacks of matrices of two words, with a rigorous error, from exact BLAS products.

**Slices** (Ozaki, Ogita, Oishi and Rump, "Error-free transformations of matrix multiplication", Numerical Algorithms
59, 2012). Every row of ``a`` and every column of ``b`` is scaled by a power of two so that its entries are below 1, and
cut into ``count`` slices of ``bits`` bits: slice ``s`` holds multiples of ``2^(-bits (s + 1))`` of size at most
``2^(-bits s)``. With ``2 bits + log2 n <= 53`` the product of two slices over an inner axis of length ``n`` is exact in
float64, in any order of the additions and with or without fused operations: all partial sums are integers below
``2^53`` of one unit. The products ``a_s b_t`` with ``s + t < count`` are added up in two words.

**Error.** What is left out is known, because slicing is free of errors. With ``tail_t(b)`` what the first ``t`` slices
leave of ``b`` and ``E`` the errors of the operands,

    |a b - sum| <= sum_s |a_s| |tail_(count - s)(b)| + (|tail_count(a)| + E_a)(|b| + E_b) + |a| E_b

in float64 products of magnitudes. Adding ``m`` exact matrices ``p`` in two words, the second one plainly, is off by at
most ``m^2 2^-106 sum |p|``. Parts of a bound below ``2^-500`` of their row are replaced by that much for each pair of
numbers other than 0, which covers what scaling loses to underflow; products of subnormal numbers would be slow.

**Balance.** Where the inner axis is that of the keys (or queries), entry ``j`` of the rows of ``a`` is multiplied by
the size of row ``j`` of ``b`` first, and row ``j`` of ``b`` divided by it: powers of two, exact. A key that is huge
then costs only those queries digits that may see it.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..batch import Floats
from ..oracle.doubledouble import fast_two_sum, two_sum
from ..oracle.exact import Exact
from .enclosed import MARGIN, closed

Ints = npt.NDArray[np.int32]

_LEAST = -5000
"""Below the exponent of every float64."""

_SMALL = 2.0**-500
"""Parts of a bound that are smaller, where rows are scaled to 1, are accounted for together."""

_UU = 2.0**-106


def product(a: Exact, b: Exact, count: int, *, balanced: bool = False) -> Exact:
    """``a b`` for stacks of shape ``(N, m, n)`` and ``(N, n, p)``; any length may be 0.

    ``count``: slices; 3 give some 60 bits, 5 some 100. Source: extension; the bounds are derived in the module
    docstring.

    >>> from .enclosed import exact
    >>> third = exact(np.full((1, 1, 3), 1.0 / 3.0))
    >>> square = product(third, exact(np.full((1, 3, 1), 1.0 / 3.0)), 5)
    >>> float(square.value[0, 0, 0]), bool(square.error[0, 0, 0] < 2.0**-95)
    (0.3333333333333333, True)
    """
    inner = a.value.shape[-1]
    shape = (*a.value.shape[:-1], b.value.shape[-1])
    if inner == 0 or 0 in shape:
        zero = np.zeros(shape)
        return Exact(zero, zero, zero)
    bits = (53 - math.ceil(math.log2(inner))) // 2
    a_exponents, b_exponents = _exponents(a), _exponents(b)
    key = _top(b_exponents, -1) if balanced else np.zeros((1, 1, 1), np.int32)
    rows = _top(np.where(a_exponents == _LEAST, _LEAST, a_exponents + key.swapaxes(-1, -2)), -1)
    columns = _top(np.where(b_exponents == _LEAST, _LEAST, b_exponents - key), -2)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        left, left_tails, left_error = _sliced(a, key.swapaxes(-1, -2) - rows, bits, count)
        right, right_tails, right_error = _sliced(b, -key - columns, bits, count)
        high, low, magnitude = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        products = 0
        for order in range(count - 1, -1, -1):
            for s in range(order + 1):
                a_part, b_part = left[s], right[order - s]
                if a_part is None or b_part is None:
                    continue
                term = a_part @ b_part
                products += 1
                magnitude += np.abs(term)
                high, rest = two_sum(high, term)
                low += rest
        high, low = fast_two_sum(high, low)
        error = (left_tails[count] + left_error) @ (right_tails[0] + right_error) + left_tails[0] @ right_error
        for s in range(count):
            a_part = left[s]
            if a_part is not None and right_tails[count - s].any():
                error += np.abs(a_part) @ right_tails[count - s]
        pairs = (a_exponents != _LEAST).astype(np.float64) @ (b_exponents != _LEAST).astype(np.float64)
        error += products**2 * _UU * magnitude + pairs * ((count + 3) * _SMALL)
        back = rows + columns
        value, small = np.ldexp(high, back), np.ldexp(low, back)
        return closed(value, small, np.ldexp(error * MARGIN, back) + 2.0**-1072)


def _exponents(x: Exact) -> Ints:
    """``e`` with ``|value| < 2^e`` and ``error < 2^e``, far below all where both are 0."""
    size = np.maximum(np.abs(x.value), x.error)
    return np.where(size > 0.0, np.frexp(size)[1], _LEAST).astype(np.int32)


def _top(exponents: Ints, axis: int) -> Ints:
    """The largest along an axis, 0 where all values are 0."""
    top = exponents.max(axis=axis, keepdims=True)
    return np.where(top == _LEAST, 0, top).astype(np.int32)


def _sliced(x: Exact, shift: Ints, bits: int, count: int) -> tuple[list[Floats | None], list[Floats], Floats]:
    """Slices of ``x 2^shift`` (None for one of zeros only), what each number of them leaves, and the scaled error."""
    rest = np.ldexp(x.value, shift)
    low = np.ldexp(x.low, shift) if x.low.any() else None
    parts: list[Floats | None] = []
    tails = [np.abs(rest) if low is None else np.abs(rest) + np.abs(low)]
    for s in range(count):
        big = 1.5 * 2.0 ** (52 - bits * (s + 1))
        part = (rest + big) - big
        rest = rest - part
        if low is not None:
            rest, low = two_sum(rest, low)
        parts.append(part if part.any() else None)
        tails.append(np.abs(rest) if low is None else np.abs(rest) + np.abs(low))
    error = np.ldexp(x.error, shift)
    return parts, [np.where(tail < _SMALL, 0.0, tail) for tail in tails], np.where(error < _SMALL, 0.0, error)
