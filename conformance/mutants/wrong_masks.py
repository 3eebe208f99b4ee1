"""Mutants that exclude well, but by a wrong mask: turned, moved, dropped, or read at the wrong place."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...adapters.subject import Array, Bools
from .kit import Forward, mutant, rows_of, weights_of
from .mutant import Mutant


def _by(change: Callable[[Bools], Bools]) -> Forward:
    """The correct softmax under another mask than the one that was given."""
    return rows_of(lambda x, mask: weights_of(x, change(mask)))


def _last_allowed(mask: Bools) -> Bools:
    out = mask.copy()
    out[:, -1:] = True
    return out


def _one_early(mask: Bools) -> Bools:
    """The last allowed key of each row is lost, as ``j < i`` loses the diagonal of ``j <= i``."""
    keys = mask.shape[1]
    last = keys - 1 - mask[:, ::-1].argmax(axis=1, keepdims=True) if keys else 0
    return np.asarray(mask & (np.arange(keys) != last))


def _one_late(mask: Bools) -> Bools:
    """The key after the last allowed one is allowed too: one step into the future."""
    keys = mask.shape[1]
    last = keys - 1 - mask[:, ::-1].argmax(axis=1, keepdims=True) if keys else 0
    return np.asarray(mask | ((np.arange(keys) == last + 1) & mask.any(axis=1, keepdims=True)))


def _by_blocks(mask: Bools) -> Bools:
    """Four neighbouring keys share one bit, set when any of them is allowed."""
    rows, keys = mask.shape
    padded = np.pad(mask, ((0, 0), (0, -keys % 4)))
    shared = padded.reshape(rows, -1, 4).any(axis=2)
    return np.asarray(np.repeat(shared, 4, axis=1)[:, :keys])


def _as_bias(x: Array, mask: Bools) -> Array:
    return weights_of(x + mask.astype(x.dtype), np.ones(mask.shape, bool))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        mutant("mask-inverted", "G", "Reads True as blocked.", _by(np.logical_not)),
        mutant("mask-as-bias", "G", "Adds the mask to the scores, as the numbers 0 and 1.", rows_of(_as_bias)),
        mutant("mask-dropped", "F", "Never looks at the mask.", _by(np.ones_like)),
        mutant(
            "mask-dropped-long",
            "F",
            "Takes another path for rows of more than 128 keys, and forgets the mask there.",
            _by(lambda m: np.ones_like(m) if m.shape[1] > 128 else m),
        ),
        mutant(
            "mask-of-first-row",
            "F",
            "Broadcasts the mask of the first row over the batch.",
            _by(lambda m: np.asarray(np.broadcast_to(m[:1], m.shape))),
        ),
        mutant(
            "mask-row-halved",
            "F",
            "Reads the mask of row r at row r // 2, as if two rows shared one.",
            _by(lambda m: m[np.arange(len(m)) // 2]),
        ),
        mutant("mask-by-blocks", "F", "Keeps one bit of the mask for four neighbouring keys.", _by(_by_blocks)),
        mutant("mask-moved", "I", "Reads the mask one key too far to the left.", _by(lambda m: np.roll(m, 1, axis=1))),
        mutant("last-key-allowed", "I", "Always allows the last key.", _by(_last_allowed)),
        mutant("causal-early", "H", "Loses the last allowed key of each row.", _by(_one_early)),
        mutant("causal-late", "H", "Allows the key after the last allowed one.", _by(_one_late)),
    ]
