"""A declared rounding model: which format each step of a masked softmax is rounded to, and how well.

Every budget of this package bounds ``|computed - exact|`` for *any* implementation that obeys the model, whatever the
order of its sums. Relative errors are carried as logarithms, so that no second-order term is dropped: a product of
factors in ``[1 - b_k, 1 / (1 - b_k)]`` with ``sum b_k = b < 1`` lies in ``[1 - b, 1 / (1 - b)]`` (Higham, Accuracy and
Stability of Numerical Algorithms, Lemma 3.1), and ``log`` turns the product into a sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..batch import Floats
from ..formats import FORMATS, Format

Argument = Literal["shift", "exp2", "lse"]

SAFETY = 1e-9
"""Relative margin added to every budget for the float64 evaluation of the budget itself."""


@dataclass(frozen=True)
class RoundingModel:
    """How one subject rounds, in one storage format.

    ``compute``, ``storage``: formats of the elementwise operations and of the result. ``accumulate``: format in which
    sums run before they are rounded to ``compute``. ``alpha``: ``|fl(exp t) - e^t| <= alpha u e^t`` with ``u`` of the
    compute format (1 ulp is up to ``2u``). ``divisions``: roundings of the normalisation (1 divides, 2 multiplies by a
    reciprocal). ``flush``: results below the smallest normal number of the compute format may become 0.
    ``cast_numerators``: the numerators are rounded to storage before they are divided. ``composed``: derivatives may be
    taken operation by operation (exp, sum, divide), through the maximum too, rather than as ``w (g - <w, g>)``.
    ``argument``: how exponents may be formed (:mod:`~hardmask.spec.rounding.arguments`). ``online``: numerators and
    sums may be rescaled whenever a running maximum grows.
    """

    compute: Format
    storage: Format
    accumulate: Format
    alpha: float
    divisions: int = 2
    flush: bool = True
    cast_numerators: bool = False
    composed: bool = True
    argument: Argument = "shift"
    online: bool = False

    @property
    def shared(self) -> bool:
        """Whether the very numerators that are divided stand in the sum, so that their errors cancel there."""
        return not self.online and self.argument != "lse"

    @property
    def u(self) -> float:
        """Unit roundoff of the compute format."""
        return self.compute.u

    @property
    def u_cast(self) -> float:
        """Unit roundoff of the rounding of the numerators, 0 when there is none."""
        return self.storage.u if self.cast_numerators else 0.0

    @property
    def tiny(self) -> float:
        """Absolute error of a result below the normal range of the compute format.

        A flushed result loses up to the smallest normal number. The factor 1.5 covers an exp that flushes a little
        early and the relative error of a result that lands just below the limit.
        """
        return 1.5 * self.compute.lam if self.flush else max(1.0, self.alpha) * self.compute.eta

    @property
    def tiny_storage(self) -> float:
        """Absolute error of rounding a number below the normal range to the storage format.

        Half the smallest subnormal number, or all of the number where it may be flushed: where storage and compute
        format share their exponents, as bfloat16 and float32 do. No kernel was seen to flush float16.
        """
        return self.storage.lam if self.flush and self.storage.emin == self.compute.emin else self.storage.eta / 2.0

    def storage_error(self, bound: Floats) -> Floats:
        """Error of rounding results of at most that size to the storage format; 0 when they are computed in it.

        Half a unit in the last place of the bound, and no less than :attr:`tiny_storage` below the normal range.
        """
        if self.storage == self.compute:
            return np.zeros_like(bound)
        exponent = np.maximum(np.frexp(bound)[1] - 1, self.storage.emin)
        half = np.ldexp(1.0, np.where(bound > 0.0, exponent, self.storage.emin) - self.storage.precision)
        return np.where(bound < 4.0 * self.storage.lam, np.maximum(half, self.tiny_storage), half)

    def log_sum(self, terms: Floats) -> Floats:
        """``-log`` of the relative lower bound of a sum of that many non-negative terms, summed in any order.

        Adding an exact 0 is free, so only the allowed keys count: at most ``terms - 1`` additions meet any one term. A
        sum of fewer than two terms is exact.
        """
        additions = np.maximum(terms - 1.0, 0.0)
        log = -additions * np.log1p(-self.accumulate.u)
        if self.accumulate != self.compute:
            log = log - np.where(additions > 0, np.log1p(-self.compute.u), 0.0)
        return np.asarray(log)


def up(x: Floats) -> Floats:
    """Round a budget up, past the errors of its own evaluation."""
    return x * (1.0 + SAFETY)


FLOAT32 = FORMATS["float32"]
