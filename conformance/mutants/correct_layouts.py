"""Correct variants: keys reordered, padded or left out on the way, and arrays in unusual layouts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...adapters.subject import Array, Bools
from .kit import weights_of
from .mutant import Variant
from .recipe import Derivative, Weights, centred, variant

Order = Callable[[Array, Bools], Array]
"""Scores and mask -> for each row the keys in a new order, an integer array."""


def _reordered(order: Order, cut: bool = False) -> tuple[Weights, Derivative]:
    """Weights and derivative of reordered rows, put back in place; ``cut`` drops the columns that nobody allows."""

    def arranged(x: Array, mask: Bools) -> tuple[Array, Array, Bools]:
        index = order(x, mask)
        if cut:
            index = index[:, : int(mask.sum(axis=1).max(initial=0))]
        return index, np.take_along_axis(x, index, axis=1), np.take_along_axis(mask, index, axis=1)

    def put_back(values: Array, index: Array, like: Array) -> Array:
        result = np.zeros_like(like)
        np.put_along_axis(result, index, values, axis=1)
        return result

    def weights(x: Array, mask: Bools) -> Array:
        index, scores, allowed = arranged(x, mask)
        return put_back(weights_of(scores, allowed), index, x)

    def derivative(x: Array, mask: Bools, v: Array) -> Array:
        index, scores, allowed = arranged(x, mask)
        vector = np.take_along_axis(v, index, axis=1)
        return put_back(centred(weights_of(scores, allowed), vector), index, x)

    return weights, derivative


def _ascending(x: Array, mask: Bools) -> Array:
    return np.argsort(np.where(mask, x, -np.inf), axis=1, kind="stable")


def _descending(x: Array, mask: Bools) -> Array:
    return np.argsort(-np.where(mask, x, -np.inf), axis=1, kind="stable")


def _allowed_first(x: Array, mask: Bools) -> Array:
    return np.argsort(~mask, axis=1, kind="stable")


def _padded(x: Array, mask: Bools) -> Array:
    """The row to a multiple of eight, with blocked keys that hold NaN."""
    keys = x.shape[1]
    room = ((0, 0), (0, -keys % 8))
    return weights_of(np.pad(x, room, constant_values=np.nan), np.pad(mask, room))[:, :keys]


def _column_major(x: Array, mask: Bools) -> Array:
    return np.asfortranarray(weights_of(np.asfortranarray(x), np.asfortranarray(mask)))


def _strided() -> Variant:
    """Views with a stride, the gaps full of NaN."""
    plain = variant("strided", "Returns views with a stride.", weights_of)

    def spread(method: Callable[..., Any]) -> Callable[..., Array]:
        def call(*arrays: Array) -> Array:
            result = method(*arrays)
            room = np.full((*result.shape, 2), np.nan, result.dtype)
            room[..., 0] = result
            return room[..., 0]

        return call

    s = plain.subject
    assert s.vjp is not None
    assert s.jvp is not None
    return replace(plain, subject=replace(s, forward=spread(s.forward), vjp=spread(s.vjp), jvp=spread(s.jvp)))


def _in_place(x: Array, mask: Bools) -> Array:
    """Writes over its own argument, as one does to save memory."""
    x[~mask] = -np.inf
    x -= np.where(np.any(mask, axis=1, keepdims=True), np.max(x, axis=1, keepdims=True, initial=-np.inf), 0)
    np.exp(x, out=x)
    total = np.sum(x, axis=1, keepdims=True)
    x /= np.where(total > 0, total, 1)
    return x


def variants() -> list[Variant]:
    """The variants of this module."""
    ascending, descending, compressed = (
        _reordered(_ascending),
        _reordered(_descending),
        _reordered(_allowed_first, True),
    )
    return [
        variant("ascending", "Sorts the keys by their scores, smallest first.", ascending[0], vjp=ascending[1]),
        variant("descending", "Sorts the keys by their scores, largest first.", descending[0], vjp=descending[1]),
        variant(
            "compressed", "Moves the allowed keys to the front and cuts the rest.", compressed[0], vjp=compressed[1]
        ),
        variant("padded", "Pads to a multiple of eight with blocked keys that hold NaN.", _padded),
        variant("column-major", "Works on arrays in Fortran order.", _column_major),
        _strided(),
        variant("in-place", "Writes over its arguments.", _in_place),
    ]
