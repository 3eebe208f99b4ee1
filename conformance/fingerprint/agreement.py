"""When two arrays that two kernels returned agree.

Two answers agree where neither is a number against a NaN and they differ by no more than both may be off: by the sum of
their budgets. What a query without an allowed key gives is a policy, and two paths may share one that is not zero:
there they also agree if both lie within their budgets of what the uniform row, or the softmax of the raw scores, gives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from ...adapters.attention import Attention
from ...adapters.subject import Method
from ...spec.attention.oracle import AttentionTruth
from ...spec.attention.problem import Problem
from ...spec.attention.rounding import AttentionBudget, attention_budget
from ...spec.attention.tiers import canonical, model
from ...spec.batch import Array, Bools, Floats
from ...spec.oracle.exact import Exact
from . import policy

Kind = Literal["NaN", "no NaN", "value", "raises"]

FIELDS = {"output": "output", "tangent": "jvp", "dq": "dq", "dk": "dk", "dv": "dv"}
"""What a returned array is called -> the field of truths and budgets."""


class Posed:
    """A problem with its truths and budgets, each computed when it is first needed."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._budgets: dict[tuple[int, str], AttentionBudget] = {}

    @cached_property
    def truths(self) -> list[AttentionTruth]:
        """The truth; where some query may see nothing, also that of raw and of uniform rows there.

        Rows are uniform that score every key ``q k - q k``: the same problem in twice the width. Its gradients by the
        first half are those of a kernel that absorbs the scores beside a large constant.
        """
        p = self.problem
        if not p.empty.any() or 0 in p.sizes:
            return [AttentionTruth(p)]
        raw = replace(p, mask=p.full_mask | p.empty[..., None], causal=None, lengths=False)
        dq, dk, dv = p.tangents

        def twice(q: Array) -> Array:
            return np.concatenate([q, np.where(p.empty[..., None], -q, np.zeros_like(q))], axis=-1)

        k, dk = (np.concatenate([a, a], axis=-1) for a in (p.k, dk))
        uniform = replace(raw, q=twice(p.q), k=k, tangents=(twice(dq), dk, dv))
        return [AttentionTruth(p), AttentionTruth(raw), AttentionTruth(uniform)]

    def true(self, number: int, name: str) -> tuple[Floats, Floats]:
        """An array of truth ``number``, and the bound of its own error, in the shape of the problem's own."""
        exact: Exact = getattr(self.truths[number], FIELDS[name])
        return self._own(name, exact.value + exact.low), self._own(name, exact.error)

    def _own(self, name: str, array: Floats) -> Floats:
        return array[..., : self.problem.sizes[5]] if name in ("dq", "dk") else array

    def budget(self, number: int, subject: Attention, method: Method, name: str) -> Floats:
        """How far an array of a subject may be from truth ``number``, the truth's own error included."""
        tier = canonical(subject.tier_for(method, self.problem.dtype), self.problem.dtype)
        key = number, tier
        if key not in self._budgets:
            self._budgets[key] = attention_budget(model(tier, self.problem.dtype), self.truths[number])
        return self._own(name, getattr(self._budgets[key], FIELDS[name])) + self.true(number, name)[1]


@dataclass
class Compared:
    """How two arrays compare: the first entry that disagrees, or the share of the bound that was used."""

    kind: Kind | None = None
    at: tuple[int, ...] = ()
    bound: float | None = None
    share: float = 0.0
    identical: bool = False


def compare(
    posed: Posed, method: Method, name: str, subjects: tuple[Attention, Attention], arrays: tuple[Array, Array]
) -> Compared:
    """Compare what two paths returned; a disagreement is told from the side of the second."""
    a, b = arrays
    if a.size == 0 or policy.same_bits(a, b).all():
        return Compared(identical=True)
    first, second = a.astype(np.float64), b.astype(np.float64)
    lost, kept = np.isnan(second) & ~np.isnan(first), np.isnan(first) & ~np.isnan(second)
    for kind, where in (("NaN", lost), ("no NaN", kept)):
        if where.any():
            return Compared(kind, _first(where))  # type: ignore[arg-type]
    both = ~np.isnan(first)
    with np.errstate(all="ignore"):
        apart = np.where(both & (first != second), np.abs(first - second), 0.0)
        bound = sum(posed.budget(0, s, method, name) for s in subjects)
    over: Bools = apart > bound
    if not over.any():
        with np.errstate(all="ignore"):
            return Compared(share=float(np.max(np.where(apart > 0.0, apart / bound, 0.0), initial=0.0)))
    if any(_near(posed, n, method, name, subjects, (first, second), both) for n in range(1, len(posed.truths))):
        return Compared()
    at = _first(over)
    return Compared("value", at, float(np.broadcast_to(bound, apart.shape)[at]))


def _near(
    posed: Posed,
    number: int,
    method: Method,
    name: str,
    subjects: tuple[Attention, Attention],
    values: tuple[Floats, Floats],
    where: Bools,
) -> bool:
    """Whether both lie within their budgets of one and the same other truth."""
    true, _ = posed.true(number, name)
    return all(
        bool((np.abs(v - true)[where] <= posed.budget(number, s, method, name)[where]).all())
        for s, v in zip(subjects, values, strict=True)
    )


def _first(where: Bools) -> tuple[int, ...]:
    return tuple(int(i) for i in np.argwhere(where)[0])
