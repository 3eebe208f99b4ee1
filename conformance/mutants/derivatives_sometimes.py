"""Mutants whose derivatives are wrong only beside, on or after something: empty rows, lengths, tails, some scores."""

from __future__ import annotations

import numpy as np

from ...adapters.subject import Array, Bools
from .jacobian import Rows, Rule, along, faulty
from .kit import top_of
from .mutant import Mutant

NOT_A_NUMBER = np.float32(np.nan)


def _uncentred_where(where: Bools | np.bool_ | bool, r: Rows) -> Array:
    return r.inside(r.weights * (r.vector - np.where(where, 0, r.centre)))


def _nan_on_empty(r: Rows) -> Array:
    return np.where(r.empty, NOT_A_NUMBER, r.right)


def _garbage_on_empty(r: Rows) -> Array:
    return np.where(r.empty, r.given, r.right)


def _uniform_on_empty(r: Rows) -> Array:
    """The derivative of a finite fill: on an empty row all weights are equal."""
    keys = r.mask.shape[1]
    return np.where(r.empty, (r.given - along(r.given) / max(keys, 1)) / max(keys, 1), r.right)


def _beside_empty(r: Rows) -> Bools:
    return np.asarray((np.roll(r.empty, 1, axis=0) | np.roll(r.empty, -1, axis=0)) & ~r.empty)


def _first_rows(r: Rows, count: int) -> Array:
    return np.where(np.arange(len(r.mask))[:, None] < count, r.right, 0)


def _first_tile_centre(r: Rows) -> Array:
    return r.inside(r.weights * (r.vector - along((r.weights * r.vector)[:, :64])))


def _without_tail(r: Rows) -> Array:
    keys = r.mask.shape[1]
    return np.where(np.arange(keys) < keys - keys % 4, r.right, 0)


def _one_lane(r: Rows) -> Array:
    """Every eighth key gets its neighbour's entry of the vector."""
    lane = np.arange(r.mask.shape[1]) % 8 == 7
    return r.inside(r.weights * (np.where(lane, np.roll(r.vector, 1, axis=1), r.vector) - r.centre))


def _clamped(r: Rows) -> Array:
    """No derivative where a score lies beyond a clamp, as autograd has it for the clamp that it passes."""
    return np.where(np.abs(r.scores) > 50, 0, r.right)


def _far_below(r: Rows) -> Array:
    """The exponent is clamped at -20: no derivative beyond."""
    return np.where(r.scores - top_of(r.scores, r.mask) < -20, 0, r.right)


def _without_small_entries(r: Rows) -> Array:
    v = np.where(np.abs(r.vector) < 1e-5, 0, r.vector)
    return r.weights * (v - along(r.weights * v))


def _saturated(r: Rows) -> Array:
    return np.where(np.max(r.weights, axis=1, keepdims=True, initial=0) > 0.99, 0, r.right)


def _frozen_if_any(r: Rows) -> Array:
    return np.zeros_like(r.right) if r.empty.any() else r.right


def _multiplied(r: Rows) -> Array:
    """Blocks by the zero weight alone, which a NaN outlives."""
    return np.where(r.empty, 0, r.weights * (r.given - along(r.weights * r.given)))


def _partial_prefix(r: Rows) -> Bools:
    """Rows that allow eight keys or more, all of them before the first blocked one."""
    count = along(r.mask)
    return np.asarray((count >= 8) & (count < r.mask.shape[1]) & (along(np.cumprod(r.mask, axis=1)) == count))


def _past_the_length(r: Rows) -> Array:
    """A path for prefix masks that loses the last allowed key from the centre."""
    last = r.mask & (np.cumsum(r.mask, axis=1) == along(r.mask))
    kept = along(np.where(last, 0, r.weights * r.vector))
    return r.inside(r.weights * (r.vector - np.where(_partial_prefix(r), kept, r.centre)))


def _accumulating() -> Rule:
    """A rule with a buffer that each call adds to."""
    kept: dict[tuple[object, ...], Array] = {}

    def rule(r: Rows) -> Array:
        where = (r.storage, r.mask.shape)
        kept[where] = r.right + kept.get(where, np.zeros_like(r.right))
        return kept[where]

    return rule


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        faulty("vjp-nan-on-empty", "C", "The VJP of an empty row is NaN.", _nan_on_empty, modes=("vjp",)),
        faulty("jvp-nan-on-empty", "C", "The JVP of an empty row is NaN.", _nan_on_empty, modes=("jvp",)),
        faulty(
            "nan-to-num-forward",
            "C",
            "Only the weights of empty rows are cleaned: both derivatives are NaN.",
            _nan_on_empty,
        ),
        faulty(
            "vjp-nan-beside-empty",
            "C",
            "The VJP is NaN in the neighbours of an empty row.",
            lambda r: np.where(_beside_empty(r), NOT_A_NUMBER, r.right),
            modes=("vjp",),
        ),
        faulty(
            "garbage-on-empty", "C", "The derivatives of an empty row are the vector as it came.", _garbage_on_empty
        ),
        faulty(
            "uniform-on-empty",
            "C",
            "The VJP of an empty row is that of equal weights.",
            _uniform_on_empty,
            modes=("vjp",),
        ),
        faulty(
            "frozen-by-an-empty-row",
            "O",
            "One empty row makes the derivatives of the whole batch zero.",
            _frozen_if_any,
        ),
        faulty(
            "uncentred-beside-empty",
            "O",
            "Not centred in the neighbours of an empty row.",
            lambda r: _uncentred_where(_beside_empty(r), r),
        ),
        faulty(
            "uncentred-single-key",
            "K",
            "Not centred in rows with one allowed key.",
            lambda r: _uncentred_where(along(r.mask) == 1, r),
        ),
        faulty(
            "uncentred-at-odd-lengths",
            "I",
            "Not centred in rows of an odd length above 1.",
            lambda r: _uncentred_where(r.mask.shape[1] % 2 == 1 < r.mask.shape[1], r),
        ),
        faulty(
            "uncentred-at-16-keys",
            "I",
            "Not centred in rows of exactly 16 slots.",
            lambda r: _uncentred_where(r.mask.shape[1] == 16, r),
        ),
        faulty(
            "uncentred-at-full-tiles",
            "I",
            "Not centred in rows of two or more full tiles of 32 slots.",
            lambda r: _uncentred_where(r.mask.shape[1] % 32 == 0 and r.mask.shape[1] > 32, r),
        ),
        faulty("centre-of-first-tile", "I", "The centre takes the first 64 slots only.", _first_tile_centre),
        faulty(
            "vjp-tail-not-written",
            "I",
            "The VJP of the slots past the last multiple of four is zero.",
            _without_tail,
            modes=("vjp",),
        ),
        faulty("derivative-lane", "I", "Every eighth slot reads the vector one slot too early.", _one_lane),
        faulty(
            "first-1024-rows",
            "I",
            "Rows past the first 1024 get no VJP.",
            lambda r: _first_rows(r, 1024),
            modes=("vjp",),
        ),
        faulty(
            "vjp-tail-lost",
            "K",
            "The VJP of keys with a weight below 1e-3 is zero.",
            lambda r: np.where(r.weights < 1e-3, 0, r.right),
            modes=("vjp",),
        ),
        faulty(
            "vjp-small-tail-lost",
            "K",
            "The VJP of keys with a weight below 1e-6 is zero.",
            lambda r: np.where(r.weights < 1e-6, 0, r.right),
            modes=("vjp",),
        ),
        faulty(
            "jvp-far-below-lost",
            "K",
            "The JVP of keys more than 20 below the maximum is zero.",
            _far_below,
            modes=("jvp",),
            # In float16 the weights there are zero as well, and the formula gives zero.
            dtypes=("float64", "float32", "bfloat16"),
        ),
        faulty(
            "small-vectors-lost",
            "K",
            "Entries of the vector below 1e-5 count as zero.",
            _without_small_entries,
            dtypes=("float64", "float32", "bfloat16"),
        ),
        faulty(
            "prefix-length",
            "I",
            "A prefix mask of eight keys or more loses the last from the centre.",
            _past_the_length,
        ),
        faulty("vjp-accumulates", "O", "The VJP is added to that of the call before.", _accumulating(), modes=("vjp",)),
        faulty("clamped-scores", "K", "The derivatives of scores beyond 50 are zero, as behind a clamp.", _clamped),
        faulty(
            "saturated-row",
            "K",
            "Rows with a weight above 0.99 count as decided: their derivatives are zero.",
            _saturated,
        ),
        faulty(
            "weights-clipped",
            "K",
            "The derivatives take weights of at least 1e-4.",
            lambda r: r.inside(np.maximum(r.weights, 1e-4) * (r.vector - r.centre)),
        ),
        faulty(
            "reads-nan-at-blocked",
            "E",
            "A NaN in a blocked entry of the vector reaches the row: blocked by a factor of zero.",
            _multiplied,
            promises=frozenset({"isolation"}),
        ),
    ]
