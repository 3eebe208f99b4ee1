"""Mutants of kernels along a row: tiles, lanes, tails, and faults at certain lengths."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...adapters.subject import Array, Bools
from .kit import Forward, mutant, rows_of, top_of, total_of, weights_of
from .mutant import Mutant


def _summed_where(counted: Callable[[int], Bools]) -> Forward:
    """Only some keys of a row of n join the sum: those that ``counted(n)`` names."""

    def total(e: Array, mask: Bools) -> Array:
        some = np.asarray((e * counted(e.shape[1])).sum(axis=-1, keepdims=True, dtype=e.dtype))
        return np.where(some > 0, some, 1).astype(e.dtype)

    return rows_of(lambda x, m: weights_of(x, m, total=total))


def _all_but(wrong: Callable[[int], bool], left_out: int = -1) -> Callable[[int], Bools]:
    """All keys are counted, except one of them at the lengths that are ``wrong``."""

    def counted(keys: int) -> Bools:
        out = np.ones(keys, bool)
        if keys and wrong(keys):
            out[left_out] = False
        return out

    return counted


def _tiles(x: Array, size: int) -> list[slice]:
    return [slice(i, i + size) for i in range(0, x.shape[1], size)]


def _first_tile_top(x: Array, mask: Bools) -> Array:
    return top_of(x[:, :8], mask[:, :8])


def _not_rescaled(x: Array, mask: Bools) -> Array:
    """Each tile of 8 is shifted by the running maximum, and nothing is rescaled when that grows."""
    top = np.full((len(x), 1), -np.inf, x.dtype)
    e = np.zeros_like(x)
    for tile in _tiles(x, 8):
        m = mask[:, tile]
        top = np.maximum(top, np.where(m, x[:, tile], -np.inf).max(axis=1, keepdims=True))
        safe = np.where(np.isfinite(top), top, 0)
        e[:, tile] = np.where(m, np.exp(np.where(m, x[:, tile] - safe, 0)), 0)
    total = e.sum(axis=1, keepdims=True, dtype=e.dtype)
    return np.asarray(np.divide(e, total, out=np.zeros_like(e), where=total > 0))


def _sum_not_rescaled(x: Array, mask: Bools) -> Array:
    """The numerators end on the common maximum; the running sum of each tile keeps the one that it saw."""

    def total(e: Array, m: Bools) -> Array:
        out = np.zeros((len(e), 1), e.dtype)
        for tile in _tiles(x, 32):
            upto = slice(0, tile.stop)
            grown = np.exp(top_of(x, mask) - top_of(x[:, upto], mask[:, upto]))
            out += np.where(np.isfinite(grown), grown, 1) * e[:, tile].sum(axis=1, keepdims=True, dtype=e.dtype)
        return out

    return weights_of(x, mask, total=total)


def _phantom(x: Array, mask: Bools) -> Array:
    """Rows are padded to a multiple of 32 with scores of 0, which nobody blocks."""
    pad = -x.shape[1] % 32

    def total(e: Array, m: Bools) -> Array:
        return np.asarray(total_of(e, m) + pad * np.exp(-np.maximum(top_of(x, mask), 0)).astype(e.dtype))

    return weights_of(x, mask, total=total)


def _last_tile_left(x: Array, mask: Bools) -> Array:
    """Keys beyond the last full tile of 4 get no weight, in rows of more than one tile."""
    keys = x.shape[1]
    inside = np.arange(keys) < (keys - keys % 4 if keys > 4 else keys)
    return weights_of(x, mask & inside)


def _top_64(x: Array, mask: Bools) -> Array:
    """Only the 64 largest allowed scores of a row are kept."""
    if x.shape[1] <= 64:
        return weights_of(x, mask)
    order = np.argsort(np.where(mask, x, -np.inf), axis=1)[:, :-64]
    kept = mask.copy()
    np.put_along_axis(kept, order, False, axis=1)
    return weights_of(x, kept)


def _ties_once(x: Array, mask: Bools) -> Array:
    """Of several keys at the maximum only the first one counts."""
    at = np.where(mask, x, -np.inf) == top_of(x, mask)
    first = at & (np.cumsum(at, axis=1) == 1)
    return weights_of(x, mask & (~at | first))


def _by_position(x: Array, mask: Bools) -> Array:
    """A bias of 1e-3 for each place that a key stands further to the right."""
    return weights_of(x + (np.arange(x.shape[1]) * 1e-3).astype(x.dtype), mask)


def _last_tile_stale(x: Array, mask: Bools) -> Array:
    """From the second tile of 64 on, weights are normalised by the sum of the first."""
    w, keys = weights_of(x, mask), x.shape[1]
    if keys <= 64:
        return w
    first = w[:, :64].sum(axis=1, keepdims=True, dtype=w.dtype)
    w[:, 64:] = np.where(first > 0, w[:, 64:] / np.where(first > 0, first, 1), w[:, 64:])
    return w


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        mutant(
            "first-tile-maximum",
            "I",
            "Shifts by the maximum of the first eight keys.",
            rows_of(lambda x, m: weights_of(x, m, top=_first_tile_top)),
        ),
        mutant("tiles-not-rescaled", "I", "Keeps earlier tiles on an outdated maximum.", rows_of(_not_rescaled)),
        mutant("sum-not-rescaled", "I", "Keeps the running sum on an outdated maximum.", rows_of(_sum_not_rescaled)),
        mutant(
            "last-key-not-summed", "L", "Leaves the last key out of the sum.", _summed_where(_all_but(lambda n: True))
        ),
        mutant(
            "first-key-not-summed",
            "L",
            "Leaves the first key out of the sum.",
            _summed_where(_all_but(lambda n: True, 0)),
        ),
        mutant(
            "lane-not-summed",
            "I",
            "Leaves one of eight lanes out of the sum.",
            _summed_where(lambda n: np.arange(n) % 8 != 5),
        ),
        mutant(
            "one-tile-not-summed",
            "I",
            "Leaves the keys 64 to 95 out of the sum.",
            _summed_where(lambda n: np.arange(n) // 32 != 2),
        ),
        mutant(
            "sum-of-first-128",
            "L",
            "Sums no more than 128 keys.",
            _summed_where(lambda n: np.arange(n) < 128),
        ),
        mutant(
            "only-at-16", "I", "Leaves a key out of the sum when n is 16.", _summed_where(_all_but(lambda n: n == 16))
        ),
        mutant(
            "only-beyond-128",
            "I",
            "Leaves a key out of the sum when n exceeds 128.",
            _summed_where(_all_but(lambda n: n > 128)),
        ),
        mutant(
            "only-odd",
            "I",
            "Leaves a key out of the sum when n is odd and greater than 1.",
            _summed_where(_all_but(lambda n: n % 2 == 1 and n > 1)),
        ),
        mutant(
            "only-full-tiles-of-32",
            "I",
            "Leaves a key out of the sum when n is a multiple of 32.",
            _summed_where(_all_but(lambda n: n % 32 == 0)),
        ),
        mutant(
            "only-full-tiles-of-128",
            "I",
            "Leaves a key out of the sum when n is a multiple of 128.",
            _summed_where(_all_but(lambda n: n % 128 == 0)),
        ),
        mutant(
            "only-below-4",
            "I",
            "Leaves a key out of the sum when n is 2 or 3.",
            _summed_where(_all_but(lambda n: n in (2, 3))),
        ),
        mutant(
            "only-between-4-and-8",
            "I",
            "Leaves a key out of the sum when n is 5, 6 or 7.",
            _summed_where(_all_but(lambda n: 4 < n < 8)),
        ),
        mutant(
            "only-at-64", "I", "Leaves a key out of the sum when n is 64.", _summed_where(_all_but(lambda n: n == 64))
        ),
        mutant(
            "only-beyond-256",
            "I",
            "Leaves a key out of the sum when n exceeds 256.",
            _summed_where(_all_but(lambda n: n > 256)),
        ),
        mutant(
            "only-at-77",
            "I",
            "Leaves a key out of the sum when n is 77.",
            _summed_where(_all_but(lambda n: n == 77)),
            survivors=dict.fromkeys(
                ("float64", "float32", "float16", "bfloat16"), "one length among many: a default run does not use it"
            ),
        ),
        mutant("phantom-keys", "I", "Lets the padding up to a multiple of 32 join the sum.", rows_of(_phantom)),
        mutant(
            "tail-left-out", "I", "Gives no weight to keys beyond the last full tile of 4.", rows_of(_last_tile_left)
        ),
        mutant(
            "second-tile-scaled",
            "I",
            "Normalises later tiles of 64 by the sum of the first.",
            rows_of(_last_tile_stale),
        ),
        mutant("top-64", "L", "Keeps only the 64 largest scores of a row.", rows_of(_top_64)),
        mutant("ties-once", "L", "Counts the maximum once where several keys share it.", rows_of(_ties_once)),
        mutant("by-position", "L", "Adds a small bias that grows with the place of a key.", rows_of(_by_position)),
    ]
