"""One attention subject's answers on one problem, next to the truth: what every check looks at."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...adapters.attention import Attention
from ...adapters.subject import Method
from ...spec.attention.model import AttentionModel
from ...spec.attention.oracle import AttentionTruth
from ...spec.attention.problem import Problem
from ...spec.attention.referee import exceeding
from ...spec.attention.rounding import AttentionBudget, attention_budget
from ...spec.attention.rounding import Quantity as Referee
from ...spec.attention.tiers import canonical, ladder, model
from ...spec.batch import Array, Bools, Floats
from ...spec.contracts import Contract
from ...spec.oracle.audit import Audit
from ...spec.oracle.exact import Exact
from ..calls import Fault
from ..judgement import Comparison, Resolve, compare, used
from .calls import AttentionReturned, call_attention
from .judgement import Quantity, flat

REFEREED: dict[Quantity, Referee] = {
    "output": "output",
    "weights": "weights",
    "dq": "dq",
    "dk": "dk",
    "dv": "dv",
    "tangent": "jvp",
}
"""Quantities that have a true value, by the names that the oracle and the referee have for them."""

POISON = 16.0
"""Blocked keys or values that are so many times larger than all that is allowed are poison."""


class Known:
    """A problem with its truth, and the budgets of every model in use: computed once, shared by all subjects."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.truth = AttentionTruth(problem)
        self.audit = Audit()
        self._budgets: dict[AttentionModel, AttentionBudget] = {}

    def budget(self, rounding: AttentionModel) -> AttentionBudget:
        """The budgets under a model."""
        if rounding not in self._budgets:
            self._budgets[rounding] = attention_budget(rounding, self.truth)
        return self._budgets[rounding]

    def exact(self, quantity: Quantity) -> Exact:
        """The true value of a quantity."""
        found: Exact = getattr(self.truth, REFEREED[quantity])
        return found

    @cached_property
    def poison(self) -> bool:
        """Whether keys or values that no query may see are far larger than all others."""
        p = self.problem
        for name in ("k", "v"):
            sizes = np.abs(p.wide(name)).max(axis=-1, initial=0.0)
            hidden, seen = sizes[p.unseen].max(initial=0.0), sizes[~p.unseen].max(initial=0.0)
            if hidden > POISON * max(seen, 1.0):
                return True
        return False

    @cached_property
    def all_allowed(self) -> bool:
        """Whether the mask allows everything."""
        return bool(self.problem.mask.all())


class AttentionView:
    """Answers are fetched on first use, so that a check which does not apply costs no call."""

    def __init__(self, subject: Attention, contract: Contract, known: Known, required: frozenset[str]) -> None:
        self.subject = subject
        self.contract = contract
        self.known = known
        self.problem = known.problem
        self.promises = subject.promises | required
        self._answers: dict[Method, AttentionReturned | Fault] = {}
        self.related_faults: dict[str, Fault] = {}

    @cached_property
    def methods(self) -> tuple[Method, ...]:
        """The methods that are asked about this problem; of reported ones no tangent where a shape is dear."""
        lean = bool(self.subject.few_shapes) and "/reported/" in self.problem.key
        return tuple(m for m in self.subject.methods if not (lean and m == "jvp"))

    def answer(self, method: Method) -> AttentionReturned | Fault:
        """What a method returned."""
        if method not in self._answers:
            self._answers[method] = call_attention(self.subject, method, self.problem)
        return self._answers[method]

    def values(self, quantity: Quantity) -> Floats | None:
        """A returned quantity, exactly, in float64; None where the subject has no such method or the call failed."""
        method: Method = "forward" if quantity == "output" else "jvp" if quantity == "tangent" else "vjp"
        if method not in self.methods:
            return None
        answer = self.answer(method)
        return answer.values(quantity) if isinstance(answer, AttentionReturned) else None

    @property
    def weights(self) -> Floats | None:
        """The returned weights, where the entry point returns them."""
        answer = self.answer("forward")
        return answer.weights if isinstance(answer, AttentionReturned) else None

    def bits(self, quantity: Quantity, method: Method) -> Array | None:
        """A returned quantity in the subject's own dtype."""
        answer = self.answer(method)
        if not isinstance(answer, AttentionReturned):
            return None
        return answer.weights_raw if quantity == "weights" else answer.raw[quantity]

    def tier(self, method: Method) -> str:
        """The tier that the subject declares for a method in this dtype, by its usual name."""
        return canonical(self.subject.tier_for(method, self.problem.dtype), self.problem.dtype)

    def budget(self, quantity: Quantity, tier: str | None = None) -> Floats:
        """The budget of a quantity, in its shape, under the declared tier or another one."""
        method: Method = "forward" if quantity in ("output", "weights") else "jvp" if quantity == "tangent" else "vjp"
        budgets = self.known.budget(model(tier or self.tier(method), self.problem.dtype))
        found: Floats = getattr(budgets, REFEREED[quantity])
        return found

    def compared(self, quantity: Quantity, values: Floats) -> Comparison:
        """A returned quantity against the true one, as vectors."""
        exact = self.known.exact(quantity)
        parts = Exact(flat(exact.value), flat(exact.low), flat(exact.error))
        return compare(parts, flat(values), flat(self.budget(quantity)), self._by_referee(quantity, values.shape))

    def failing(
        self, quantity: Quantity, comparison: Comparison, applies: Bools, where: Bools | None
    ) -> frozenset[str]:
        """The tiers whose budget some entry exceeds."""
        found = set()
        wanted = applies[:, None] if where is None else applies[:, None] & where
        for tier in ladder(self.problem.dtype):
            ratio = used(comparison.error, flat(self.budget(quantity, tier)))
            if np.any((ratio > 1.0) & wanted):
                found.add(tier)
        return frozenset(found)

    def _by_referee(self, quantity: Quantity, shape: tuple[int, ...]) -> Resolve:
        name = REFEREED[quantity]

        def resolve(row: int, entries: list[int], returned: list[float], budgets: list[float]) -> list[bool]:
            b, h, i = (int(x) for x in np.unravel_index(row, shape[:-1]))
            return exceeding(self.problem, name, [(b, h, i, entry) for entry in entries], returned, budgets)

        return resolve

    @property
    def faults(self) -> dict[Method, Fault]:
        """The calls made so far that came to no usable answer, by method."""
        return {m: a for m, a in self._answers.items() if isinstance(a, Fault)}

    @cached_property
    def empty(self) -> Bools:
        """Queries without an allowed key, as vectors."""
        return self.problem.empty.reshape(-1)
