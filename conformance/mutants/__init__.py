"""Wrong softmaxes that must be caught, and correct variants that must pass: the suite measured on itself.

Each module here offers ``mutants()``, ``variants()``, or both; ``hardmask selftest`` runs them all.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .mutant import KINDS, Mutant, Variant

MODULES: tuple[str, ...] = (
    "masks",
    "wrong_masks",
    "empty",
    "tiles",
    "batches",
    "layouts",
    "numeric",
    "derivatives",
    "derivatives_sometimes",
    "derivatives_rounding",
    "correct",
)
"""The modules that hold them, in the order in which they are shown."""


def _collected(what: str) -> list[Any]:
    found: list[Any] = []
    for name in MODULES:
        offered = getattr(import_module(f"{__name__}.{name}"), what, None)
        found += offered() if offered is not None else []
    return found


def mutants() -> list[Mutant]:
    """Every mutant, in the order of the kill table."""
    return _collected("mutants")


def variants() -> list[Variant]:
    """Every correct variant."""
    return _collected("variants")


__all__ = ["KINDS", "Mutant", "Variant", "mutants", "variants"]
