r"""Masked scaled dot-product attention and its derivatives, written once for every kind of number.

One head: ``q`` is ``(Lq, d)``, ``k`` is ``(Lk, d)``, ``v`` is ``(Lk, dv)``, ``mask`` is ``(Lq, Lk)`` with True =
allowed, all as sequences of rows. ``scale`` is a number; the Lean definitions fix it to ``1 / sqrt d`` (and to 1 for
``d = 0``), kernels let the caller choose. With ``A`` the masked softmax of the rows of ``scale q k^T`` and ``centre``
the row-wise ``softmaxBackwardFromWeightsSpec``:

- forward ``O = A V``;
- backward ``dA = dO V^T``, ``dS = centre(A, dA) scale``, ``dQ = dS K``, ``dK = dS^T Q``, ``dV = A^T dO``;
- forward mode ``centre(A, (dQ K^T + Q dK^T) scale) V + A dV``.

The proofs, the arbitrary-precision referee and the tests run this very code; the fast oracle is audited against it.
Names are the Lean names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arithmetic import Arithmetic, Mask, Vector
from ..definitions import hardMaskedSoftmaxVecSpec, softmaxBackwardFromWeightsSpec

Matrix = Sequence[Vector]
Masks = Sequence[Mask]


def matmul(a: Matrix, b: Matrix, columns: int, ar: Arithmetic) -> list[list[Any]]:
    """``a b`` by left folds; ``columns`` is the width of ``b``, which may have no row.

    >>> matmul([[1, 2]], [[3, 4], [5, 6]], 2, Arithmetic("int", abs))
    [[13, 16]]
    """
    out = []
    for row in a:
        line = []
        for l in range(columns):
            total = ar.zero
            for x, other in zip(row, b, strict=True):
                total = total + x * other[l]
            line.append(total)
        out.append(line)
    return out


def transpose(a: Matrix, columns: int) -> list[list[Any]]:
    """The transpose of a matrix of that width, which may have no row."""
    return [[row[l] for row in a] for l in range(columns)]


def scaled_scores(q: Matrix, k: Matrix, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """``scale q k^T``."""
    width = len(k)
    products = matmul(q, transpose(k, len(k[0]) if k else 0), width, ar) if k else [[] for _ in q]
    return [[scale * s for s in row] for row in products]


def hardMaskedSoftmaxSpec(scores: Matrix, mask: Masks, ar: Arithmetic) -> list[list[Any]]:
    """``hardMaskedSoftmaxVecSpec`` of every row (Lean ``Spec.hardMaskedSoftmaxSpec``)."""
    return [hardMaskedSoftmaxVecSpec(row, allowed, ar) for row, allowed in zip(scores, mask, strict=True)]


def centred(weights: Matrix, g: Matrix, ar: Arithmetic) -> list[list[Any]]:
    """``softmaxBackwardFromWeightsSpec`` of every row."""
    return [softmaxBackwardFromWeightsSpec(w, row, ar) for w, row in zip(weights, g, strict=True)]


def scaledDotProductAttention(
    q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic
) -> list[list[Any]]:
    """``softmax_m(scale q k^T) v`` (Lean ``Spec.scaledDotProductAttention``); ``v`` may have no row only if nothing
    asks for its width: the output then has rows of length 0.

    >>> import math
    >>> floats = Arithmetic("float", math.exp, 0.0)
    >>> scaledDotProductAttention([[1.0]], [[0.0], [0.0]], [[2.0], [4.0]], [[True, True]], 1.0, floats)
    [[3.0]]
    """
    weights = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    return matmul(weights, v, len(v[0]) if v else 0, ar)


def scaledDotProductAttentionBackward(
    q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, cotangent: Matrix, ar: Arithmetic
) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
    """``(dQ, dK, dV)`` for the cotangent of the output (Lean ``Spec.scaledDotProductAttentionBackward``)."""
    weights = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    keys, dv = len(k), len(v[0]) if v else 0
    # Without keys, dQ still has the shape of q.
    d = len(k[0]) if k else len(q[0]) if q else 0
    d_weights = matmul(cotangent, transpose(v, dv), keys, ar)
    d_scores = [[scale * s for s in row] for row in centred(weights, d_weights, ar)]
    d_q = matmul(d_scores, k, d, ar)
    d_k = matmul(transpose(d_scores, keys), q, d, ar)
    d_v = matmul(transpose(weights, keys), cotangent, dv, ar)
    return d_q, d_k, d_v


def scaledDotProductAttentionJvp(
    q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, tangents: tuple[Matrix, Matrix, Matrix], ar: Arithmetic
) -> list[list[Any]]:
    """The tangent of the output along ``(dq, dk, dv)`` (Lean ``Spec.scaledDotProductAttentionJvp``)."""
    d_q, d_k, d_v = tangents
    weights = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    left, right = scaled_scores(d_q, k, scale, ar), scaled_scores(q, d_k, scale, ar)
    moved = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(left, right, strict=True)]
    dv = len(v[0]) if v else 0
    through, direct = matmul(centred(weights, moved, ar), v, dv, ar), matmul(weights, d_v, dv, ar)
    return [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(through, direct, strict=True)]
