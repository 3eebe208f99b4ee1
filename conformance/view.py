"""One subject's answers on one batch, next to the truth: what every check looks at."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ..adapters.subject import Array, Method, Subject
from ..spec.batch import Batch, Bools, Floats
from ..spec.contracts import Contract
from ..spec.rounding import Mode, RoundingModel, WeightsBudget, canonical, model
from .calls import Fault, Returned, call
from .judgement import Comparison, by_referee, compare
from .spread import Entries
from .truth import Side, Truth

DERIVATIVES: tuple[tuple[Mode, Side], ...] = (("vjp", "cotangents"), ("jvp", "tangents"))
"""Each mode with the vectors that it is fed."""


def declared_tier(subject: Subject, method: Method, dtype: str) -> str:
    """What a subject declares for one method and dtype: a tier by its usual name, and the changes of a custom model."""
    tier = canonical(subject.tier_for(method, dtype), dtype)
    changes = subject.custom(method, dtype)
    return f"{tier} with {changes}" if changes else tier


class View:
    """Answers are fetched on first use, so that a check which does not apply costs no call.

    ``tier``: judge by this tier instead of the rounding models that the subject declares.
    """

    def __init__(
        self,
        subject: Subject,
        contract: Contract,
        truth: Truth,
        required: frozenset[str],
        tier: str | None = None,
    ) -> None:
        self.subject = subject
        self._tier = tier
        self.contract = contract
        self.truth = truth
        self.batch: Batch = truth.batch
        self.promises = subject.promises | required
        self._calls: dict[str, Returned | Fault] = {}
        self._serves: dict[str, str] = {}
        self._compared: dict[tuple[Mode, Side], Comparison] = {}

    def at(self, tier: str) -> View:
        """The same answers, judged by another tier."""
        view = View(self.subject, self.contract, self.truth, frozenset(), tier)
        view.promises, view._calls, view._serves = self.promises, self._calls, self._serves
        return view

    def tier(self, method: Method) -> str:
        """The tier by which a method is judged in this dtype, with the changes of a custom model."""
        if self._tier is not None:
            return self._tier
        return declared_tier(self.subject, method, self.batch.dtype)

    def rounding(self, method: Method) -> RoundingModel:
        """The rounding model by which a method is judged in this dtype."""
        dtype = self.batch.dtype
        return self.subject.rounding_for(method, dtype) if self._tier is None else model(self._tier, dtype)

    def budget(self) -> WeightsBudget:
        """The budgets of the weights and row sums."""
        return self.truth.budget(self.rounding("forward"))

    def call(self, what: str, method: Method, *arrays: Array, serves: str = "") -> Returned | Fault:
        """One call of the subject; ``what`` names it, and the same call is not made twice.

        ``serves``: the one declaration that the call is made for, where it is not the batch itself that is handed over.
        """
        if what not in self._calls:
            self._calls[what] = call(self.subject, method, *arrays, layout=self.batch.layout)
            self._serves[what] = serves
        return self._calls[what]

    @cached_property
    def forward(self) -> Returned | Fault:
        """The weights."""
        return self.call("forward", "forward", self.batch.scores, self.batch.mask)

    @cached_property
    def values(self) -> Floats | None:
        """The returned weights, None when the call failed."""
        return self.forward.values if isinstance(self.forward, Returned) else None

    @property
    def bits(self) -> Array | None:
        """The returned weights in the subject's own dtype, None when the call failed."""
        return self.forward.raw if isinstance(self.forward, Returned) else None

    @cached_property
    def compared(self) -> Comparison:
        """The returned weights against the true ones."""
        assert self.values is not None
        return compare(self.truth.weights.weights, self.values, self.budget().error, by_referee(self.truth))

    def derivative(self, mode: Mode, side: Side) -> Returned | Fault:
        """The pullback or pushforward of the cotangents or the tangents."""
        return self.call(f"{mode} {side}", mode, self.batch.scores, self.batch.mask, getattr(self.batch, side))

    def derivative_values(self, mode: Mode, side: Side) -> Floats | None:
        """The values of :meth:`derivative`, None when there is no such method or the call failed."""
        if mode not in self.subject.methods or self.batch.forward_only:
            return None
        answer = self.derivative(mode, side)
        return answer.values if isinstance(answer, Returned) else None

    def errors(self, comparison: Comparison) -> Entries | None:
        """The signed errors of a comparison in ULPs; None where the answers are judged again, by another tier."""
        return comparison.entries(self.batch.dtype) if self._tier is None else None

    def derivative_bits(self, mode: Mode, side: Side) -> Array | None:
        """The derivative in the subject's own dtype, None when the call failed."""
        answer = self.derivative(mode, side)
        return answer.raw if isinstance(answer, Returned) else None

    def derivative_budget(self, mode: Mode, side: Side) -> Floats:
        """The budget of a derivative."""
        budgets = self.truth.derivative_budget(self.rounding(mode), side)
        return budgets.vjp if mode == "vjp" else budgets.jvp

    def given_budget(self, side: Side) -> Floats:
        """The budget of a VJP at the very weights that it consumed."""
        return self.truth.derivative_budget(self.rounding("vjp"), side).given

    def derivative_compared(self, mode: Mode, side: Side) -> Comparison:
        """A returned derivative against the true one."""
        if (mode, side) not in self._compared:
            values = self.derivative_values(mode, side)
            assert values is not None
            budget = self.derivative_budget(mode, side)
            resolve = by_referee(self.truth, side)
            self._compared[mode, side] = compare(self.truth.derivative(side), values, budget, resolve)
        return self._compared[mode, side]

    @property
    def faults(self) -> list[Fault]:
        """The calls made so far that came to no usable answer."""
        return [answer for answer in self._calls.values() if isinstance(answer, Fault)]

    @property
    def faults_serving(self) -> dict[str, Fault]:
        """For each declaration that calls were made for, the first of them that came to no usable answer."""
        found: dict[str, Fault] = {}
        for what, answer in self._calls.items():
            if self._serves[what] and isinstance(answer, Fault):
                found.setdefault(self._serves[what], answer)
        return found

    @cached_property
    def forward_clean(self) -> Bools:
        """Rows whose returned weights are all finite."""
        if self.values is None:
            return np.zeros(self.batch.shape[0], bool)
        return np.asarray(np.all(np.isfinite(self.values), axis=1))
