r"""How wrong the exponent of a numerator may be, for each way to form it. Errors are absolute, in the natural exponent.

Notation: ``M`` the largest allowed score, ``d_i = M - s_i``, ``S = sum exp(-d_i)``, ``L = M + log S``, ``u`` the unit
roundoff, ``c = fl(log2 e)``, which is off by less than ``0.3 u`` in float32 and float64.

**shift**, ``fl(s_i - M)``: at most ``d_i u``, and 0 where the difference is representable (Sterbenz: always for close
scores).

**exp2**, ``exp2`` of ``fl(fl(s_i - M) c)``, of ``fl(s_i c) - fl(M c)``, or of ``fma(s_i, c, -fl(M c))``. The first
is off by the difference, the constant and the product: ``2.3 d_i u``. In the others ``fl(M c)`` is one number for the
whole row, so its own error is a common factor of all numerators, which cancels; left are the rounding of ``s_i c`` (at
the maximum too) and those of the constant and the difference: ``(|s_i| + 1.3 d_i) u``. Together
``(|s_i| + 2.3 d_i) u``. The last subtraction is relative to the computed difference, which differs from ``d_i`` by at
most ``(|s_i| + |M|) u``: a term of second order. The common factor is within ``exp(±|M| u)`` and matters beside numbers
that underflow (:func:`common_factor`). Beyond ``|M| u = 64`` the fused form would overflow, and no correct
implementation of it is left to be bounded; the others give the maximum and its ties the same exponent, 0 exactly, and
the error of ``fl(M c)`` counts for the other keys.

**lse**, ``exp(s_i - L)`` with a stored ``L``, in base e or base 2, or ``exp((s_i - M) - log S)``. Beside the terms
above: the last subtraction ``(d_i + log S) u``; the logarithm ``8 u log S``; storing ``L``, ``|L| u``, and in
the end ``log S``: for large scores the stored ``L`` is ``M``, and nothing divides by the sum. So the weights lose
digits as the scores grow. The error of ``S`` itself is counted apart.

**online**: an element that was computed against an earlier maximum is rescaled whenever the maximum grows. The
differences telescope, so all arguments together are off by no more than above (``d_i u``, exact or not, is contained in
it). Every rescaling brings one exp and one product. It happens at most once for each distinct allowed score above
``s_i``, whatever the tiles and their order (:func:`rescales`); a maximum that stays is rescaled by 1, exactly.
"""

from __future__ import annotations

import numpy as np

from ..batch import Bools, Floats
from .model import RoundingModel

LARGE = 50.0
"""exp(50) times any weight is far beyond 1: a larger error of the exponent says nothing more."""

CONSTANT = 1.3
"""Units of the rounding of ``log2 e`` and of one product, per unit of the argument."""

LOGARITHM = 8.0
"""Allowance of the logarithm, in u of its value: 4 ulp, where NumPy documents up to 3.83 for float32."""

FUSED = 64.0
"""Largest ``|M| u`` for which ``exp2(fma(s, c, -M c))`` cannot overflow."""


def maximum(scores: Floats, mask: Bools) -> Floats:
    """The largest allowed score of each row, shape ``(R, 1)``, 0 on empty rows; ``scores`` float64, exact."""
    top = np.where(mask, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    return np.where(np.isfinite(top), top, 0.0)


def summed(model: RoundingModel, scores: Floats, mask: Bools, gap: Floats) -> Floats:
    """Error of the exponents whose exponentials are added up, shape ``(R, n)``, 0 at blocked keys.

    ``scores``, ``gap``: float64, shape ``(R, n)``; blocked entries are not read. Source: extension; the derivation is
    the module docstring.

    >>> from .tiers import model
    >>> row = np.array([[1.0, 0.0]]), np.array([[True, True]]), np.array([[0.0, 1.0]])
    >>> (summed(model("strict", "float64"), *row) * 2.0**53).round(6).tolist()
    [[0.0, 0.0]]
    >>> (summed(model("exp2", "float64"), *row) * 2.0**53).round(6).tolist()
    [[1.0, 2.3]]
    """
    top = maximum(scores, mask)
    s = np.where(mask, scores, top)
    if model.argument == "shift":
        a = np.where(_representable(model, s, top, gap), 0.0, gap * model.u)
    else:
        a = _base_two(model, s, top, gap)
    if model.flush:
        a = a + (1.0 if model.argument == "shift" else 3.0) * model.compute.lam
    return np.where(mask, np.minimum(a, LARGE), 0.0)


def disturbed(model: RoundingModel, scores: Floats, mask: Bools, gap: Floats, error: Floats) -> Floats:
    """:func:`summed` for scores that a kernel computed with errors of at most ``error``, which is contained.

    The differences that are rounded are those of the computed scores: none of them is known to be representable.
    """
    error = np.where(mask, error, 0.0)
    with np.errstate(over="ignore"):
        wide = gap + error + error.max(axis=1, keepdims=True, initial=0.0)
        if model.argument == "shift":
            a = wide * model.u
        else:
            top = maximum(scores, mask)
            a = _base_two(model, np.abs(np.where(mask, scores, top)) + error, top, wide)
        if model.flush:
            a = a + (1.0 if model.argument == "shift" else 3.0) * model.compute.lam
        return np.where(mask, np.minimum(a + error, LARGE), 0.0)


def divided(model: RoundingModel, scores: Floats, mask: Bools, gap: Floats, total: Floats) -> Floats:
    """Error of the exponents whose exponentials become the weights, shape ``(R, n)``, 0 at blocked keys.

    Those that are added up, unless the weights are rebuilt from a log-sum-exp. ``total``: ``S``, shape ``(R, 1)``.
    """
    a = summed(model, scores, mask, gap)
    if model.argument != "lse":
        return a
    top, log_total = maximum(scores, mask), np.log(np.maximum(total, 1.0))
    stored = np.abs(top + log_total) * model.u
    stored = np.where(np.abs(top) * model.u <= FUSED, stored, log_total + 2.0 * model.alpha * model.u)
    with np.errstate(over="ignore"):
        a = a + (gap + (1.0 + LOGARITHM) * log_total) * model.u + stored * (1.0 + 4.0 * model.u)
    return np.where(mask, np.minimum(a, LARGE), 0.0)


def common_factor(model: RoundingModel, scores: Floats, mask: Bools) -> Floats:
    """How much smaller all numerators of a row may be than ``exp(-d_i)`` at once, shape ``(R, 1)``, at least 1."""
    size = np.abs(maximum(scores, mask)) * model.u
    return np.exp(np.where((model.argument != "shift") & (size <= FUSED), 1.01 * size, 0.0))


def rescales(mask: Bools, gap: Floats) -> Floats:
    """How often the numerator of a key may be rescaled: the distinct allowed scores above its own; shape ``(R, n)``.

    >>> rescales(np.array([[True, True, True, False]]), np.array([[2.0, 0.0, 0.0, 0.0]])).tolist()
    [[1.0, 0.0, 0.0, 0.0]]
    """
    distance = np.where(mask, gap, np.inf)
    order = np.argsort(distance, axis=1)
    ascending = np.take_along_axis(distance, order, axis=1)
    steps = np.zeros_like(ascending)
    steps[:, 1:] = np.cumsum(ascending[:, 1:] != ascending[:, :-1], axis=1)
    count = np.empty_like(steps)
    np.put_along_axis(count, order, steps, axis=1)
    return np.where(mask, count, 0.0)


def _representable(model: RoundingModel, s: Floats, top: Floats, gap: Floats) -> Bools:
    """Where ``s_i - M`` is a number of the compute format."""
    with np.errstate(over="ignore", invalid="ignore"):
        # The error of the float64 subtraction itself (Knuth's two-sum): 0 when the gap is exact in float64.
        back = gap - top
        lost = (top - (gap - back)) - (s + back)
        exact: Bools = (lost == 0.0) & (gap.astype(model.compute.dtype).astype(np.float64) == gap)
    return exact


def _base_two(model: RoundingModel, s: Floats, top: Floats, gap: Floats) -> Floats:
    u = model.u
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.abs(s) + np.abs(top)
        first = (np.abs(s) + (1.0 + CONSTANT) * gap) * u * (1.0 + 4.0 * u) + 4.0 * size * u * u
        return np.where(np.abs(top) * u <= FUSED, first, np.where(gap == 0.0, 0.0, first + np.abs(top) * u))
