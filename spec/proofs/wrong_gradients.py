"""Wrong derivatives and backward helpers, for negative controls: each makes one mistake that real code makes.

The signatures are those of :mod:`~hardmask.spec.definitions` and :mod:`~hardmask.spec.hessian`.
"""

from __future__ import annotations

from typing import Any

from ..arithmetic import Arithmetic, Mask, Vector
from ..definitions import derivative, weights


# derivative(mask, x, dx, ar)
def derivative_uncentred(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Misses ``- w w^T``."""
    return [w * d for w, d in zip(weights(mask, x, ar), dx, strict=True)]


def derivative_wrong_sign(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Is ``diag(w) + w w^T``."""
    w = weights(mask, x, ar)
    mean = _inner(w, dx, ar)
    return [wi * (di + mean) for wi, di in zip(w, dx, strict=True)]


def derivative_negated(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Is ``- J``."""
    return [-value for value in derivative(mask, x, dx, ar)]


def derivative_mean_centred(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Centres by the unweighted mean: not symmetric."""
    w = weights(mask, x, ar)
    mean = _inner([(ar.zero + 1) / len(mask) for _ in mask], dx, ar)
    return [wi * (di - mean) for wi, di in zip(w, dx, strict=True)]


def derivative_of_logarithm(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Is the derivative of log-softmax, ``I - 1 w^T``: not symmetric, and not zero at a blocked key."""
    mean = _inner(weights(mask, x, ar), dx, ar)
    return [di - mean for di in dx]


def derivative_leaking(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Lets a blocked key feel the centring."""
    w = weights(mask, x, ar)
    mean = _inner(w, dx, ar)
    return [wi * di - (wi if m else 1) * mean for wi, di, m in zip(w, dx, mask, strict=True)]


def derivative_identity_when_empty(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """Passes the tangent through on an empty row."""
    return derivative(mask, x, dx, ar) if any(mask) else list(dx)


# softmaxBackwardFromWeightsSpec(w, g, ar)
def backward_uncentred(w: Vector, g: Vector, ar: Arithmetic) -> list[Any]:
    """Misses the centring."""
    return [wi * gi for wi, gi in zip(w, g, strict=True)]


def backward_wrong_sign(w: Vector, g: Vector, ar: Arithmetic) -> list[Any]:
    """Adds the centring instead of subtracting it."""
    centre = _inner(w, g, ar)
    return [wi * (gi + centre) for wi, gi in zip(w, g, strict=True)]


def backward_mean_centred(w: Vector, g: Vector, ar: Arithmetic) -> list[Any]:
    """Centres by the unweighted mean."""
    centre = _inner([(ar.zero + 1) / len(w) for _ in w], g, ar)
    return [wi * (gi - centre) for wi, gi in zip(w, g, strict=True)]


def backward_of_logarithm(w: Vector, g: Vector, ar: Arithmetic) -> list[Any]:
    """Is the backward of log-softmax, ``g - w sum g``: it reaches blocked keys."""
    total = ar.zero
    for gi in g:
        total = total + gi
    return [gi - wi * total for wi, gi in zip(w, g, strict=True)]


def backward_first_key_uncentred(w: Vector, g: Vector, ar: Arithmetic) -> list[Any]:
    """Treats the first position specially."""
    centre = _inner(w, g, ar)
    return [wi * gi if i == 0 else wi * (gi - centre) for i, (wi, gi) in enumerate(zip(w, g, strict=True))]


# second_derivative(mask, x, u, v, ar)
def second_without_covariance(mask: Mask, x: Vector, u: Vector, v: Vector, ar: Arithmetic) -> list[Any]:
    """Misses the covariance."""
    w = weights(mask, x, ar)
    mean_u, mean_v = _inner(w, u, ar), _inner(w, v, ar)
    return [wi * (ui - mean_u) * (vi - mean_v) for wi, ui, vi in zip(w, u, v, strict=True)]


def second_uncentred_covariance(mask: Mask, x: Vector, u: Vector, v: Vector, ar: Arithmetic) -> list[Any]:
    """Takes ``<w, u v>`` for the covariance."""
    w = weights(mask, x, ar)
    mean_u, mean_v = _inner(w, u, ar), _inner(w, v, ar)
    moment = _inner(w, [ui * vi for ui, vi in zip(u, v, strict=True)], ar)
    return [wi * ((ui - mean_u) * (vi - mean_v) - moment) for wi, ui, vi in zip(w, u, v, strict=True)]


def _inner(a: Vector, b: Vector, ar: Arithmetic) -> Any:
    total = ar.zero
    for p, q in zip(a, b, strict=True):
        total = total + p * q
    return total
