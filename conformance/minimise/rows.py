"""Candidates for a smaller row: many variants of one row, all of one length, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...spec.batch import Bools, Floats
from ..judgement import Codes

ARRAYS = ("scores", "mask", "cotangents", "tangents", "order")


@dataclass(frozen=True, eq=False)
class Rows:
    """Variants of a row, shape ``(variants, keys)``, exact in float64.

    ``order``: where each key stands in the permuted copy that the row is compared with; for other comparisons it is
    carried along and not read.
    """

    scores: Floats
    mask: Bools
    cotangents: Floats
    tangents: Floats
    order: Codes

    @property
    def shape(self) -> tuple[int, int]:
        """``(variants, keys)``."""
        return self.scores.shape[0], self.scores.shape[1]

    def take(self, variants: Codes | slice) -> Rows:
        """Some of the variants, in the given order."""
        return Rows(*(getattr(self, name)[variants] for name in ARRAYS))

    def keeping(self, keys: Codes) -> Rows:
        """Each variant with some of its keys: ``keys`` has shape ``(variants, m)``, ascending in every row."""
        parts = [np.take_along_axis(getattr(self, name), keys, axis=1) for name in ARRAYS[:-1]]
        places = np.take_along_axis(self.order, keys, axis=1)
        return Rows(parts[0], parts[1], parts[2], parts[3], np.argsort(np.argsort(places, axis=1), axis=1))

    def repeated(self, times: int) -> Rows:
        """The variants, one after the other, so many times over."""
        return Rows(*(np.tile(getattr(self, name), (times, 1)) for name in ARRAYS))


def joined(parts: Sequence[Rows]) -> Rows:
    """All variants of several collections of one length."""
    return Rows(*(np.concatenate([getattr(p, name) for p in parts]) for name in ARRAYS))


def cost(rows: Rows) -> Floats:
    """How far each variant is from plain: blocked keys, then digits. Lower is plainer; lengths are not compared.

    >>> one = np.ones((2, 1), bool)
    >>> score = np.array([[3.0], [2.5]])
    >>> a, b = cost(Rows(score, one, 0 * score, 0 * score, 0 * one.astype(int)))
    >>> bool(a < b)
    True
    """
    digits = sum(_digits(getattr(rows, name)).sum(axis=1) for name in ("scores", "cotangents", "tangents"))
    return np.asarray(digits + 4.0 * (~rows.mask).sum(axis=1))


def _digits(values: Floats) -> Floats:
    """Digits that a reader has to look at, with a little for sign and size; 0 for 0."""
    seen, place = np.unique(values, return_inverse=True)
    digits = np.array([_of_number(x) for x in seen.tolist()])[place].reshape(values.shape)
    return np.asarray(digits + 0.25 * ((values == 0.0) & np.signbit(values)))


def _of_number(x: float) -> float:
    if x == 0.0:
        return 0.0
    if x != x or x in (np.inf, -np.inf):
        return 12.0
    figures, _, exponent = f"{abs(x):.9g}".partition("e")
    digits = len(figures.replace(".", "").lstrip("0"))
    return 1.0 + digits + 1.5 * ("." in figures) + 3.0 * bool(exponent) + 0.5 * (x < 0.0) + abs(np.log10(abs(x))) / 20.0
