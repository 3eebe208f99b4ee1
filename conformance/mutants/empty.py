"""Mutants of the row that allows no key: what it holds, how it is recognised, and what it does to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...adapters.subject import Answer, Array, Bools
from .kit import Forward, mutant, over_all, rows_of, weights_of
from .mutant import Mutant


def _holding(fill: Callable[[Array, Bools], Any]) -> Forward:
    """Correct weights, with ``fill(x, mask)`` in place of the empty rows."""

    def function(x: Array, mask: Bools) -> Array:
        empty = ~mask.any(axis=-1, keepdims=True)
        return np.asarray(np.where(empty, fill(x, mask), weights_of(x, mask)))

    return rows_of(function)


def _uniform(x: Array, mask: Bools) -> float:
    return 1.0 / max(x.shape[1], 1)


def _key(index: int) -> Callable[[Array, Bools], Any]:
    return lambda x, mask: np.eye(max(x.shape[1], 1))[index][: x.shape[1]]


def _previous_row(x: Array, mask: Bools) -> Array:
    """The weights of the last row before that is not empty; zero where there is none."""
    w = weights_of(x, mask)
    filled = np.maximum.accumulate(np.where(mask.any(axis=1), np.arange(len(mask)), -1))
    return np.asarray(np.where(filled[:, None] >= 0, w[filled], 0))


def _by_scores(x: Array, mask: Bools) -> Array:
    """A row whose largest allowed score is below -5000 counts as empty."""
    top = np.where(mask, x, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(np.where(top > -5000, weights_of(x, mask), 0))


def _swallowed(x: Array, mask: Bools) -> Array:
    return np.asarray(np.nan_to_num(weights_of(x, mask), nan=0.0))


def _flagged(flag: Callable[[Array, Bools], Bools]) -> Forward:
    """Correct weights with a flag of one's own making."""

    def forward(scores: Array, mask: Bools) -> Answer:
        w = rows_of(weights_of)(scores, mask)
        return Answer(w, flag(w.astype(np.float64), mask))

    return forward


def _neighbour(x: Array, mask: Bools) -> Array:
    """The row after an empty one starts from the sum that the empty one left behind."""
    w = weights_of(x, mask)
    after = np.roll(~mask.any(axis=1), 1)
    after[:1] = False
    return np.asarray(np.where(after[:, None], w * x.dtype.type(0.5), w))


def _other_path(x: Array, mask: Bools) -> Array:
    """One empty row sends the whole batch to a path that fills with -1e4."""
    if mask.any(axis=1).all():
        return weights_of(x, mask)
    w = over_all(np.where(mask, x, -1e4).astype(x.dtype))
    return np.asarray(np.where(mask.any(axis=1, keepdims=True), w, 0))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    right = rows_of(weights_of)
    return [
        mutant("empty-nan", "A", "Divides 0 by 0 on an empty row.", _holding(lambda x, m: np.nan)),
        mutant("empty-inf", "A", "Divides 1 by 0 on an empty row.", _holding(lambda x, m: np.inf)),
        mutant("empty-uniform", "B", "Spreads the weight of an empty row over all keys.", _holding(_uniform)),
        mutant("empty-ones", "B", "Gives every key of an empty row the weight 1.", _holding(lambda x, m: 1.0)),
        mutant("empty-raw", "B", "Normalises the blocked scores on an empty row.", _holding(lambda x, m: over_all(x))),
        mutant("empty-first-key", "B", "Puts the weight of an empty row on the first key.", _holding(_key(0))),
        mutant("empty-last-key", "B", "Puts the weight of an empty row on the last key.", _holding(_key(-1))),
        mutant("empty-eps", "B", "Leaves 1e-6 at every key of an empty row.", _holding(lambda x, m: 1e-6)),
        mutant("empty-stale", "B", "Leaves the weights of an earlier row in an empty one.", _holding(_previous_row)),
        mutant("empty-by-scores", "P", "Takes a row of very low scores for an empty one.", rows_of(_by_scores)),
        mutant(
            "nan-swallowed",
            "P",
            "Turns every NaN into 0, also one that comes from an allowed score.",
            rows_of(_swallowed),
            promises=frozenset({"allowed-nan-visible"}),
        ),
        mutant(
            "valid-always",
            "P",
            "Flags every row as valid.",
            _flagged(lambda w, m: np.ones(len(m), bool)),
            contract="zero+valid",
        ),
        mutant(
            "valid-inverted",
            "G",
            "Flags the empty rows instead of the others.",
            _flagged(lambda w, m: np.asarray(~m.any(axis=1))),
            contract="zero+valid",
        ),
        mutant(
            "valid-from-weights",
            "P",
            "Reads the flag from the weights, so that a NaN looks like an empty row.",
            _flagged(lambda w, m: np.asarray(w.sum(axis=1) > 0.0)),
            contract="zero+valid",
        ),
        mutant("valid-missing", "P", "Declares a flag and returns none.", right, contract="zero+valid"),
        mutant(
            "reject-missing", "P", "Declares that it raises on an empty row and does not.", right, contract="reject"
        ),
        mutant(
            "fallback-elsewhere",
            "B",
            "Declares that an empty row puts its weight on key 0 and uses the last key.",
            _holding(_key(-1)),
            contract="fallback(0)",
        ),
        mutant(
            "nan-undeclared",
            "B",
            "Declares NaN on an empty row and returns uniform weights.",
            _holding(_uniform),
            contract="nan",
        ),
        mutant("after-empty", "O", "Halves the weights of the row that follows an empty one.", rows_of(_neighbour)),
        mutant(
            "empty-changes-path",
            "O",
            "Fills with -1e4 in the whole batch as soon as one row is empty.",
            rows_of(_other_path),
        ),
    ]
