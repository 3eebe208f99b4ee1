"""What is true of one batch, and how far a subject may be from it: computed once, shared by all subjects."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np

from ..spec.batch import Batch, Bools, Floats
from ..spec.oracle import engine_for
from ..spec.oracle.audit import Audit
from ..spec.oracle.exact import Engine, Exact, ExactWeights
from ..spec.rounding import DerivativeBudget, RoundingModel, WeightsBudget, derivative_budget, weights_budget

Side = Literal["cotangents", "tangents"]
SIDES: tuple[Side, ...] = ("cotangents", "tangents")


class Truth:
    """The oracle's view of a batch: exact weights and derivatives, and the budgets of every rounding model in use.

    Rows whose allowed scores are not all real are treated as empty here; no check judges them. ``audit``: what the
    referee recomputed of it.
    """

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.engine: Engine = engine_for(batch.dtype)
        self.mask: Bools = batch.mask & batch.real[:, None]
        self.audit = Audit()
        self._budgets: dict[RoundingModel, WeightsBudget] = {}
        self._allowed: dict[Side, Floats] = {}
        self._derivatives: dict[Side, Exact] = {}
        self._derivative_budgets: dict[tuple[RoundingModel, Side], DerivativeBudget] = {}

    @cached_property
    def weights(self) -> ExactWeights:
        """The masked softmax of every row."""
        return self.engine.weights(self.batch.scores64, self.mask)

    @cached_property
    def vectors(self) -> dict[Side, Floats]:
        """Cotangents and tangents, exactly, in float64."""
        return {
            "cotangents": self.batch.cotangents.astype("float64"),
            "tangents": self.batch.tangents.astype("float64"),
        }

    def allowed(self, side: Side) -> Floats:
        """Cotangents or tangents with exact zeros at blocked keys."""
        if side not in self._allowed:
            self._allowed[side] = np.where(self.mask, self.vectors[side], 0.0)
        return self._allowed[side]

    def derivative(self, side: Side) -> Exact:
        """``J v`` for the cotangents or the tangents; J is symmetric, so JVP and VJP have one truth."""
        if side not in self._derivatives:
            self._derivatives[side] = self.engine.derivative(self.weights, self.vectors[side])
        return self._derivatives[side]

    def budget(self, rounding: RoundingModel) -> WeightsBudget:
        """Budgets of the weights and row sums under a rounding model."""
        if rounding not in self._budgets:
            self._budgets[rounding] = weights_budget(rounding, self.batch.scores64, self.weights)
        return self._budgets[rounding]

    def derivative_budget(self, rounding: RoundingModel, side: Side) -> DerivativeBudget:
        """Budgets of ``J v`` under a rounding model."""
        if (rounding, side) not in self._derivative_budgets:
            self._derivative_budgets[rounding, side] = derivative_budget(
                rounding, self.weights, self.budget(rounding).error, self.vectors[side]
            )
        return self._derivative_budgets[rounding, side]
