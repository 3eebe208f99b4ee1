"""Wrong attentions that must be caught, and correct variants that must pass: the judge of attention measured on itself.

>>> from hardmask.conformance.attention.mutants import attention_mutants, attention_variants
>>> len(attention_mutants()) > 60, len(attention_variants()) > 10
(True, True)
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from .correct import variants
from .mutant import KINDS, AttentionMutant, AttentionVariant

MODULES: tuple[str, ...] = ("masks", "empty", "heads", "tiles", "derivatives", "numeric")
"""The modules that hold mutants, in the order in which they are shown."""


@cache
def attention_mutants() -> tuple[AttentionMutant, ...]:
    """Every attention mutant, by module and in the order written."""
    return tuple(m for name in MODULES for m in import_module(f"{__name__}.{name}").mutants())


@cache
def attention_variants() -> tuple[AttentionVariant, ...]:
    """Every correct variant."""
    return tuple(variants())


__all__ = ["KINDS", "AttentionMutant", "AttentionVariant", "attention_mutants", "attention_variants"]
