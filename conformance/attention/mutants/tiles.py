"""The classic mistakes of an online softmax over tiles of keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....adapters.numpy_heads import product
from ....spec.batch import Array, Bools
from .kit import Pieces, State, inner, mutant, selected
from .mutant import AttentionMutant

TILE = 16


def _shift(top: Array) -> Array:
    """The maximum, 0 for a row that has seen no allowed key: -inf - -inf would be NaN."""
    return np.asarray(np.where(top == -np.inf, 0, top).astype(top.dtype))


def _numerators(scores: Array, mask: Bools, shift: Array) -> Array:
    return selected(np.exp(np.where(mask, scores - shift, 0)), mask)


def _sum(e: Array, scores: Array, mask: Bools, shift: Array, padding: int) -> Array:
    return np.asarray(np.sum(e, axis=-1, keepdims=True))


def _larger(top: Array, here: Array, first: bool) -> Array:
    return np.maximum(top, here)


def _same(factor: Array) -> Array:
    return factor


@dataclass(frozen=True)
class Online:
    """An online softmax with its steps, each by default the correct one; called as the step ``output`` of
    :class:`~hardmask.conformance.attention.mutants.kit.Pieces`, it also leaves the weights that belong to it.

    ``start``: the maximum before the first tile. ``shift(top)``: what is subtracted. ``numerators(scores, mask,
    shift)``, ``total(e, scores, mask, shift, padding)`` with the keys that fill up the last tile, ``larger(top, here,
    first)``; ``of_sum`` and ``of_output`` change the factor by which what is there is rescaled. ``partial``: whether a
    last tile that is not full is read. ``read(mask)``: where values are read.
    """

    tile: int = TILE
    start: float = -np.inf
    shift: Callable[[Array], Array] = _shift
    numerators: Callable[[Array, Bools, Array], Array] = _numerators
    total: Callable[[Array, Array, Bools, Array, int], Array] = _sum
    larger: Callable[[Array, Array, bool], Array] = _larger
    of_sum: Callable[[Array], Array] = _same
    of_output: Callable[[Array], Array] = _same
    partial: bool = True
    everywhere: bool = False

    def __call__(self, c: State) -> Array:
        keys = c.k.shape[-2]
        top = np.full((*c.scores.shape[:-1], 1), self.start, c.scores.dtype)
        total = np.zeros_like(top)
        sums = np.zeros((*c.scores.shape[:-1], c.v.shape[-1]), c.scores.dtype)
        for begin in range(0, keys, self.tile):
            at = slice(begin, min(begin + self.tile, keys))
            padding = begin + self.tile - at.stop
            if padding and begin and not self.partial:
                continue
            mask, scores = c.mask[..., at], c.scores[..., at]
            here = np.max(np.where(mask, scores, self.start), axis=-1, keepdims=True)
            new = self.larger(top, here.astype(top.dtype), not begin)
            shift = self.shift(new)
            factor = np.exp(top - shift)
            e = self.numerators(scores, mask, shift)
            sums = sums * self.of_output(factor) + product(e, c.v[..., at, :], mask | self.everywhere)
            total = total * self.of_sum(factor) + self.total(e, scores, mask, shift, padding)
            top = new
        empty = np.zeros_like(total) if self.everywhere else ~c.mask.any(axis=-1, keepdims=True)
        shift = self.shift(top)
        c.weights = selected(np.exp(np.where(c.mask, c.scores - shift, 0)) / np.where(empty, 1, total), c.mask)
        return np.asarray(np.where(empty, 0, sums / np.where(empty, 1, total)).astype(sums.dtype))


def flash_centred(c: State, x: Array) -> Array:
    """``w (x - <dO, O>)`` of each row, as kernels by tiles centre it."""
    return selected(c.weights * (x - inner(c.g, c.output)), c.mask)


def _unnormalised_centred(c: State, x: Array) -> Array:
    top = np.max(np.where(c.mask, c.scores, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    total = np.sum(_numerators(c.scores, c.mask, _shift(top)), axis=-1, keepdims=True)
    return selected(c.weights * (x - inner(c.g, c.output * total)), c.mask)


def _one(factor: Array) -> Array:
    return np.ones_like(factor)


def _first_top(top: Array, here: Array, first: bool) -> Array:
    return here if first else np.where(top == -np.inf, here, top).astype(top.dtype)


def _last_top(top: Array, here: Array, first: bool) -> Array:
    return np.where(here == -np.inf, top, here).astype(top.dtype)


def _padded(e: Array, scores: Array, mask: Bools, shift: Array, padding: int) -> Array:
    return np.asarray(_sum(e, scores, mask, shift, padding) + padding * np.exp(-shift))


def _unmasked(e: Array, scores: Array, mask: Bools, shift: Array, padding: int) -> Array:
    return np.asarray(np.sum(np.exp(scores - shift), axis=-1, keepdims=True))


def _sentinel(scores: Array, mask: Bools, shift: Array) -> Array:
    return np.asarray(np.exp(np.where(mask, scores, np.asarray(-1e30, scores.dtype)) - shift))


def _raw(scores: Array, mask: Bools, shift: Array) -> Array:
    return np.asarray(np.exp(np.where(mask, scores, -np.inf).astype(scores.dtype) - shift))


def _skips_first(scores: Array, mask: Bools, shift: Array) -> Array:
    e = _numerators(scores, mask, shift)
    if e.shape[-1] == TILE:
        e[..., -1] = 0
    return e


def _tiled(name: str, kind: str, story: str, declared: Any = None, **online: Any) -> AttentionMutant:
    return mutant(name, kind, story, output=Online(**online), declared={"tier": "fused", **(declared or {})})


def mutants() -> list[AttentionMutant]:
    """All of them."""
    return [
        _tiled("tiles-output-not-rescaled", "I", "The output of earlier tiles is not rescaled.", of_output=_one),
        _tiled("tiles-sum-not-rescaled", "I", "The sum of earlier tiles is not rescaled.", of_sum=_one),
        _tiled(
            "tiles-nothing-rescaled", "I", "Nothing is rescaled when the maximum grows.", of_sum=_one, of_output=_one
        ),
        _tiled(
            "tiles-rescaled-twice", "I", "The output of earlier tiles is rescaled twice.", of_output=lambda f: f * f
        ),
        _tiled("tiles-first-maximum", "L", "The maximum of the first tile serves all.", larger=_first_top),
        _tiled(
            "tiles-last-maximum",
            "I",
            "The sum is rescaled to the maximum of each tile, the output to the largest so far.",
            larger=_last_top,
            of_output=lambda f: np.minimum(f, 1),
        ),
        _tiled("tiles-maximum-from-zero", "L", "The maximum starts at 0.", start=0.0, larger=_larger),
        _tiled(
            "tiles-blocked-tile-nan",
            "A",
            "A first tile without an allowed key leaves NaN.",
            shift=_same,
            numerators=_raw,
        ),
        _tiled(
            "tiles-blocked-tile-counts",
            "B",
            "In a row that has seen no allowed key each blocked one counts exp(0) = 1.",
            start=-1e30,
            shift=_same,
            numerators=_sentinel,
            everywhere=True,
        ),
        _tiled("tiles-last-partial-dropped", "I", "A last tile that is not full is not read.", partial=False),
        _tiled("tiles-padding-attended", "I", "The keys that fill up the last tile count in the sum.", total=_padded),
        _tiled("tiles-sum-before-mask", "F", "The sum of a tile is taken before its mask.", total=_unmasked),
        _tiled("tiles-last-key-lost", "I", "The last key of every full tile is lost.", numerators=_skips_first),
        mutant(
            "delta-unnormalised",
            "K",
            "The mean of the backward pass is <dO, O> with the output before it is normalised.",
            centred=_unnormalised_centred,
        ),
    ]


__all__ = ["TILE", "Online", "Pieces", "flash_centred", "mutants"]
