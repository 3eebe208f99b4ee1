"""Mutants that block in a wrong way: finite penalties instead of exclusion, masks that are dropped, turned or moved."""

from __future__ import annotations

import numpy as np

from ...adapters.subject import Array
from .kit import Forward, mutant, rows_of, weights_of
from .mutant import Mutant


def _everything(x: Array) -> Array:
    return weights_of(x, np.ones(x.shape, bool))


def _added(penalty: float) -> Forward:
    return rows_of(lambda x, mask: _everything(x + np.where(mask, 0, penalty).astype(x.dtype)))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        mutant("additive-1e4", "D", "Adds -1e4 to the blocked scores.", _added(-1e4)),
    ]
