"""The derived bounds on ``|computed - exact|``: the only tolerances in hardmask."""

from .custom import customised, widens
from .derivative import DerivativeBudget, Mode, derivative_budget, inner_budget
from .model import RoundingModel
from .tiers import TIERS, canonical, ladder, model, weaker
from .weights import WeightsBudget, weights_budget

__all__ = [
    "TIERS",
    "DerivativeBudget",
    "Mode",
    "RoundingModel",
    "WeightsBudget",
    "canonical",
    "customised",
    "derivative_budget",
    "inner_budget",
    "ladder",
    "model",
    "weaker",
    "weights_budget",
    "widens",
]
