"""The definitions that the Lean theorems speak of, written once for every kind of number.

Rows are sequences of length ``n >= 0``; a mask is a sequence of Booleans, True = allowed. Each function takes an
:class:`~hardmask.spec.arithmetic.Arithmetic` last. The proofs, the arbitrary-precision referee and the tests run this
very code; the fast engines are audited against it. Names are the Lean names.
"""

from __future__ import annotations

from typing import Any

from .arithmetic import Arithmetic, Mask, Vector


def numerator(mask: Mask, x: Vector, i: int, ar: Arithmetic) -> Any:
    """``exp x_i`` for an allowed key, 0 for a blocked one (Lean ``numerator``).

    >>> import math
    >>> numerator([True, False], [0.0, 5.0], 1, Arithmetic("float", math.exp, 0.0))
    0.0
    """
    return ar.exp(x[i]) if mask[i] else ar.zero


def denominator(mask: Mask, x: Vector, ar: Arithmetic) -> Any:
    """Sum of the numerators, by left fold (Lean ``denominator``)."""
    total = ar.zero
    for i in range(len(mask)):
        total = total + numerator(mask, x, i, ar)
    return total


def weights(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """The real formula for the weights, the zero row when no key is allowed (Lean ``weights``).

    Lean totalises division, ``0 / 0 = 0``; executable code branches before it divides.
    """
    if not any(mask):
        return [ar.zero for _ in mask]
    total = denominator(mask, x, ar)
    return [numerator(mask, x, i, ar) / total for i in range(len(mask))]


def hardMaskedSoftmaxVecSpec(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """The max-shifted implementation (Lean ``Spec.hardMaskedSoftmaxVecSpec``).

    No allowed key gives zeros. Otherwise: numerators ``exp(score - max)`` where allowed and a literal 0 where blocked,
    a left-fold sum, one division per key. A blocked score is never read.

    >>> import math
    >>> hardMaskedSoftmaxVecSpec([0.0, math.nan], [True, False], Arithmetic("float", math.exp, 0.0))
    [1.0, 0.0]
    """
    chosen = ar.maximum(mask, scores)
    if chosen is None:
        return [ar.zero for _ in mask]
    shifted = [scores[i] - scores[chosen] if mask[i] else None for i in range(len(mask))]
    total = denominator(mask, shifted, ar)
    return [numerator(mask, shifted, i, ar) / total for i in range(len(mask))]


def softmaxBackwardFromWeightsSpec(w: Vector, g: Vector, ar: Arithmetic) -> list[Any]:
    """``w * (g - sum(g * w))``, coordinate by coordinate (Lean ``Spec.softmaxBackwardFromWeightsSpec``)."""
    centre = ar.zero
    for wi, gi in zip(w, g, strict=True):
        centre = centre + gi * wi
    return [wi * (gi - centre) for wi, gi in zip(w, g, strict=True)]


def derivative(mask: Mask, x: Vector, dx: Vector, ar: Arithmetic) -> list[Any]:
    """``(diag(w) - w w^T) dx`` with ``w`` the weights at ``x`` (Lean ``derivative``, read by ``derivative_apply``).

    Written as the matrix acts, ``w_i dx_i - w_i sum_j w_j dx_j``, so that ``derivative_apply`` has something to say.
    """
    w = weights(mask, x, ar)
    n = len(mask)
    out = []
    for i in range(n):
        acc = w[i] * dx[i]
        for j in range(n):
            acc = acc - w[i] * w[j] * dx[j]
        out.append(acc)
    return out
