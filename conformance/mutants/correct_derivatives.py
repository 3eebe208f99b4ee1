"""Correct variants: derivatives by the formula in its several shapes, or step by step, through the maximum too."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...adapters.subject import Array, Bools
from .correct_sums import numerators
from .kit import top_of, weights_of
from .mutant import Variant
from .recipe import centred, inner, variant


def _transposed(x: Array, mask: Bools, v: Array) -> Array:
    w = weights_of(x, mask)
    return w * v - w * inner(w, v)


def _by_einsum(x: Array, mask: Bools, v: Array) -> Array:
    w = weights_of(x, mask)
    return np.asarray(w * (v - np.einsum("rn,rn->r", w, v)[:, None]))


def _twice_centred(x: Array, mask: Bools, v: Array) -> Array:
    """Centres once more what is centred already, which changes nothing but digits."""
    w = weights_of(x, mask)
    return centred(w, v - inner(w, v))


def _reverse(x: Array, mask: Bools, v: Array) -> Array:
    """Reverse mode through quotient, sum and exp; the maximum is a constant."""
    e, total = numerators(x, mask)
    return np.asarray(e * (v / total - inner(e, v) / (total * total)))


def _forward(x: Array, mask: Bools, v: Array) -> Array:
    """Forward mode through exp, sum and quotient; the maximum is a constant."""
    e, total = numerators(x, mask)
    moved = e * v
    return np.asarray(moved / total - e * np.sum(moved, axis=1, keepdims=True) / (total * total))


def _ties(x: Array, mask: Bools) -> Bools:
    return np.asarray(mask & (x == top_of(x, mask)))


def _first(ties: Bools) -> Bools:
    return np.asarray(ties & (np.cumsum(ties, axis=1) == 1))


def _share(ties: Bools, dtype: np.dtype[Any]) -> Array:
    """The part of each key in a maximum that is split evenly among its ties."""
    return (ties / np.maximum(np.sum(ties, axis=1, keepdims=True), 1)).astype(dtype)


def _reverse_first(x: Array, mask: Bools, v: Array) -> Array:
    y = _reverse(x, mask, v)
    return np.asarray(y - np.where(_first(_ties(x, mask)), np.sum(y, axis=1, keepdims=True), 0))


def _reverse_split(x: Array, mask: Bools, v: Array) -> Array:
    y = _reverse(x, mask, v)
    return np.asarray(y - np.sum(y, axis=1, keepdims=True) * _share(_ties(x, mask), x.dtype))


def _forward_first(x: Array, mask: Bools, v: Array) -> Array:
    return _forward(x, mask, v - np.sum(np.where(_first(_ties(x, mask)), v, 0), axis=1, keepdims=True))


def _forward_split(x: Array, mask: Bools, v: Array) -> Array:
    return _forward(x, mask, v - np.sum(v * _share(_ties(x, mask), x.dtype), axis=1, keepdims=True))


def variants() -> list[Variant]:
    """The variants of this module."""
    return [
        variant("fused", "w (v - <w, v>) from weights that were not stored.", weights_of),
        variant("transposed", "w v - w <w, v>, products first.", weights_of, vjp=_transposed),
        variant("einsum", "The centre by an inner product that keeps no products.", weights_of, vjp=_by_einsum),
        variant("twice-centred", "Centres twice.", weights_of, vjp=_twice_centred),
        variant("detached-maximum", "Step by step, the maximum a constant.", weights_of, vjp=_reverse, jvp=_forward),
        variant(
            "through-first-maximum",
            "Step by step and through the maximum, whose first tie takes all.",
            weights_of,
            vjp=_reverse_first,
            jvp=_forward_first,
        ),
        variant(
            "through-split-maximum",
            "Step by step and through the maximum, split among its ties.",
            weights_of,
            vjp=_reverse_split,
            jvp=_forward_split,
        ),
    ]
