r"""Budgets of the derivative ``y_i = w_i (g_i - p)``, ``p = <w, g>``: JVP and VJP are the same formula.

With ``E_i`` the budget of the weights, ``P = sum (w_j + E_j) |g_j|`` and ``gamma`` the relative error of an inner
product (one rounding per product, then a sum):

    E_p = sum E_j |g_j| + gamma P + |A| tiny
    E_y = E_i |g_i - p| + (w_i + E_i) (E_p + ((1 + u)^2 - 1) (|g_i - p| + E_p)) + tiny + (half an ulp of storage)

for an implementation that evaluates the formula as it stands. A *composed* one differentiates exp, sum and division one
by one: ``e_i (g_i / S) - e_i sum(g_j e_j) / S^2``. Its two branches carry at most eight more roundings each and are
subtracted afterwards, which adds ``(w_i + E_i) (((1 - u)^-8 - 1) (|g_i| + P) + gamma P)`` and the underflow of the
intermediate products. If it also differentiates the maximum, the exact contribution is 0, but the reverse mode adds
``sum_k E_y[k]`` at the keys that attain the maximum, and the forward mode subtracts the maximum's tangent from every
other, which enlarges ``|g_i|`` and ``P`` by it, and the products that meet ``1 / S^2``, where that underflows.

Under a model that rescales, or rebuilds the weights from a log-sum-exp, the weight that multiplies ``g_i`` and the one
that multiplies ``p`` need not be the same number: differentiating ``exp(s - L)`` takes the first from ``exp(s_i - L)``
and the second from ``e_i / S``. Each is within ``E_i``, so a composed derivative gets ``E_i (|g_i| + P)`` in place of
``E_i |g_i - p|``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..batch import Bools, Floats
from ..oracle.exact import ExactWeights
from .blocks import blocks
from .model import RoundingModel, up

Mode = Literal["vjp", "jvp"]


@dataclass(frozen=True, eq=False)
class DerivativeBudget:
    """Budgets of each entry of ``J v``, shape ``(R, n)``; exactly 0 at blocked keys and on empty rows.

    ``vjp``, ``jvp``: the distance to the true ``J v``. ``given``: the distance of a VJP to ``J(w) v`` at the very
    weights that it consumed, right or wrong. That is what two evaluations of one map may differ by.
    """

    vjp: Floats
    jvp: Floats
    given: Floats


def derivative_budget(
    model: RoundingModel, exact: ExactWeights, weights_error: Floats, vector: Floats
) -> DerivativeBudget:
    """The budgets of a batch (extension; derivation in the module docstring).

    ``vector`` is exact in float64, its blocked entries are not read.
    """
    out = DerivativeBudget(*(np.empty_like(weights_error) for _ in range(3)))
    for rows in blocks(*weights_error.shape):
        parts = _block(
            model,
            exact.mask[rows],
            exact.weights.value[rows],
            exact.gap[rows],
            exact.total[rows, None],
            weights_error[rows],
            vector[rows],
        )
        for whole, part in zip((out.vjp, out.jvp, out.given), parts, strict=True):
            whole[rows] = part
    return out


def _block(
    model: RoundingModel, mask: Bools, w: Floats, gap: Floats, total: Floats, weights_error: Floats, vector: Floats
) -> tuple[Floats, Floats, Floats]:
    u, tiny = model.u, model.tiny
    g = np.where(mask, vector, 0.0)
    size = np.abs(g)
    bound = w + weights_error
    n = mask.sum(axis=1, keepdims=True).astype(np.float64)
    spread = np.abs(g - (w * g).sum(axis=1, keepdims=True))
    moved = (weights_error * size).sum(axis=1, keepdims=True)  # how far the weights' own error moves the centre
    mean_size = (bound * size).sum(axis=1, keepdims=True)
    gamma = np.expm1(model.log_sum(n) - np.log1p(-u))
    e_centre = gamma * mean_size + n * tiny
    last = np.expm1(2.0 * np.log1p(u))

    given = bound * (e_centre + last * (spread + moved + e_centre)) + tiny
    if model.composed:
        top = mask & (gap == 0.0)
        lift = np.where(top, size, 0.0).max(axis=1, keepdims=True, initial=0.0)
        eight = np.expm1(-8.0 * np.log1p(-u))
        given += bound * (eight * (size + mean_size) + gamma * mean_size)
        products = (w * total) * size.sum(axis=1, keepdims=True)
        given += tiny * (4.0 * (1.0 + size + mean_size) + bound * n + products)
    # The weights' own error, in the entry itself and through the centre.
    # Composed of numerators that are not those of the sum, the two branches see weights that are wrong apart.
    apart = size + mean_size if model.composed and not model.shared else spread
    full = given + weights_error * apart + bound * (moved * (1.0 + last))
    largest = bound * (spread + moved)

    def stored(error: Floats) -> Floats:
        if model.storage != model.compute:
            error = error + model.storage_error(largest + error)
        return np.where(mask, up(error), 0.0)

    if not model.composed:
        plain = stored(full)
        return plain, plain, stored(given)
    lifted = bound * ((2.0 * eight + gamma) * lift) + tiny * lift * (4.0 + w * total * n)

    def through_maximum(error: Floats) -> Floats:
        return error + np.where(top, np.where(mask, error, 0.0).sum(axis=1, keepdims=True), 0.0)

    return stored(through_maximum(full)), stored(full + lifted), stored(through_maximum(given))


def inner_budget(left: Floats, left_error: Floats, right: Floats, right_error: Floats) -> Floats:
    """Budget of ``<a, J b> - <b, J a>`` when each ``J v`` is off by its own budget; shape ``(R,)``.

    ``sum |a_i| E_b[i] + sum |b_i| E_a[i]``: ``left`` meets ``left_error``, ``right`` meets ``right_error``. The inner
    products themselves are taken by the oracle, whose error is accounted for apart.
    """
    return up((np.abs(left) * left_error).sum(axis=1) + (np.abs(right) * right_error).sum(axis=1))
