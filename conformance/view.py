"""One subject's answers on one batch, next to the truth: what every check looks at."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from ..adapters.subject import Subject
from ..spec.batch import Batch, Bools, Floats
from ..spec.contracts import Contract
from ..spec.rounding import Mode
from .calls import Fault, Returned, call
from .judgement import Comparison, by_referee, compare
from .truth import Side, Truth

DERIVATIVES: tuple[tuple[Mode, Side], ...] = (("vjp", "cotangents"), ("jvp", "tangents"))
"""Each mode with the vectors that it is fed."""


class View:
    """Answers are fetched on first use, so that a check which does not apply costs no call."""

    def __init__(self, subject: Subject, contract: Contract, truth: Truth, required: frozenset[str]) -> None:
        self.subject = subject
        self.contract = contract
        self.truth = truth
        self.batch: Batch = truth.batch
        self.promises = subject.promises | required
        self._derivatives: dict[tuple[Mode, Side], Returned | Fault] = {}
        self._compared: dict[tuple[Mode, Side], Comparison] = {}

    def tier(self, method: Literal["forward", "vjp", "jvp"]) -> str:
        """The tier that the subject declares for a method in this dtype."""
        return self.subject.tier_for(method, self.batch.dtype)

    @cached_property
    def forward(self) -> Returned | Fault:
        """The weights."""
        return call(self.subject, "forward", self.batch.scores, self.batch.mask)

    @cached_property
    def values(self) -> Floats | None:
        """The returned weights, None when the call failed."""
        return self.forward.values if isinstance(self.forward, Returned) else None

    @cached_property
    def compared(self) -> Comparison:
        """The returned weights against the true ones."""
        assert self.values is not None
        budget = self.truth.budget(self.tier("forward")).error
        return compare(self.truth.weights.weights, self.values, budget, by_referee(self.truth))

    def derivative(self, mode: Mode, side: Side) -> Returned | Fault:
        """The pullback or pushforward of the cotangents or the tangents."""
        if (mode, side) not in self._derivatives:
            vector = getattr(self.batch, side)
            self._derivatives[mode, side] = call(self.subject, mode, self.batch.scores, self.batch.mask, vector)
        return self._derivatives[mode, side]

    def derivative_values(self, mode: Mode, side: Side) -> Floats | None:
        """The values of :meth:`derivative`, None when there is no such method or the call failed."""
        if mode not in self.subject.methods or self.batch.forward_only:
            return None
        answer = self.derivative(mode, side)
        return answer.values if isinstance(answer, Returned) else None

    def derivative_budget(self, mode: Mode, side: Side, tier: str | None = None) -> Floats:
        """The budget of a derivative under the declared tier, or under another one."""
        budgets = self.truth.derivative_budget(tier or self.tier(mode), side)
        return budgets.vjp if mode == "vjp" else budgets.jvp

    def derivative_compared(self, mode: Mode, side: Side) -> Comparison:
        """A returned derivative against the true one."""
        if (mode, side) not in self._compared:
            values = self.derivative_values(mode, side)
            assert values is not None
            budget = self.derivative_budget(mode, side)
            resolve = by_referee(self.truth, side)
            self._compared[mode, side] = compare(self.truth.derivative(side), values, budget, resolve)
        return self._compared[mode, side]

    @cached_property
    def forward_clean(self) -> Bools:
        """Rows whose returned weights are all finite."""
        if self.values is None:
            return np.zeros(self.batch.shape[0], bool)
        return np.asarray(np.all(np.isfinite(self.values), axis=1))
