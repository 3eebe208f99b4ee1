"""Correct variants: online softmax, which sees a row tile by tile and rescales what it has when the maximum grows."""

from __future__ import annotations

import numpy as np

from ...adapters.subject import Array, Bools
from .mutant import Variant
from .recipe import Weights, variant

TILES = (1, 4, 16, 32, 64)


def online(tile: int) -> Weights:
    """Weights by tiles of that many keys; a tile, or a row, may be blocked as a whole."""

    def weights(x: Array, mask: Bools) -> Array:
        filled = np.where(mask, x, -np.inf).astype(x.dtype)
        e = np.zeros_like(x)
        top = np.full((len(x), 1), -np.inf, x.dtype)
        total = np.zeros_like(top)
        for start in range(0, x.shape[1], tile):
            here = slice(start, start + tile)
            grown = np.maximum(top, np.max(filled[:, here], axis=1, keepdims=True))
            # Nothing was allowed so far: any finite shift will do.
            shift = np.where(np.isneginf(grown), 0, grown).astype(x.dtype)
            rescale = np.exp(top - shift)
            e[:, :start] *= rescale
            e[:, here] = np.exp(filled[:, here] - shift)
            total = total * rescale + np.sum(e[:, here], axis=1, keepdims=True)
            top = grown
        return np.asarray(e / np.where(total > 0, total, 1))

    return weights


def _two_pass(x: Array, mask: Bools) -> Array:
    """The sum online, the numerators afterwards with the final maximum."""
    filled = np.where(mask, x, -np.inf).astype(x.dtype)
    top = np.full((len(x), 1), -np.inf, x.dtype)
    total = np.zeros_like(top)
    for k in range(x.shape[1]):
        score = filled[:, k : k + 1]
        grown = np.maximum(top, score)
        shift = np.where(np.isneginf(grown), 0, grown).astype(x.dtype)
        total = total * np.exp(top - shift) + np.exp(score - shift)
        top = grown
    shift = np.where(np.isneginf(top), 0, top).astype(x.dtype)
    return np.asarray(np.exp(filled - shift) / np.where(total > 0, total, 1))


def variants() -> list[Variant]:
    """The variants of this module."""
    return [
        *(
            variant(
                f"online-{tile}",
                f"Online softmax over tiles of {tile}, everything rescaled.",
                online(tile),
                tier="online",
            )
            for tile in TILES
        ),
        variant("online-sum", "The sum online key by key, the numerators in a second pass.", _two_pass, tier="online"),
    ]
