"""Correct variants: the order and the format of sums, and how the numerators are divided by them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...adapters.subject import Array, Bools
from .kit import top_of, weights_of
from .mutant import Variant
from .recipe import Weights, variant

Sum = Callable[[Array], Array]
"""The sum of each row, shape ``(rows, 1)``, in the dtype of the terms."""


def sequential(terms: Array) -> Array:
    """From the first term to the last, one after the other."""
    running = np.cumsum(np.pad(terms, ((0, 0), (1, 0))), axis=1, dtype=terms.dtype)
    return np.asarray(running[:, -1:])


def backwards(terms: Array) -> Array:
    """From the last term to the first."""
    return sequential(terms[:, ::-1])


def tree(terms: Array) -> Array:
    """Halves are added to each other until one term is left."""
    while terms.shape[1] > 1:
        if terms.shape[1] % 2:
            terms = np.pad(terms, ((0, 0), (0, 1)))
        middle = terms.shape[1] // 2
        terms = terms[:, :middle] + terms[:, middle:]
    return sequential(terms)


def compensated(terms: Array) -> Array:
    """Kahan's summation, which carries what each addition lost."""
    total = np.zeros((len(terms), 1), terms.dtype)
    lost = np.zeros_like(total)
    for k in range(terms.shape[1]):
        term = terms[:, k : k + 1] - lost
        grown = total + term
        lost = (grown - total) - term
        total = grown
    return total


def _in_groups(terms: Array, size: int) -> Array:
    """The terms with zeros appended, shape ``(rows, groups, size)``."""
    return np.pad(terms, ((0, 0), (0, -terms.shape[1] % size))).reshape(len(terms), -1, size)


def chunked(terms: Array) -> Array:
    """Chunks of 32 first, then the chunks."""
    return sequential(np.sum(_in_groups(terms, 32), axis=2, dtype=terms.dtype))


def lanes(terms: Array) -> Array:
    """Eight running sums side by side, as vector registers do, then the eight."""
    grouped = _in_groups(terms, 8)
    return sequential(np.sum(grouped, axis=1, dtype=terms.dtype))


def by_product(terms: Array) -> Array:
    """A product with a vector of ones, in the order of the linear algebra library."""
    return np.asarray(terms @ np.ones((terms.shape[1], 1), terms.dtype))


def in_wider(terms: Array) -> Array:
    """In a wider format, rounded once."""
    wider = np.float64 if terms.dtype == np.float32 else np.longdouble
    return np.asarray(np.sum(terms, axis=1, keepdims=True, dtype=wider).astype(terms.dtype))


def _summed(total: Sum) -> Weights:
    return partial(weights_of, total=lambda e, mask: total(e))


def _quotient(name: str, story: str, total: Sum) -> Variant:
    """A variant that takes all its sums in one way, those of the derivative too."""
    weights = _summed(total)

    def derivative(x: Array, mask: Bools, v: Array) -> Array:
        w = weights(x, mask)
        return w * (v - total(w * v))

    return variant(name, story, weights, vjp=derivative)


def numerators(x: Array, mask: Bools) -> tuple[Array, Array]:
    """The shifted exponentials and their sum, which is 1 on an empty row."""
    e = np.where(mask, np.exp(np.where(mask, x - top_of(x, mask), 0)), 0).astype(x.dtype)
    return e, np.where(np.any(mask, axis=1, keepdims=True), np.sum(e, axis=1, keepdims=True), 1).astype(x.dtype)


def _by_reciprocal(x: Array, mask: Bools) -> Array:
    e, total = numerators(x, mask)
    return e * (np.ones_like(total) / total)


def variants() -> list[Variant]:
    """The variants of this module."""
    return [
        _quotient("sequential-sum", "Sums from the first key to the last.", sequential),
        _quotient("reversed-sum", "Sums from the last key to the first.", backwards),
        _quotient("tree-sum", "Sums in a balanced tree.", tree),
        _quotient("compensated-sum", "Sums by Kahan's method.", compensated),
        _quotient("chunked-sum", "Sums chunks of 32 keys, then the chunks.", chunked),
        _quotient("lane-sum", "Sums in eight lanes, then across them.", lanes),
        _quotient("matmul-sum", "Sums by a product with a vector of ones.", by_product),
        _quotient("wider-sum", "Sums in a wider format and rounds once.", in_wider),
        variant("reciprocal", "Multiplies by the reciprocal of the sum.", _by_reciprocal),
    ]
