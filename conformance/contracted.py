"""Empty rows are judged by the declared contract, not by the formula."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..spec.batch import Bools, Floats
from ..spec.contracts import Contract
from .judgement import Outcome
from .view import View


@dataclass(frozen=True, eq=False)
class EmptyRows:
    """Per row: whether the answer keeps the contract, and whether it does so by leave of the contract only."""

    kept: Bools
    permitted: Bools


def keep_weights(contract: Contract, values: Floats) -> EmptyRows:
    """Judge the weights of rows that allow no key; meaningful at those rows only.

    ``zero`` asks for exact zeros; ``nan`` for NaN in the whole row; ``fallback(k)`` for a one-hot row at key ``k``.
    """
    rows, keys = values.shape
    if contract.kind == "nan":
        kept = np.all(np.isnan(values), axis=1)
        return EmptyRows(kept, kept)
    if contract.kind == "fallback" and keys:
        wanted = np.zeros(keys)
        if contract.key is not None and contract.key < keys:
            wanted[contract.key] = 1.0
        kept = np.all(values == wanted, axis=1) & bool(wanted.any())
        return EmptyRows(kept, kept)
    return EmptyRows(np.all(values == 0.0, axis=1), np.zeros(rows, bool))


def keep_derivative(contract: Contract, values: Floats) -> EmptyRows:
    """Judge a derivative at rows that allow no key: exactly 0, or under ``nan`` also NaN."""
    zero = np.all(values == 0.0, axis=1)
    if contract.kind == "nan":
        nan = np.all(np.isnan(values) | (values == 0.0), axis=1) & ~zero
        return EmptyRows(zero | nan, nan)
    return EmptyRows(zero, np.zeros(len(values), bool))


def contracted(view: View, outcome: Outcome, values: Floats) -> Outcome:
    """The outcome with its empty rows judged by the contract."""
    empty = view.batch.empty
    if not empty.any():
        return outcome
    keep = keep_weights if outcome.quantity == "weights" else keep_derivative
    judged = keep(view.contract, values)
    failed = np.where(empty, outcome.applies & ~judged.kept, outcome.failed)
    ratio = np.where(empty, np.where(judged.kept, 0.0, np.inf), outcome.ratio)
    return replace(outcome, failed=failed, ratio=ratio, permitted=empty & outcome.applies & judged.permitted)
