"""The derived bounds on ``|computed - exact|``: the only tolerances in hardmask."""

from .derivative import DerivativeBudget, Mode, derivative_budget, inner_budget
from .model import RoundingModel
from .tiers import TIERS, model, weaker
from .weights import WeightsBudget, weights_budget

__all__ = [
    "TIERS",
    "DerivativeBudget",
    "Mode",
    "RoundingModel",
    "WeightsBudget",
    "derivative_budget",
    "inner_budget",
    "model",
    "weaker",
    "weights_budget",
]
