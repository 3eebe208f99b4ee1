"""Other ways to write a mask: an additive bias, the number of keys, a causal flag.

Each function here works as kernels of its kind do, and never builds a Boolean mask; ``path_agreement`` says that all
equal :func:`~hardmask.spec.attention.definitions.scaledDotProductAttention` with the mask that they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arithmetic import Arithmetic
from .definitions import Matrix, matmul, scaled_scores
from .unmasked import attention


def with_bias(
    q: Matrix, k: Matrix, v: Matrix, factors: Sequence[Sequence[int]], scale: Any, ar: Arithmetic
) -> list[list[Any]]:
    """Attention whose scores have a bias of 0 or -infinity added; shape ``(Lq, dv)``.

    ``factors``, of shape ``(Lq, Lk)``, is the exponential of the bias: 1 for 0, and 0 for -infinity. The exponential of
    a biased score is that of the score times the factor. A row of -infinities gives 0.

    >>> import math
    >>> with_bias([[1.0]], [[0.0], [9.0]], [[2.0], [4.0]], [[1, 0]], 1.0, Arithmetic("float", math.exp, 0.0))
    [[2.0]]
    """
    weights = []
    for row, kept in zip(scaled_scores(q, k, scale, ar), factors, strict=True):
        chosen = ar.maximum([factor != 0 for factor in kept], row)
        if chosen is None:
            weights.append([ar.zero for _ in row])
            continue
        numerators = [ar.exp(score - row[chosen]) * factor for score, factor in zip(row, kept, strict=True)]
        total = ar.zero
        for value in numerators:
            total = total + value
        weights.append([value / total for value in numerators])
    return matmul(weights, v, len(v[0]) if v else 0, ar)


def with_length(q: Matrix, k: Matrix, v: Matrix, length: int, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """Attention to the first ``length`` keys, the others being cut off; shape ``(Lq, dv)``.

    >>> import math
    >>> with_length([[0.0]], [[0.0], [9.0]], [[2.0], [4.0]], 1, 1.0, Arithmetic("float", math.exp, 0.0))
    [[2.0]]
    """
    return [_cut(row, k, v, length, scale, ar) for row in q]


def causal(q: Matrix, k: Matrix, v: Matrix, offset: int, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """Attention of query ``i`` to the keys up to ``i + offset``; shape ``(Lq, dv)``.

    Offset 0 is the alignment at the top left, ``Lk - Lq`` that at the bottom right.

    >>> import math
    >>> causal([[0.0], [0.0]], [[0.0], [9.0]], [[2.0], [4.0]], 0, 1.0, Arithmetic("float", math.exp, 0.0))
    [[2.0], [3.0]]
    """
    return [_cut(row, k, v, i + offset + 1, scale, ar) for i, row in enumerate(q)]


def _cut(row: Sequence[Any], k: Matrix, v: Matrix, length: int, scale: Any, ar: Arithmetic) -> list[Any]:
    """One query's attention to the first keys: zeros where there is none."""
    if length <= 0:
        return [ar.zero for _ in (v[0] if v else ())]
    return attention([row], k[:length], v[:length], scale, ar)[0]
