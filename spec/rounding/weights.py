r"""Budgets of the forward pass: each weight, and the sum of a row.

Notation: ``A`` the allowed keys, ``M`` the largest allowed score, ``d_i = M - s_i``, ``e_i = exp(-d_i)``,
``S = sum e_i``, ``w_i = e_i / S``; ``u`` the unit roundoff of the compute format.

The computed numerator is ``e_i exp(±a_i) (1 ± alpha u) ± tau``, with ``a_i = d_i u`` the rounding of ``s_i - M``, which
is 0 wherever that difference is representable. The computed quotient is

    w_i (1 + p_i) / ((1 + w_i p_i + sum_{j != i} w_j p_j) (1 - u)^h ...),    |p_j| within exp(±a_j) (1 ± alpha u) - 1,

with ``h <= |A| - 1`` additions: the key's own numerator stands in the sum as well, so its error cancels there in the
measure of its weight. The quotient grows with ``p_i`` and falls with every other ``p_j``, so the extremes are at the
corners. Taking logarithms gives ``L_i``, and

    E_i = w_i (exp(L_i) - 1) + tau_i / S exp(...) + (underflow of the quotient) + (half an ulp of the storage format).

To first order ``E_i / w_i = 2 (1 - w_i) alpha u + (1 - w_i) a_i + sum_{j != i} w_j a_j + (h + divisions) u``, and since
``sum w_j d_j = entropy(w) - log S <= log |A|``, the spread of the row enters through ``d_i`` of the entry itself only.
At blocked keys and on empty rows the budget is exactly 0.

How large ``a_i`` is depends on how the exponent is formed (:mod:`~hardmask.spec.rounding.arguments`). Under a model
that rescales (``online``) or rebuilds the weights from a log-sum-exp (``lse``), the numerator that is divided is not
the one that was added up: nothing cancels, neither in a weight nor in the row sum.

Scores that are themselves computed, with errors up to ``D_i``, enlarge ``a_i`` by ``D_i`` (:func:`~hardmask.spec.\
rounding.arguments.disturbed`); the computed maximum is common to the row, so that its error cancels but for a common
factor of ``exp(max D)``, which matters beside numbers that underflow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..batch import Bools, Floats
from ..oracle.exact import ExactWeights
from .arguments import LARGE, common_factor, disturbed, divided, rescales, summed
from .blocks import blocks
from .model import RoundingModel, up


@dataclass(frozen=True, eq=False)
class WeightsBudget:
    """``error[r, i]`` bounds the error of weight ``i`` of row ``r``; ``sum_error[r]`` that of the row's exact sum."""

    error: Floats
    sum_error: Floats


@dataclass(frozen=True, eq=False)
class Disturbance:
    """What a kernel adds to a softmax inside it, for the rows of a batch.

    ``scores``: bounds of the errors of the scores, shape ``(R, n)``. ``turns``: how often a numerator may be rescaled
    at most, shape ``(R, 1)``, with an exponential whose error is ``alpha`` in u; for a model that is ``online``.
    """

    scores: Floats
    turns: Floats
    alpha: float


def weights_budget(
    model: RoundingModel, scores: Floats, exact: ExactWeights, disturbance: Disturbance | None = None
) -> WeightsBudget:
    """The budgets of every weight and every row sum of a batch (extension; derivation in the module docstring)."""
    error, sum_error = np.empty_like(exact.gap), np.empty(len(exact.gap))
    for rows in blocks(*exact.gap.shape):
        parts = scores[rows], exact.mask[rows], exact.gap[rows], exact.weights.value[rows], exact.total[rows, None]
        part = disturbance and Disturbance(disturbance.scores[rows], disturbance.turns[rows], disturbance.alpha)
        error[rows], sum_error[rows] = _block(model, *parts, part)
    return WeightsBudget(error, sum_error)


def _block(
    model: RoundingModel, scores: Floats, mask: Bools, gap: Floats, w: Floats, total: Floats, added: Disturbance | None
) -> tuple[Floats, Floats]:
    u, alpha = model.u, model.alpha * model.u
    e = w * total
    a = summed(model, scores, mask, gap) if added is None else disturbed(model, scores, mask, gap, added.scores)
    grow, shrink = a + np.log1p(alpha), a - np.log1p(-alpha)
    tiny, small_limit = np.full(1, model.tiny), np.full(1, 4.0 * model.compute.lam)
    if model.argument != "shift":
        factor = common_factor(model, scores, mask)
        tiny, small_limit = tiny * factor, small_limit * factor
    if added is not None:
        # The computed maximum and the score itself may lie elsewhere.
        worst = np.where(mask, np.minimum(added.scores, LARGE), 0.0).max(axis=1, keepdims=True, initial=0.0)
        tiny, small_limit = tiny * np.exp(worst), small_limit * np.exp(2.0 * worst)
    if model.online:
        # For every rescaling another exp and a product.
        turns = rescales(mask, gap) if added is None else added.turns
        again = alpha if added is None else added.alpha * u
        grow = grow + turns * (np.log1p(again) + np.log1p(u))
        shrink = shrink - turns * (np.log1p(-again) + np.log1p(-u))
        if model.argument != "lse":
            # One numerator is its own sum.
            alone = mask.sum(axis=1, keepdims=True) == 1
            grow, shrink = np.where(alone, 0.0, grow), np.where(alone, 0.0, shrink)
        tiny = tiny * (1.0 + turns)

    # ``w S`` is the numerator; where it underflowed in float64 it is far below every limit all the same.
    below = mask & (e < small_limit)
    some_below = bool(below.any())
    tau = np.where(below, tiny, 0.0) if some_below else np.zeros((len(w), 1))
    tau_sum = tau.sum(axis=1, keepdims=True) / total
    log_sum = model.log_sum(mask.sum(axis=1, keepdims=True).astype(np.float64))
    ups, downs = w * np.expm1(grow), w * -np.expm1(-shrink)
    others_up, others_down = ups, downs
    if model.cast_numerators:
        # The sum may be built from the numerators before or after they are cast.
        others_up = w * np.expm1(grow + np.log1p(model.u_cast))
        others_down = w * -np.expm1(-shrink + np.log1p(-model.u_cast))
        small = mask & (e < 4.0 * model.storage.lam)
        tau_sum = tau_sum + small.sum(axis=1, keepdims=True) * model.tiny_storage / total
    # The sum, relative to S, when this key's numerator is at one end and all others are at the other.
    low = -(others_down.sum(axis=1, keepdims=True) + tau_sum)
    high = others_up.sum(axis=1, keepdims=True) + tau_sum
    if model.shared:
        low, high = low + (others_down + ups), high - (others_up + downs)
    if model.argument == "lse":
        further = divided(model, scores, mask, gap, total) - summed(model, scores, mask, gap)
        grow, shrink = grow + further, shrink + further
    low, high = np.maximum(low, -0.999999), np.maximum(high, -0.999999)
    last_up = model.divisions * np.log1p(u) + np.log1p(model.u_cast)
    last_down = -model.divisions * np.log1p(-u) - np.log1p(-model.u_cast)
    sum_low, sum_high = log_sum - np.log1p(low), log_sum + np.log1p(high)
    log_error = np.maximum(grow + sum_low + last_up, np.minimum(shrink, LARGE) + sum_high + last_down)
    relative = w * np.expm1(np.minimum(log_error, 700.0))

    lost = model.compute.lam if model.flush else model.compute.eta
    absolute = np.where(w + relative < 4.0 * model.compute.lam, lost, 0.0)
    if some_below or model.cast_numerators:
        scale = np.exp(np.minimum(sum_low, 700.0)) / total * (1.0 + 4.0 * u)
        absolute = absolute + scale * tau
    if model.cast_numerators:
        absolute = absolute + np.where(e < 4.0 * model.storage.lam, scale * model.tiny_storage, 0.0)
    error = np.where(mask, relative + absolute, 0.0)
    stored = np.where(mask, model.storage_error(w + error), 0.0)
    if model.shared:
        sums = _sum_budget(model, w, mask, log_sum[:, 0])
    else:
        most = np.log1p((w * np.expm1(grow)).sum(axis=1)) + sum_low[:, 0] + last_up
        down = np.minimum((w * -np.expm1(-shrink)).sum(axis=1), 0.999999)
        least = -np.log1p(-down) + sum_high[:, 0] + last_down
        sums = np.expm1(np.minimum(np.maximum(most, least), 700.0)) + np.where(mask, absolute, 0.0).sum(axis=1)
        sums = np.where(np.any(mask, axis=1), up(sums), 0.0)
    return up(error + stored), sums + up(stored.sum(axis=1))


def _sum_budget(model: RoundingModel, w: Floats, mask: Bools, log_sum: Floats) -> Floats:
    """``|sum of the weights - 1|`` before they are stored, the sum taken exactly; shape ``(R,)``, 0 on empty rows.

    The computed sum is built from the same numerators that are divided by it, so the errors of exp and of the shift
    cancel: only the additions and the division remain. This is the sharpest detector of a wrong reduction or
    denominator.
    """
    log_error = log_sum - model.divisions * np.log1p(-model.u) - np.log1p(-model.u_cast)
    tiny = (mask & (w < 8.0 * model.compute.lam)).sum(axis=1) * (
        model.compute.lam if model.flush else model.compute.eta
    )
    if model.cast_numerators:
        tiny = tiny + (mask & (w < 8.0 * model.storage.lam)).sum(axis=1) * model.tiny_storage
    return np.where(np.any(mask, axis=1), up(np.expm1(np.minimum(log_error, 700.0)) + tiny), 0.0)
