"""The certified float64 engine: the oracle for float32, float16 and bfloat16.

Notation: ``u = 2^-53``, ``d_i = max - s_i``, ``e_i = exp(-d_i)``, ``S = sum e_i`` in ``[1, n]``, ``B`` the bound of
:func:`~hardmask.spec.oracle.exp64.exp64`.

**Weights.** The gap ``fl(max - s_i)`` has relative error ``u``, hence ``e_i`` has relative error ``B + d_i u`` to
first order. The sum adds ``(n - 1) u`` in any order and averages the errors of its terms with the weights, where
``sum w_j d_j = H(w) - ln S <= ln n`` (the entropy of at most ``n`` outcomes). One division follows:

``|w^_i - w_i| <= w_i (2 B + (d_i + ln n + n) u) + 2^-1073``.

Terms of second order are below ``2^-30`` of these for ``n <= 10^6`` and are covered by the factor :data:`MARGIN`.
``2^-1073`` covers the roundings of a subnormal numerator, of the quotient and of the bound itself; scores further
than 746 below the maximum get weight 0, and their true weight is below ``2^-1076``.

**Derivative**, ``y_i = w_i (v_i - p)``, ``p = sum w_j v_j``: with ``E`` the error of the weights, ``P = sum (w_j +
E_j) |v_j|`` and ``gamma = n u`` (product and ``n - 1`` additions),

``E_p = sum E_j |v_j| + gamma P``, ``E_y = E_i |v_i - p| + (w_i + E_i)(E_p + 3 u (|v_i - p| + E_p))``,

with absolute terms for products below ``2^-1022``.
"""

from __future__ import annotations

import math

import numpy as np

from ..batch import Bools, Floats
from .columns import chunks, columns, masked, row_maximum
from .exact import Exact, ExactWeights
from .exp64 import EXP64_BOUND, LOWEST, TINY, UNIT, exp64

MARGIN = 1.0 + 2.0**-20
"""Covers second-order terms and the roundings made while the bounds themselves are evaluated."""


class Float64Engine:
    """A vectorised oracle in float64 with a rigorous bound, for up to a million keys.

    For scores, vectors and results that float32, float16 or bfloat16 can hold, the largest included. It also takes
    float64 scores; products of float64 vectors may overflow, which the double-double engine avoids.
    Source: extension; the bounds are derived in the module docstring.

    >>> answer = Float64Engine().weights(np.array([[0.0, 0.0, np.nan]]), np.array([[True, True, False]]))
    >>> answer.weights.value
    array([[0.5, 0.5, 0. ]])
    >>> answer.weights.error[0, 2]
    np.float64(0.0)
    """

    name = "float64 with a proved exponential"

    def weights(self, scores: Floats, mask: Bools) -> ExactWeights:
        """The masked softmax of each row; shapes ``(R, n)``, either of them may be 0."""
        rows, keys = scores.shape
        value, error, gap = (np.empty((rows, keys)) for _ in range(3))
        total = np.empty(rows)
        relative = MARGIN * (2.0 * EXP64_BOUND + (keys + math.log(max(keys, 1))) * UNIT)
        for part in chunks(rows, keys):
            allowed = columns(mask[part])
            s = masked(columns(scores[part]), allowed, -np.inf)
            with np.errstate(over="ignore"):
                s = row_maximum(s) - s
            gap[part] = masked(s, allowed, 0.0).T
            np.minimum(s, -LOWEST, out=s)
            e = exp64(-s)  # exactly 0 at blocked keys, where the gap is infinite
            sums: Floats = e.sum(axis=0)
            sums[sums == 0.0] = 1.0
            total[part] = sums
            e /= sums
            value[part] = e.T
            s *= MARGIN * UNIT
            s += relative
            s *= e
            s += 2.0 * TINY
            error[part] = masked(s, allowed, 0.0).T
        return ExactWeights(Exact(value, np.zeros((rows, keys)), error), gap, total, mask)

    def derivative(self, exact: ExactWeights, vector: Floats) -> Exact:
        """``(diag(w) - w w^T) v`` per row, exactly 0 at blocked keys."""
        rows, keys = vector.shape
        value, error = np.empty((rows, keys)), np.empty((rows, keys))
        for part in chunks(rows, keys):
            allowed = columns(exact.mask[part])
            v = masked(columns(vector[part]), allowed, 0.0)
            w = columns(exact.weights.value[part])
            ew = columns(exact.weights.error[part])
            centre = (w * v).sum(axis=0)
            spread = v - centre
            value[part] = (w * spread).T
            np.abs(spread, out=spread)
            np.abs(v, out=v)
            upper = w + ew
            gamma = keys * UNIT
            centre_error = MARGIN * ((ew * v).sum(axis=0) + gamma * (upper * v).sum(axis=0) + keys * 2.0 * TINY)
            e = MARGIN * (ew * spread + upper * (centre_error + 3.0 * UNIT * (spread + centre_error))) + 2.0 * TINY
            error[part] = masked(e, allowed, 0.0).T
        return Exact(value, np.zeros((rows, keys)), error)

    def total(self, values: Floats) -> Exact:
        """Sum over the last axis; the error is ``n u`` times the sum of magnitudes."""
        value = values.sum(axis=-1)
        error = MARGIN * UNIT * values.shape[-1] * np.abs(values).sum(axis=-1)
        return Exact(value, np.zeros_like(value), error)

    def inner(self, a: Floats, b: Floats) -> Exact:
        """``sum a * b`` over the last axis; the error is ``(n + 1) u`` times the sum of magnitudes, plus underflow."""
        keys = a.shape[-1]
        products = a * b
        value = products.sum(axis=-1)
        size = np.abs(products, out=products).sum(axis=-1)
        error = (MARGIN * UNIT * (keys + 1)) * size + keys * TINY
        return Exact(value, np.zeros_like(value), error)
