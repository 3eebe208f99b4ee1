"""Attention without a mask, and its derivatives: what an all-true mask must equal.

The softmax is that of every key (Lean ``Activation.softmaxSpec``); no function here takes a mask. Arguments are those
of :mod:`~hardmask.spec.attention.definitions`.
"""

from __future__ import annotations

from typing import Any

from ..arithmetic import Arithmetic
from ..masks import softmaxSpec
from .definitions import Matrix, centred, matmul, scaled_scores, transpose


def attention(q: Matrix, k: Matrix, v: Matrix, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """``softmax(scale q k^T) v``, shape ``(Lq, dv)``.

    >>> import math
    >>> attention([[0.0]], [[1.0], [2.0]], [[2.0], [4.0]], 1.0, Arithmetic("float", math.exp, 0.0))
    [[3.0]]
    """
    return matmul(softmaxSpec(scaled_scores(q, k, scale, ar), ar), v, len(v[0]) if v else 0, ar)


def backward(
    q: Matrix, k: Matrix, v: Matrix, scale: Any, cotangent: Matrix, ar: Arithmetic
) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
    """``(dQ, dK, dV)`` for the cotangent of the output."""
    weights = softmaxSpec(scaled_scores(q, k, scale, ar), ar)
    keys, dv = len(k), len(v[0]) if v else 0
    d = len(k[0]) if k else len(q[0]) if q else 0
    d_scores = centred(weights, matmul(cotangent, transpose(v, dv), keys, ar), ar)
    d_scores = [[scale * s for s in row] for row in d_scores]
    return (
        matmul(d_scores, k, d, ar),
        matmul(transpose(d_scores, keys), q, d, ar),
        matmul(transpose(weights, keys), cotangent, dv, ar),
    )


def jvp(
    q: Matrix, k: Matrix, v: Matrix, scale: Any, tangents: tuple[Matrix, Matrix, Matrix], ar: Arithmetic
) -> list[list[Any]]:
    """The tangent of the output along ``(dq, dk, dv)``, shape ``(Lq, dv)``."""
    d_q, d_k, d_v = tangents
    weights = softmaxSpec(scaled_scores(q, k, scale, ar), ar)
    left, right = scaled_scores(d_q, k, scale, ar), scaled_scores(q, d_k, scale, ar)
    moved = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]
    dv = len(v[0]) if v else 0
    through, direct = matmul(centred(weights, moved, ar), v, dv, ar), matmul(weights, d_v, dv, ar)
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(through, direct, strict=True)]
