r"""Elementwise arithmetic on :class:`~hardmask.spec.oracle.exact.Exact`: two words and a rigorous error.

The relative errors of the two-word operations are those of :mod:`~hardmask.spec.oracle.doubledouble`; the errors of
the operands are carried on to all orders. What leaves the range of float64 gets an infinite error: it claims nothing.
"""

from __future__ import annotations

import numpy as np

from ..batch import Floats
from ..oracle.doubledouble import add, multiply, tree_sum
from ..oracle.exact import Exact

MARGIN = 1.0 + 2.0**-20
"""Covers the roundings made while the bounds themselves are evaluated, for at most ``2^20`` terms."""

LOST = 2.0**-1066
"""More than what a product can lose to underflow."""

_UU = 2.0**-106
_SUM = 2.0**-99
"""Error of a sum of at most ``2^20`` numbers of two words, relative to the sum of their magnitudes."""


def exact(value: Floats) -> Exact:
    """Float64 numbers, exactly.

    >>> float(exact(np.ones(1)).error[0])
    0.0
    """
    zero = np.zeros_like(value)
    return Exact(value, zero, zero)


def size(a: Exact) -> Floats:
    """An upper bound of ``|a|``."""
    return (np.abs(a.value) + np.abs(a.low) + a.error) * MARGIN


def closed(value: Floats, low: Floats, error: Floats) -> Exact:
    """The enclosure, with an infinite error wherever a part of it is no number."""
    good = np.isfinite(value) & np.isfinite(low) & np.isfinite(error)
    return Exact(np.where(good, value, 0.0), np.where(good, low, 0.0), np.where(good, error, np.inf))


def times(a: Exact, b: Exact) -> Exact:
    """The product, entry by entry; shapes broadcast.

    >>> float(times(exact(np.full(1, 3.0)), exact(np.full(1, 0.5))).value[0])
    1.5
    """
    with np.errstate(over="ignore", invalid="ignore"):
        value, low = multiply((a.value, a.low), (b.value, b.low))
        left, right = np.abs(a.value) + np.abs(a.low), np.abs(b.value) + np.abs(b.low)
        carried = left * b.error + a.error * (right + b.error)
        return closed(value, low, MARGIN * (carried + 5.0 * _UU * left * right) + LOST)


def minus(a: Exact, b: Exact) -> Exact:
    """The difference, entry by entry; shapes broadcast."""
    with np.errstate(over="ignore", invalid="ignore"):
        value, low = add((a.value, a.low), (-b.value, -b.low))
        return closed(value, low, MARGIN * (a.error + b.error + 3.0 * _UU * np.abs(value)))


def plus(a: Exact, b: Exact) -> Exact:
    """The sum, entry by entry; shapes broadcast."""
    return minus(a, Exact(-b.value, -b.low, b.error))


def row_sum(a: Exact) -> Exact:
    """The sum over the last axis, which is kept with length 1.

    >>> float(row_sum(exact(np.ones((2, 3)))).value[1, 0])
    3.0
    """
    with np.errstate(over="ignore", invalid="ignore"):
        words = np.moveaxis(a.value, -1, 0).copy(), np.moveaxis(a.low, -1, 0).copy()
        magnitude = np.abs(a.value).sum(axis=-1) + np.abs(a.low).sum(axis=-1)
        error = MARGIN * (a.error.sum(axis=-1) + _SUM * magnitude)
        value, low = tree_sum(words)
        return closed(value[..., None], low[..., None], error[..., None])


def where(mask: np.typing.NDArray[np.bool_], a: Exact) -> Exact:
    """``a`` where the mask is True, exactly 0 elsewhere."""
    return Exact(np.where(mask, a.value, 0.0), np.where(mask, a.low, 0.0), np.where(mask, a.error, 0.0))


def transposed(a: Exact) -> Exact:
    """The last two axes swapped."""
    return Exact(a.value.swapaxes(-1, -2), a.low.swapaxes(-1, -2), a.error.swapaxes(-1, -2))
