"""What the definitions need from the numbers they run over.

The definitions of :mod:`hardmask.spec.definitions` are written once. To run them over floats, NumPy columns, mpmath,
``mpmath.iv``, python-flint balls, dual numbers or sympy field elements, hand them an :class:`Arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Mask = Sequence[bool]
Vector = Sequence[Any]


def first_maximum(mask: Mask, scores: Vector) -> int | None:
    """Index of the first largest allowed score, or None when no key is allowed.

    The left fold of ``Spec.hardMaskedMax?``: the running value is replaced only by a strictly larger score, so that of
    several equal maxima the first one is kept. Scores: any values with ``>``.

    >>> first_maximum([False, True, True], [9, 2, 2])
    1
    >>> first_maximum([False], [9]) is None
    True
    """
    best: int | None = None
    for i, allowed in enumerate(mask):
        if allowed and (best is None or scores[i] > scores[best]):
            best = i
    return best


@dataclass(frozen=True)
class Arithmetic:
    """The exponential, the zero and the choice of the maximum of one kind of number.

    ``maximum(mask, scores)`` returns the index of the score to subtract, or None for a row without an allowed key. Over
    the reals every allowed index gives the same weights (``spec_eq_weights``); proofs therefore run over all of them.
    """

    name: str
    exp: Callable[[Any], Any]
    zero: Any = 0
    maximum: Callable[[Mask, Vector], int | None] = first_maximum
