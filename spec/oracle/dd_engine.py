"""The double-double engine: the oracle for float64.

**Weights.** The gap is formed exactly, as two words. Numerators have relative error ``2^-92.8`` (:mod:`.dd_exp`); so
has their sum, a weighted mean of these errors, plus ``3 u^2`` for each of at most 20 levels of the tree; reciprocal
and product add ``15 u^2``. Sum: ``2^-91.7``. Claimed is :data:`RELATIVE` ``= 2^-90``. Both words of a
weight are scaled down in one step. Below ``2^-1022`` this rounds the first by ``2^-1075`` at most; the second is then
at most ``2^-1076`` and may vanish. Above, only the second is rounded, and so may be the bound, by ``2^-1075`` each.
Either way ``2^-1074`` covers it. Scores further than 746 below the maximum get weight 0, and their true weight is
below ``2^-1076``.

**Sums.** A tree of double-double additions over at most ``2^20`` terms with a product of error ``2 u^2`` each is off
by at most ``62 u^2 (1 + 2^-40)`` times the sum of magnitudes, below :data:`SUM` ``= 2^-99`` of it.

**Derivative**, ``y_i = w_i (v_i - p)``, ``p = sum w_j v_j``: with ``E`` the error of the weights,

``E_p = sum E_j |v_j| + 2^-99 sum (w_j + E_j) |v_j|``,
``E_y = E_i |v_i - p| + (w_i + E_i)(E_p + 2^-102 (|v_i - p| + E_p))``.

Vectors are scaled by a power of two per row so that their largest entry is about ``2^900``: products then cannot
overflow, and what underflows is below ``2^-1900`` of that entry. ``|y_i|`` never exceeds half the range of ``v``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..batch import Bools, Floats
from .columns import chunks, columns, masked, row_maximum
from .dd_exp import dd_exp
from .doubledouble import (
    Pair,
    add_float,
    add_same_sign,
    multiply,
    multiply_float,
    reciprocal,
    row_exponent,
    scaled,
    tree_sum,
    two_prod,
    two_sum,
)
from .exact import Exact, ExactWeights
from .exp64 import LOWEST, TINY, power_of_two

RELATIVE = 2.0**-90
SUM = 2.0**-99
_STEP = 2.0**-102
_TOP = 900
_LOST = 2.0**-1066
"""More than a few products and scalings can lose to underflow, each a small multiple of ``2^-1074``."""

MARGIN = 1.0 + 2.0**-20
"""Covers the roundings made while the bounds themselves are evaluated, for at most ``2^20`` keys."""


class DoubleDoubleEngine:
    """A vectorised oracle with about 90 correct bits, for float64 inputs of any size and up to ``2^20`` keys.

    Source: extension; the bounds are derived in the module docstring.

    >>> answer = DoubleDoubleEngine().weights(np.array([[0.0, 0.0, np.nan]]), np.array([[True, True, False]]))
    >>> answer.weights.value
    array([[0.5, 0.5, 0. ]])
    """

    name = "double-double"

    def weights(self, scores: Floats, mask: Bools) -> ExactWeights:
        """The masked softmax of each row; shapes ``(R, n)``, either of them may be 0."""
        rows, keys = scores.shape
        value, low, error, gap = (np.empty((rows, keys)) for _ in range(4))
        total = np.empty(rows)
        for part in chunks(rows, keys):
            allowed = columns(mask[part])
            s = masked(columns(scores[part]), allowed, -np.inf)
            top = row_maximum(s)
            with np.errstate(over="ignore"):
                distance = top - s
            gap[part] = masked(distance, allowed, 0.0).T
            (high, small), total[part] = _softmax(s, top, distance <= -LOWEST)
            value[part] = high.T
            low[part] = small.T
            high *= RELATIVE * MARGIN
            high += TINY
            error[part] = masked(high, allowed, 0.0).T
        return ExactWeights(Exact(value, low, error), gap, total, mask)

    def derivative(self, exact: ExactWeights, vector: Floats) -> Exact:
        """``(diag(w) - w w^T) v`` per row, exactly 0 at blocked keys."""
        rows, keys = vector.shape
        value, low, error = (np.empty((rows, keys)) for _ in range(3))
        answer = exact.weights
        for part in chunks(rows, keys):
            allowed = columns(exact.mask[part])
            v, shift = _to_top(masked(columns(vector[part]), allowed, 0.0), _TOP)
            w = columns(answer.value[part]), columns(answer.low[part])
            ew = columns(answer.error[part])
            ph, pl = tree_sum(multiply_float(w, v))
            spread = add_float((-ph, -pl), v)
            y = multiply(w, spread)
            value[part] = scaled(y[0], -shift).T
            low[part] = scaled(y[1], -shift).T
            e = _derivative_error(w[0], ew, np.abs(v), np.abs(spread[0]))
            e = scaled(e, -shift)
            e += 2.0 * TINY
            error[part] = masked(e, allowed, 0.0).T
        return Exact(value, low, error)

    def total(self, values: Floats) -> Exact:
        """Sum over the last axis of finite values, with an error of ``2^-99`` times the sum of magnitudes."""
        return self._sum(values, None)

    def inner(self, a: Floats, b: Floats) -> Exact:
        """``sum a * b`` over the last axis of finite values, with an error of ``2^-99`` times the sum of magnitudes."""
        return self._sum(a, b)

    def _sum(self, a: Floats, b: Floats | None) -> Exact:
        rows, keys = a.shape
        value, low, error = np.empty(rows), np.empty(rows), np.empty(rows)
        for part in chunks(rows, keys):
            x, shift = _to_top(columns(a[part]), _TOP if b is None else _TOP // 2)
            terms: Pair = x, np.zeros_like(x)
            down = shift < 0
            if b is not None:
                y, other = _to_top(columns(b[part]), _TOP // 2)
                terms = two_prod(x, y)
                down |= other < 0
                shift = shift + other
            # Scaling up is exact; scaling down may lose 2^-1074 of one factor, which the other multiplies by 2^450.
            lost = np.where(down, _LOST * 2.0 ** (_TOP // 2), _LOST)
            size = np.abs(terms[0]).sum(axis=0) * (SUM * MARGIN) + keys * lost
            high, small = tree_sum(terms)
            with np.errstate(over="ignore"):  # a sum that float64 cannot hold is inf
                value[part] = np.ldexp(high, -shift)
                low[part] = np.ldexp(small, -shift)
                error[part] = np.ldexp(size, -shift) + 4.0 * TINY
        return Exact(value, low, error)


def _softmax(s: Floats, top: Floats, near: Bools) -> tuple[Pair, Floats]:
    """Weights of the columns of ``s`` and their sums; keys that are not ``near`` the maximum get 0."""
    return softmax_of_gaps(*two_sum(np.where(near, s, top), -top), near)


def softmax_of_gaps(high: Floats, low: Floats, near: Bools) -> tuple[Pair, Floats]:
    """Weights of columns whose scores lie ``high + low`` in ``[-746, 0]`` above their maximum, and the sums ``S``.

    Shapes ``(n, R)`` and ``(R,)``; keys that are not ``near`` get 0, and so does a column without one, with ``S = 1``.
    """
    high, low, k = dd_exp(high, low)
    weight = near.astype(np.float64)
    high *= weight
    low *= weight
    power = power_of_two(k)
    small = power * 2.0**-64
    sh, sl = tree_sum((high * small, low * small), add_same_sign)
    empty = sh == 0.0
    sh[empty], sl[empty] = 1.0, 0.0
    rh, rl = reciprocal((sh, sl))
    # 2^-64 goes into the reciprocal, so that one multiplication scales each word and rounds it at most once.
    wh, wl = multiply((high, low), (rh * 2.0**-64, rl * 2.0**-64))
    wh *= power
    wl *= power
    return (wh, wl), sh


def _to_top(values: Floats, top: int) -> tuple[Floats, npt.NDArray[np.int32]]:
    """``(values * 2^shift, shift)`` with the largest magnitude of each column just below ``2^top``."""
    shift = (top - row_exponent(values)).astype(np.int32)
    return scaled(values, shift), shift


def _derivative_error(w: Floats, ew: Floats, v: Floats, spread: Floats) -> Floats:
    """The bound ``E_y`` of the module docstring, from magnitudes ``v = |v_j|`` and ``spread = |v_i - p|``."""
    keys = w.shape[0]
    upper = w + ew
    centre = (ew * v).sum(axis=0) + SUM * (upper * v).sum(axis=0) + keys * _LOST
    e = spread + centre
    e *= _STEP
    e += centre
    e *= upper
    spread *= ew
    e += spread
    e *= MARGIN
    e += _LOST
    return e
