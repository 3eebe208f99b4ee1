r"""Budgets of the derivative ``y_i = w_i (g_i - p)``, ``p = <w, g>``: JVP and VJP are the same formula.

With ``E_i`` the budget of the weights, ``P = sum (w_j + E_j) |g_j|`` and ``gamma`` the relative error of an inner
product (one rounding per product, then a sum):

    E_p = sum E_j |g_j| + gamma P + |A| tiny
    E_y = E_i |g_i - p| + (w_i + E_i) (E_p + ((1 + u)^2 (1 + u_s) - 1) (|g_i - p| + E_p)) + tiny

for an implementation that evaluates the formula as it stands. A *composed* one differentiates exp, sum and division one
by one: ``e_i (g_i / S) - e_i sum(g_j e_j) / S^2``. Its two branches carry at most eight more roundings each and are
subtracted afterwards, which adds ``(w_i + E_i) (((1 - u)^-8 - 1) (|g_i| + P) + gamma P)`` and the underflow of the
intermediate products. If it also differentiates the maximum, the exact contribution is 0, but the reverse mode adds
``sum_k E_y[k]`` at the keys that attain the maximum, and the forward mode subtracts the maximum's tangent from every
other, which enlarges ``|g_i|`` and ``P`` by it.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from ..batch import Floats
from ..oracle.exact import ExactWeights
from .model import RoundingModel, up

Mode = Literal["vjp", "jvp"]


def derivative_budget(
    model: RoundingModel, exact: ExactWeights, weights_error: Floats, vector: Floats, mode: Mode, *, given: bool = False
) -> Floats:
    """Budget of each entry of ``J v``, shape ``(R, n)``; exactly 0 at blocked keys and on empty rows.

    ``vector`` is exact in float64, its blocked entries are not read. With ``given`` the weights inside the derivative
    are taken as they are, whatever their error: the budget then holds for the distance to ``J(w) v`` at the very
    weights that the implementation used (their error still moves the centre that is rounded against). That is what two
    evaluations of one map may differ by.
    """
    mask, u = exact.mask, model.u
    w = exact.weights.value
    g = np.where(mask, vector, 0.0)
    size = np.abs(g)
    bound = w + weights_error
    own = np.zeros_like(weights_error) if given else weights_error
    moved = (weights_error * size).sum(axis=1, keepdims=True)  # how far the weights' own error moves the centre
    n = mask.sum(axis=1, keepdims=True).astype(np.float64)
    centre = (w * g).sum(axis=1, keepdims=True)
    spread = np.abs(g - centre)
    gamma = np.expm1(model.log_sum(n) - np.log1p(-u))
    tiny = model.tiny

    mean_size = (bound * size).sum(axis=1, keepdims=True)
    e_centre = gamma * mean_size + n * tiny + (0.0 if given else moved)
    last = np.expm1(2.0 * np.log1p(u) + np.log1p(model.u_storage))
    error = own * spread + bound * (e_centre + last * (spread + moved + e_centre)) + tiny + model.tiny_storage
    if model.composed:
        top = (exact.gap == 0.0) & mask
        lift = np.where(top, size, 0.0).max(axis=1, keepdims=True, initial=0.0) if mode == "jvp" else 0.0
        eight = np.expm1(-8.0 * np.log1p(-u))
        error = error + bound * (eight * (size + mean_size + 2.0 * lift) + gamma * (mean_size + lift))
        numerator = np.exp(-np.minimum(exact.gap, 800.0))
        products = numerator * size.sum(axis=1, keepdims=True)
        error = error + tiny * (4.0 * (1.0 + size + mean_size + lift) + bound * n + products)
        if mode == "vjp":
            error = error + np.where(top, np.where(mask, error, 0.0).sum(axis=1, keepdims=True), 0.0)
    return np.where(mask, up(error), 0.0)


def inner_budget(left: Floats, left_error: Floats, right: Floats, right_error: Floats) -> Floats:
    """Budget of ``<a, J b> - <b, J a>`` when each ``J v`` is off by its own budget; shape ``(R,)``.

    ``sum |a_i| E_b[i] + sum |b_i| E_a[i]``: ``left`` meets ``left_error``, ``right`` meets ``right_error``. The inner
    products themselves are taken by the oracle, whose error is accounted for apart.
    """
    return up((np.abs(left) * left_error).sum(axis=1) + (np.abs(right) * right_error).sum(axis=1))
