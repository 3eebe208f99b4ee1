"""The oracle's answer: a value with a rigorous enclosure of its own error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..batch import Bools, Floats


@dataclass(frozen=True, eq=False)
class Exact:
    """An approximation ``value + low`` of a real array, and a bound ``error >= |true - (value + low)|``.

    All three have one shape, ``(R, n)`` or ``(R,)``. ``low`` is the second word of a double-double (zeros for an
    engine that has none).
    """

    value: Floats
    low: Floats
    error: Floats

    def distance(self, returned: Floats) -> tuple[Floats, Floats]:
        """``(e, slack)`` with ``|returned - true|`` in ``[e - slack, e + slack]``; NaN where ``returned`` is NaN.

        >>> one = np.ones(1)
        >>> Exact(one, 0 * one, 0 * one).distance(np.array([1.5]))[0]
        array([0.5])
        """
        with np.errstate(invalid="ignore", over="ignore"):
            e = np.abs(self.signed(returned))
            # Two roundings, each relative to a quantity no larger than e + |low|.
            slack = self.error + 2.0**-51 * (e + np.abs(self.low))
        return e, slack

    def signed(self, returned: Floats) -> Floats:
        """``returned - true``, up to the slack of :meth:`distance`; NaN where ``returned`` is NaN."""
        with np.errstate(invalid="ignore", over="ignore"):
            error: Floats = (returned - self.value) - self.low
        return error


@dataclass(frozen=True, eq=False)
class ExactWeights:
    """The weights of masked rows, with what the rounding budgets need.

    ``weights``: shape ``(R, n)``, exactly 0 (error 0) at blocked keys and on empty rows. ``gap``: ``max - score`` at
    allowed keys (float64, may be ``inf``), 0 elsewhere. ``total``: ``S = sum exp(-gap)`` per row, shape ``(R,)``, 1 on
    empty rows.
    """

    weights: Exact
    gap: Floats
    total: Floats
    mask: Bools


class Engine(Protocol):
    """A vectorised oracle. Scores are float64, exact, finite wherever the mask is True; blocked scores may be NaN."""

    name: str

    def weights(self, scores: Floats, mask: Bools) -> ExactWeights:
        """The masked softmax of each row."""
        ...

    def derivative(self, exact: ExactWeights, vector: Floats) -> Exact:
        """``(diag(w) - w w^T) v`` per row; ``vector`` has the shape of the scores, its blocked entries are not read."""
        ...

    def total(self, values: Floats) -> Exact:
        """Sum over the last axis of finite float64 values, shape ``(R,)``."""
        ...

    def inner(self, a: Floats, b: Floats) -> Exact:
        """``sum a * b`` over the last axis of finite float64 values, shape ``(R,)``."""
        ...
