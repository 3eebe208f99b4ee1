"""Correct variants: other ways to compute the same rows, none of which may ever fail under its declared tier."""

from __future__ import annotations

from . import correct_contracts, correct_derivatives, correct_exponents, correct_layouts, correct_online, correct_sums
from .mutant import Variant

PARTS = (correct_sums, correct_exponents, correct_online, correct_derivatives, correct_layouts, correct_contracts)


def variants() -> list[Variant]:
    """Every correct variant."""
    return [v for part in PARTS for v in part.variants()]
