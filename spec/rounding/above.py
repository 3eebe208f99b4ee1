r"""Budgets without an oracle: what the budgets can be at most, judged by what was returned.

The budgets of :mod:`~hardmask.spec.rounding.weights` need the true weights. Where nobody computes them, the scores and
an answer still bound them, if the answer keeps its own budget; if it does not, it is wrong, and that is what a
comparison is to find out. So a difference beyond the bounds of this module is a fault of at least one of two answers.

**Every budget is at most linear in the weight.** With ``p_j`` and ``q_j`` how far numerator ``j`` may be too large and
too small, ``tau_j`` its underflow, and ``U >= sum w_j p_j``, ``D >= sum w_j q_j``, ``T >= sum tau_j / S``:

    r_i = max((1 + p_i) / (1 - D - T), (1 + U + T) / (1 - q_i)) (1 - u)^-h (1 + u)^divisions ... - 1
    E_i <= r_i w_i + t_i + (half an ulp of storage of w_i (1 + r_i) + t_i)

where the numerator's own share in the sum is not credited to it, and ``t_i`` is the absolute error that underflow can
cause at all. ``p``, ``q``, ``tau`` and ``h`` depend on the scores alone. With ``w_j <= exp(-d_j)``, since ``S >= 1``,

    U = max of p_j over the keys with d_j <= log |A| + 20,  plus  sum of exp(-d_j) p_j over the others,

because weights sum to 1; likewise ``D``.

**Every weight is bounded by its answer.** From ``|y_i - w_i| <= E_i`` and half an ulp of ``x`` being at most ``u_s x``,

    w_i <= (y_i + t_i (1 + u_s) + tiny_s) / (1 - r_i - u_s (1 + r_i)),    and  w_i <= exp(-d_i)  anyway.

Once these are known, ``U = sum W_j p_j`` is sharper, and so is ``S = 1 / max w >= 1 / max W``. All bounds increase
with ``W``, so that they hold for every ``w <= W``.

**Derivatives.** :func:`~hardmask.spec.rounding.derivative.derivative_budget` takes weights ``w`` with errors ``E_t``
under the tier of the derivative. Given ``V = y + E`` with ``|V - w| <= 2 E`` it is evaluated at ``V`` with the errors
``F = E_t + 2 E``: then ``w + E_t <= V + F``, the centre moves by at most ``sum 2 E_j |g_j|``, so that ``|g_i - p_w| +
sum E_t |g| <= |g_i - p_V| + sum F |g|``, and term by term the result is at least the budget at ``w``.
"""

from __future__ import annotations

import numpy as np

from ..batch import Bools, Floats
from ..oracle.exact import Exact, ExactWeights
from .arguments import common_factor, divided, maximum, rescales, summed
from .blocks import blocks
from .derivative import DerivativeBudget, derivative_budget
from .model import RoundingModel, up
from .weights import WeightsBudget

NEAR = 20.0
"""Keys farther below the maximum than ``log |A|`` and this much more have ``exp(-20)`` of all weight at most."""

MOST = 0.999999


class _Row:
    """What the scores of some rows say about the errors of their numerators, shape ``(R, n)`` or ``(R, 1)``."""

    def __init__(self, model: RoundingModel, scores: Floats, mask: Bools) -> None:
        self.model, self.mask = model, mask
        top = maximum(scores, mask)
        with np.errstate(over="ignore", invalid="ignore"):
            self.gap = gap = np.where(mask, top - scores, 0.0)
        self.n = mask.sum(axis=1, keepdims=True).astype(np.float64)
        self.most = np.where(mask, np.minimum(1.0, np.exp(-gap) * (1.0 + 2.0**-40)), 0.0)
        alpha, u = model.alpha * model.u, model.u
        a = summed(model, scores, mask, gap)
        grow, shrink = a + np.log1p(alpha), a - np.log1p(-alpha)
        tiny = np.full(1, model.tiny)
        factor = common_factor(model, scores, mask)
        tiny = tiny * factor
        if model.online:
            turns = rescales(mask, gap)
            grow = grow + turns * (np.log1p(alpha) + np.log1p(u))
            shrink = shrink - turns * (np.log1p(-alpha) + np.log1p(-u))
            tiny = tiny * (1.0 + turns)
        self.grow = grow + np.log1p(model.u_cast)
        self.shrink = shrink - np.log1p(-model.u_cast)
        self.further = np.zeros(1)
        if model.argument == "lse":
            # The error of a stored L is convex in log S, which lies between 0 and log |A|.
            ends = (divided(model, scores, mask, gap, total) for total in (np.ones_like(self.n), self.n))
            self.further = np.maximum(*ends) - a
        # A numerator below twice the limit counts as one that may underflow.
        self.tau = np.where(mask & (gap >= -np.log(8.0 * model.compute.lam * factor)), tiny, 0.0)
        self.cast = np.zeros(1)
        if model.cast_numerators:
            self.cast = np.where(mask & (gap >= -np.log(8.0 * model.storage.lam)), model.tiny_storage, 0.0)
        self.log_sum = model.log_sum(self.n)

    def weighted(self, error: Floats, weights: Floats | None) -> Floats:
        """At least ``sum w_j error_j``, shape ``(R, 1)``; sharper with upper bounds of the weights."""
        with np.errstate(over="ignore", invalid="ignore"):
            near = self.mask & (self.gap <= np.log(np.maximum(self.n, 1.0)) + NEAR)
            far = self.mask & ~near & (self.most > 0.0)
            bound = np.where(near, error, 0.0).max(axis=1, keepdims=True, initial=0.0)
            bound = bound + np.where(far, self.most * error, 0.0).sum(axis=1, keepdims=True)
            if weights is not None:
                bound = np.minimum(bound, np.where(weights > 0.0, weights * error, 0.0).sum(axis=1, keepdims=True))
        return bound

    def slopes(self, weights: Floats | None) -> tuple[Floats, Floats, Floats]:
        """``log(1 + r)`` and ``t`` of every weight before it is stored, and a bound on the relative error of the sum of
        all, where the numerators that are divided are not those that were added up."""
        model = self.model
        least = 1.0 if weights is None else 1.0 / np.clip(weights.max(axis=1, keepdims=True, initial=0.0), 1e-300, 1.0)
        lost = (self.tau + self.cast).sum(axis=1, keepdims=True) / least
        more = self.weighted(np.expm1(np.minimum(self.grow, 700.0)), weights) + lost
        less = np.minimum(self.weighted(-np.expm1(-self.shrink), weights) + lost, MOST)
        low, high = self.log_sum - np.log1p(-less), self.log_sum + np.log1p(more)
        last = -model.divisions * np.log1p(-model.u) - np.log1p(-model.u_cast)
        log_error = np.maximum(self.grow + self.further + low, self.shrink + self.further + high) + last
        scale = np.exp(np.minimum(low, 700.0)) / least
        absolute = scale * (self.tau + self.cast) * (1.0 + 4.0 * model.u)
        absolute = absolute + (model.compute.lam if model.flush else model.compute.eta)
        total = np.zeros_like(low)
        if not model.shared:
            grown = self.weighted(np.expm1(np.minimum(self.grow + self.further, 700.0)), weights)
            shrunk = np.minimum(self.weighted(-np.expm1(-self.shrink - self.further), weights), MOST)
            total = np.maximum(np.log1p(grown) + low, -np.log1p(-shrunk) + high) + last
        return np.minimum(log_error, 700.0), np.where(self.mask, absolute, 0.0), np.minimum(total, 700.0)


def _tiny_stored(model: RoundingModel) -> float:
    """The largest error of storing a number below the normal range."""
    return 0.0 if model.storage == model.compute else max(model.tiny_storage, model.storage.eta / 2.0)


def weights_above(model: RoundingModel, scores: Floats, mask: Bools, returned: Floats) -> Floats:
    """Upper bounds of the true weights, shape ``(R, n)``, given an answer that keeps its budgets under the model.

    ``scores``: float64, exact, finite where allowed; ``returned``: float64, exact. What is not finite is not read.
    Source: extension; the derivation is the module docstring.

    >>> from .tiers import model
    >>> row = np.zeros((1, 3)), np.array([[True, True, False]])
    >>> bound = weights_above(model("strict", "float32"), *row, np.array([[0.5, 0.5, 0.0]]))
    >>> ((bound[0, :2] - 0.5) * 2.0**24).round(1).tolist(), float(bound[0, 2])
    ([5.5, 5.5], 0.0)
    """
    out = np.empty_like(scores)
    u_stored = 0.0 if model.storage == model.compute else model.storage.u
    for rows in blocks(*scores.shape):
        row = _Row(model, scores[rows], mask[rows])
        log_error, absolute, _ = row.slopes(None)
        slope = up(np.expm1(log_error))
        slope = slope + u_stored * (1.0 + slope)
        answer = np.where(np.isfinite(returned[rows]), np.maximum(returned[rows], 0.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = (answer + up(absolute * (1.0 + u_stored) + _tiny_stored(model))) / (1.0 - slope)
        out[rows] = np.where(slope < 1.0, np.minimum(up(bound), row.most), row.most)
    return out


def budget_above(model: RoundingModel, scores: Floats, mask: Bools, weights: Floats) -> WeightsBudget:
    """Budgets that are at least those of any true weights below ``weights``.

    Arguments as for :func:`weights_above`, which yields such ``weights``; exactly 0 at blocked keys and on empty rows.
    """
    error, sum_error = np.empty_like(scores), np.empty(len(scores))
    for rows in blocks(*scores.shape):
        w, row = weights[rows], _Row(model, scores[rows], mask[rows])
        log_error, absolute, total = row.slopes(w)
        computed = w * np.expm1(log_error) + absolute
        stored = np.zeros_like(computed)
        if model.storage != model.compute:
            stored = np.maximum(model.storage_error(w + computed), _tiny_stored(model))
        error[rows] = np.where(row.mask, up(computed + stored), 0.0)
        if model.shared:
            total = row.log_sum - model.divisions * np.log1p(-model.u) - np.log1p(-model.u_cast)
            absolute = np.full(1, model.compute.lam if model.flush else model.compute.eta)
            if model.cast_numerators:
                # As in the budget itself: where the weight may be that small, S being |A| at most.
                small = row.gap >= -np.log(8.0 * model.storage.lam * np.maximum(row.n, 1.0))
                absolute = absolute + np.where(small, model.tiny_storage, 0.0)
        parts = np.where(row.mask, absolute + stored, 0.0).sum(axis=1)
        sum_error[rows] = np.where(np.any(row.mask, axis=1), up(np.expm1(total[:, 0]) + parts), 0.0)
    return WeightsBudget(error, sum_error)


def derivative_above(
    model: RoundingModel, scores: Floats, mask: Bools, returned: Floats, near: Floats, error: Floats, vector: Floats
) -> DerivativeBudget:
    """Budgets that are at least those of ``J v`` at the true weights.

    ``near`` bounds the distance of ``returned`` from the true weights, ``error`` is their budget under the model of the
    derivative. Shapes ``(R, n)``.
    """
    answer = np.where(mask & np.isfinite(returned), returned, 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gap = np.where(mask, maximum(scores, mask) - scores, 0.0)
        top = (answer - near).max(axis=1, initial=0.0)
        total = np.minimum(np.where(top > 0.0, up(1.0 / top), np.inf), np.maximum(mask.sum(axis=1), 1))
    value = answer + near
    zero = np.zeros_like(value)
    return derivative_budget(
        model, ExactWeights(Exact(value, zero, zero), gap, total, mask), error + 2.0 * near, vector
    )
