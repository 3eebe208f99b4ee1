"""What the mutants of derivatives are made of: right weights, and a rule that makes a wrong derivative of a vector."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...adapters.numpy_rows import softmax_where
from ...adapters.subject import Array, Bools
from ...spec.formats import DTYPES
from .kit import mutant, wide
from .mutant import Mutant

BOTH = ("vjp", "jvp")


@dataclass(frozen=True, eq=False)
class Rows:
    """What a rule works from, in the format that is computed in; every array has shape ``(rows, keys)``.

    ``weights``: the right weights, rounded to ``storage`` as the forward pass returns them. ``vector``: cotangents or
    tangents with 0 at blocked keys; ``given``: the same as they came. ``scores``: as they came. ``mask``: True =
    allowed.
    """

    weights: Array
    vector: Array
    given: Array
    scores: Array
    mask: Bools
    storage: np.dtype[Any]

    @property
    def empty(self) -> Bools:
        """Rows without an allowed key, shape ``(rows, 1)``."""
        return np.asarray(~np.any(self.mask, axis=-1, keepdims=True))

    @property
    def centre(self) -> Array:
        """``<w, v>`` of each row, shape ``(rows, 1)``."""
        return along(self.weights * self.vector)

    @property
    def right(self) -> Array:
        """The right derivative, ``w (v - <w, v>)``."""
        return self.weights * (self.vector - self.centre)

    def inside(self, values: Array) -> Array:
        """The values with exact zeros at blocked keys."""
        return np.where(self.mask, values, 0)


Rule = Callable[[Rows], Array]


def along(values: Array) -> Array:
    """The sum of each row, shape ``(rows, 1)``."""
    return np.asarray(np.sum(values, axis=-1, keepdims=True))


_recent: dict[str, tuple[bytes, bytes, Array]] = {}


def right(rows: Rows) -> Array:
    """The right derivative, as a rule."""
    return rows.inside(rows.right)


def forward(scores: Array, mask: Bools) -> Array:
    """The right weights, which are all that these mutants show of themselves in a forward pass.

    Dozens of mutants ask for the weights of the same rows, one after the other: the last are kept.
    """
    asked = scores.tobytes(), mask.tobytes()
    known = _recent.get(scores.dtype.name)
    if known is None or known[:2] != asked or known[2].shape != scores.shape:
        weights = softmax_where(scores, mask).weights
        weights.setflags(write=False)
        known = _recent[scores.dtype.name] = (*asked, weights)
    return known[2]


def derivative(rule: Rule) -> Callable[[Array, Bools, Array], Array]:
    """The VJP or JVP that a rule makes, rounded once to the storage dtype."""

    def call(scores: Array, mask: Bools, vector: Array) -> Array:
        given = wide(vector)
        rows = Rows(
            weights=wide(forward(scores, mask)),
            vector=np.where(mask, given, 0),
            given=given,
            scores=wide(scores),
            mask=mask,
            storage=scores.dtype,
        )
        with np.errstate(all="ignore"):
            return np.asarray(rule(rows)).astype(scores.dtype)

    return call


def faulty(
    name: str,
    kind: str,
    story: str,
    rule: Rule,
    *,
    modes: tuple[str, ...] = BOTH,
    dtypes: tuple[str, ...] = DTYPES,
    survivors: Mapping[str, str] | None = None,
    **declared: Any,
) -> Mutant:
    """A mutant that is right forward and follows ``rule`` in the modes named, the right derivative in the others.

    ``kind``, ``story``, ``survivors``: as :class:`~hardmask.conformance.mutants.mutant.Mutant` has them, which says
    what it raises. ``declared`` goes to the subject.

    >>> wrong = faulty("sign", "K", "The VJP has the wrong sign.", lambda rows: -rows.right, modes=("vjp",)).subject
    >>> row = np.zeros((1, 2)), np.array([[True, True]]), np.array([[1.0, 0.0]])
    >>> wrong.vjp(*row), wrong.jvp(*row)
    (array([[-0.25,  0.25]]), array([[ 0.25, -0.25]]))
    """
    made = {mode: derivative(rule if mode in modes else right) for mode in BOTH}
    return mutant(name, kind, story, forward, dtypes=dtypes, survivors=survivors, **made, **declared)
