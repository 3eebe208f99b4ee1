"""What the correct variants are made of: weights computed in some way, and derivatives made of these weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...adapters.subject import Array, Bools, Subject
from ...spec.formats import DTYPES
from .kit import wide
from .mutant import Variant

Weights = Callable[[Array, Bools], Array]
"""Rows of scores in the format computed in -> their weights in that format, exactly 0 where nothing is allowed."""

Derivative = Callable[[Array, Bools, Array], Array]
"""Scores, mask and a vector with 0 at blocked keys, all in the format computed in -> the VJP or the JVP."""


def inner(a: Array, b: Array) -> Array:
    """The inner product of each pair of rows, shape ``(rows, 1)``."""
    return np.asarray(np.sum(a * b, axis=-1, keepdims=True, dtype=a.dtype))


def centred(w: Array, v: Array) -> Array:
    """``w (v - <w, v>)`` of each row."""
    return np.asarray(w * (v - inner(w, v)))


def fused(weights: Weights) -> Derivative:
    """The derivative by its formula, from the weights before they are stored."""
    return lambda x, mask, v: centred(weights(x, mask), v)


def variant(
    name: str,
    story: str,
    weights: Weights,
    *,
    vjp: Derivative | None = None,
    jvp: Derivative | None = None,
    compute: Callable[[Array], Array] = wide,
    dtypes: tuple[str, ...] = DTYPES,
    tier: str | Mapping[str, str] | None = None,
    **declared: Any,
) -> Variant:
    """A variant that computes in the format of ``compute(scores)`` and rounds its results once to the storage dtype.

    ``vjp`` and ``jvp`` are by default the formula; a ``jvp`` that is not given is the ``vjp``. ``tier`` and
    ``declared`` go to the subject.

    >>> from .kit import weights_of
    >>> plain = variant("plain", "As it is written.", weights_of).subject
    >>> plain.forward(np.zeros((1, 3)), np.array([[True, False, True]]))
    array([[0.5, 0. , 0.5]])
    """
    vjp = vjp or fused(weights)
    jvp = jvp or vjp

    def forward(scores: Array, mask: Bools) -> Array:
        with np.errstate(all="ignore"):  # differences of the largest scores overflow, and exp takes them to 0
            return weights(compute(scores), mask).astype(scores.dtype)

    def method(derivative: Derivative) -> Callable[[Array, Bools, Array], Array]:
        def call(scores: Array, mask: Bools, vector: Array) -> Array:
            v = np.where(mask, compute(vector), 0).astype(compute(vector).dtype)
            with np.errstate(all="ignore"):
                y = derivative(compute(scores), mask, v)
                return np.where(mask, y, 0).astype(scores.dtype)

        return call

    made = {"vjp": method(vjp), "jvp": method(jvp), "adapter": "variant", "dtypes": dtypes, "tier": tier or {}}
    return Variant(name, story, Subject(f"variant.{name}", forward, **{**made, **declared}))
