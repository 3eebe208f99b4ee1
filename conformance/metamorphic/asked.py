"""A subject's answers to some rows, and how far another right answer to them may be: no oracle, no truth."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...adapters.subject import METHODS, Method, Subject
from ...spec.batch import Array, Bools, Floats
from ...spec.rounding import RoundingModel, WeightsBudget
from ...spec.rounding.above import budget_above, derivative_above, weights_above
from ..calls import Fault, Returned, call
from ..truth import Side
from .rows import Rows

SIDE: dict[Method, Side] = {"vjp": "cotangents", "jvp": "tangents"}


class Asked:
    """Rows and what a subject says of them. Answers are fetched, and bounds derived, when they are first needed."""

    def __init__(self, subject: Subject, rows: Rows) -> None:
        self.subject, self.rows = subject, rows
        self._answers: dict[tuple[Method, Side | None], Returned | Fault] = {}
        self._bounds: dict[tuple[Method, Side], Floats] = {}
        self._budgets: dict[RoundingModel, WeightsBudget] = {}

    def answer(self, method: Method, side: Side | None = None) -> Returned | Fault:
        """The weights, or the derivative along the cotangents or the tangents (by default those of the method)."""
        side = SIDE[method] if side is None and method != "forward" else side
        if (method, side) not in self._answers:
            vector = None if side is None else getattr(self.rows, side)
            self._answers[method, side] = ask(self.subject, method, self.rows.scores, self.rows.mask, vector)
        return self._answers[method, side]

    def values(self, method: Method, side: Side | None = None) -> Floats | None:
        """The values of :meth:`answer`, None where the call failed."""
        answer = self.answer(method, side)
        return answer.values if isinstance(answer, Returned) else None

    @cached_property
    def weights(self) -> Floats:
        """The returned weights; ones where there are none, which bound nothing."""
        values = self.values("forward")
        return np.where(self.rows.mask, 1.0, 0.0) if values is None else values

    @cached_property
    def most(self) -> Floats:
        """Upper bounds of the true weights."""
        return weights_above(self._model("forward"), self.rows.scores64, self.rows.mask, self.weights)

    def budget(self, method: Method = "forward") -> WeightsBudget:
        """The budgets of the weights under the tier of a method, at most."""
        model = self._model(method)
        if model not in self._budgets:
            self._budgets[model] = budget_above(model, self.rows.scores64, self.rows.mask, self.most)
        return self._budgets[model]

    def bound(self, method: Method, side: Side | None = None) -> Floats:
        """How far an entry of the answer may be from the truth, at most; shape ``(R, n)``."""
        if method == "forward":
            return self.budget().error
        side = SIDE[method] if side is None else side
        if (method, side) not in self._bounds:
            budgets = derivative_above(
                self._model(method),
                self.rows.scores64,
                self.rows.mask,
                self.weights,
                self.budget().error,
                self.budget(method).error,
                getattr(self.rows, side).astype(np.float64),
            )
            self._bounds[method, side] = budgets.vjp if method == "vjp" else budgets.jvp
        return self._bounds[method, side]

    @cached_property
    def blind(self) -> Bools:
        """Rows of several allowed keys whose bounds would accept zeros in place of the returned weights."""
        allowed = self.rows.mask
        wide: Bools = np.all((self.bound("forward") >= self.weights) | ~allowed, axis=1)
        return wide & (allowed.sum(axis=1) > 1)

    def moves(self, method: Method) -> bool:
        """Whether the bounds depend on where the scores are, and not on their differences alone."""
        return any(self._model(m).argument != "shift" for m in METHODS if m in ("forward", method))

    def _model(self, method: Method) -> RoundingModel:
        return self.subject.rounding_for(method, self.rows.dtype)


def ask(subject: Subject, method: Method, scores: Array, mask: Bools, vector: Array | None) -> Returned | Fault:
    """One call of a method."""
    return call(subject, method, scores, mask, *([] if vector is None else [vector]))
