r"""Budgets of the forward pass: each weight, and the sum of a row.

Notation: ``A`` the allowed keys, ``M`` the largest allowed score, ``d_i = M - s_i``, ``e_i = exp(-d_i)``,
``S = sum e_i``, ``w_i = e_i / S``; ``u`` the unit roundoff of the compute format.

The computed numerator is ``e_i exp(±a_i) (1 ± alpha u) ± tau``, with ``a_i = d_i u`` the rounding of ``s_i - M``, which
is 0 wherever that difference is representable. The computed sum is ``S`` times at least
``(1 - sum w_j (1 - exp(-a_j)) - sum tau_j / S) (1 - alpha u) (1 - u)^h`` with ``h <= |A| - 1`` additions. Dividing the
one by the other and rounding gives the logarithm ``L_i`` of the relative error, and

    E_i = w_i (exp(L_i) - 1) + tau_i / S exp(...) + (underflow of the quotient and of its storage).

To first order ``E_i / w_i = (a_i + sum w_j a_j + 2 alpha u) + (h + divisions) u + u_storage``; since
``sum w_j d_j = entropy(w) - log S <= log |A|``, the spread of the row enters through ``d_i`` of the entry itself only.
At blocked keys and on empty rows the budget is exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..batch import Bools, Floats
from ..oracle.exact import ExactWeights
from .blocks import blocks
from .model import RoundingModel, up

_LARGE = 50.0  # exp(50) times any weight is far beyond 1: a larger argument error says nothing more


@dataclass(frozen=True, eq=False)
class WeightsBudget:
    """``error[r, i]`` bounds the error of weight ``i`` of row ``r``; ``sum_error[r]`` that of the row's exact sum."""

    error: Floats
    sum_error: Floats


def argument_error(model: RoundingModel, scores: Floats, mask: Bools, gap: Floats) -> Floats:
    """Bound on the error of the exponent ``fl(s_i - M)``, shape ``(R, n)``, 0 at blocked keys.

    Rounded to nearest the error is at most ``d_i u``, and 0 where ``s_i - M`` is representable in the compute format
    (Sterbenz: always for close scores). ``scores`` are exact in float64; blocked ones are not read.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        top = np.where(mask, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
        top = np.where(np.isfinite(top), top, 0.0)
        s = np.where(mask, scores, top)
        # The error of the float64 subtraction itself (Knuth's two-sum): 0 when the gap is exact in float64.
        back = gap - top
        lost = (top - (gap - back)) - (s + back)
        exact = (lost == 0.0) & (gap.astype(model.compute.dtype).astype(np.float64) == gap)
        a = np.where(exact, 0.0, gap * model.u)
    if model.flush:
        a = a + model.compute.lam
    return np.where(mask, np.minimum(a, _LARGE), 0.0)


def weights_budget(model: RoundingModel, scores: Floats, exact: ExactWeights) -> WeightsBudget:
    """The budgets of every weight and every row sum of a batch (extension; derivation in the module docstring)."""
    error, sum_error = np.empty_like(exact.gap), np.empty(len(exact.gap))
    for rows in blocks(*exact.gap.shape):
        parts = scores[rows], exact.mask[rows], exact.gap[rows], exact.weights.value[rows], exact.total[rows, None]
        error[rows], sum_error[rows] = _block(model, *parts)
    return WeightsBudget(error, sum_error)


def _block(
    model: RoundingModel, scores: Floats, mask: Bools, gap: Floats, w: Floats, total: Floats
) -> tuple[Floats, Floats]:
    u, alpha = model.u, model.alpha * model.u
    a = argument_error(model, scores, mask, gap)
    e = w * total

    # ``w S`` is the numerator; where it underflowed in float64 it is far below every limit all the same.
    tau = np.where(mask & (e < 4.0 * model.compute.lam), model.tiny, 0.0)
    tau_sum = tau.sum(axis=1, keepdims=True) / total
    low = np.minimum((w * -np.expm1(-a)).sum(axis=1, keepdims=True) + tau_sum, 0.999999)
    high = (w * np.expm1(a)).sum(axis=1, keepdims=True) + tau_sum
    log_sum = model.log_sum(mask.sum(axis=1, keepdims=True).astype(np.float64))
    exp_up, exp_down = np.log1p(alpha), -np.log1p(-alpha)
    sum_low = -np.log1p(-low) + exp_down + log_sum
    sum_high = np.log1p(high) + exp_up + log_sum
    last_up = model.divisions * np.log1p(u) + np.log1p(model.u_storage) + np.log1p(model.u_cast)
    last_down = -model.divisions * np.log1p(-u) - np.log1p(-model.u_storage) - np.log1p(-model.u_cast)
    log_error = np.minimum(a + np.maximum(exp_up + sum_low + last_up, exp_down + sum_high + last_down), 700.0)

    grown = w * np.exp(log_error)
    small = grown < 4.0 * model.compute.lam
    absolute = np.where(small, model.compute.lam if model.flush else model.compute.eta, 0.0)
    if model.tiny_storage:
        absolute = absolute + np.where(grown < 4.0 * model.storage.lam, model.tiny_storage, 0.0)
    scale = np.exp(np.minimum(sum_low, 700.0)) / total
    absolute = absolute + scale * tau * (1.0 + 4.0 * u)
    if model.cast_numerators:
        absolute = absolute + np.where(e < 4.0 * model.storage.lam, scale * model.tiny_storage * (1.0 + 4.0 * u), 0.0)
    error = np.where(mask, up(w * np.expm1(log_error) + absolute), 0.0)
    return error, _sum_budget(model, w, mask, log_sum[:, 0])


def _sum_budget(model: RoundingModel, w: Floats, mask: Bools, log_sum: Floats) -> Floats:
    """``|sum of the returned weights - 1|``, the sum taken exactly; shape ``(R,)``, 0 on empty rows.

    The computed sum is built from the same numerators that are divided by it, so the errors of exp and of the shift
    cancel: only the additions, the division and the storage rounding remain. This is the sharpest detector of a wrong
    reduction or denominator.
    """
    log_error = log_sum - model.divisions * np.log1p(-model.u) - np.log1p(-model.u_storage) - np.log1p(-model.u_cast)
    limit = 8.0 * max(model.compute.lam, model.storage.lam)
    tiny = (mask & (w < limit)).sum(axis=1)
    absolute = (model.compute.lam if model.flush else model.compute.eta) + model.tiny_storage
    if model.cast_numerators:
        absolute = absolute + model.tiny_storage
    return np.where(mask.any(axis=1), up(np.expm1(np.minimum(log_error, 700.0)) + tiny * absolute), 0.0)
