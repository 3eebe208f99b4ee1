"""Masks, and the row definitions lifted to tensors of any rank.

A tensor is a nest of sequences. Names are the Lean names (``Spec.causalMask``, ``Spec.hardMaskedSoftmaxSpec``,
``Activation.softmaxVecSpec``, ...); True = allowed, except in ``futureMask``, where True marks the future.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arithmetic import Arithmetic, Mask, Vector
from .definitions import hardMaskedSoftmaxVecSpec


def causalMask(n: int) -> list[list[bool]]:
    """The ``n x n`` mask that allows key ``j`` to query ``i`` exactly when ``j <= i`` (Lean ``Spec.causalMask``).

    >>> causalMask(2)
    [[True, False], [True, True]]
    """
    return [[j <= i for j in range(n)] for i in range(n)]


def futureMask(n: int) -> list[list[bool]]:
    """The ``n x n`` table that is True exactly when ``i < j``, the future of query ``i`` (Lean ``Spec.futureMask``).

    >>> futureMask(2)
    [[False, True], [False, False]]
    """
    return [[i < j for j in range(n)] for i in range(n)]


def allTrueMask(rows: int, keys: int) -> list[list[bool]]:
    """The mask of shape ``(rows, keys)`` that allows everything (Lean ``Spec.allTrueMask``)."""
    return [[True] * keys for _ in range(rows)]


def valid(mask: Mask) -> bool:
    """Whether a row allows any key. Read from the mask alone, never from the scores.

    >>> valid([False, False]), valid([])
    (False, False)
    """
    return any(mask)


def hardMaskedSoftmaxSpec(scores: Any, mask: Any, ar: Arithmetic) -> Any:
    """``hardMaskedSoftmaxVecSpec`` on the innermost axis, at any rank (Lean ``Spec.hardMaskedSoftmaxSpec``).

    ``scores`` and ``mask`` are nests of one shape. At rank 0 the result is 1 where allowed and 0 where blocked.

    >>> import math
    >>> scores, mask = [[0.0, 9.0], [3.0, 3.0]], [[True, False], [True, True]]
    >>> hardMaskedSoftmaxSpec(scores, mask, Arithmetic("float", math.exp, 0.0))
    [[1.0, 0.0], [0.5, 0.5]]
    """
    if not isinstance(mask, Sequence):
        return ar.zero + 1 if mask else ar.zero
    if not mask or not isinstance(mask[0], Sequence):
        return hardMaskedSoftmaxVecSpec(scores, mask, ar)
    return [hardMaskedSoftmaxSpec(scores[i], mask[i], ar) for i in range(len(mask))]


def softmaxVecSpec(scores: Vector, ar: Arithmetic) -> list[Any]:
    """The stable softmax of an unmasked row (Lean ``Activation.softmaxVecSpec``); the empty row of length 0.

    >>> import math
    >>> softmaxVecSpec([7.0, 7.0], Arithmetic("float", math.exp, 0.0))
    [0.5, 0.5]
    """
    if len(scores) == 0:
        return []
    chosen = ar.maximum([True] * len(scores), scores)
    exponentials = [ar.exp(score - scores[chosen]) for score in scores]  # type: ignore[index]  # a row of length > 0
    total = ar.zero
    for e in exponentials:
        total = total + e
    return [e / total for e in exponentials]


def softmaxSpec(scores: Sequence[Vector], ar: Arithmetic) -> list[list[Any]]:
    """``softmaxVecSpec`` on each row of a matrix (Lean ``Activation.softmaxSpec`` along axis 1)."""
    return [softmaxVecSpec(row, ar) for row in scores]
