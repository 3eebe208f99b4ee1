"""The masks that attention is tried with. All are Boolean, True = allowed, with four axes that broadcast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...spec.attention.problem import Alignment
from ...spec.batch import Bools

Sizes = tuple[int, int, int, int]
"""``(B, H, Lq, Lk)``."""


@dataclass(frozen=True, eq=False)
class Masked:
    """A mask with what is known of its form: that of a causal flag, or that of key lengths."""

    mask: Bools
    causal: Alignment | None = None
    lengths: bool = False


def causal(queries: int, keys: int, alignment: Alignment) -> Bools:
    """Query ``i`` may see key ``j`` where ``j <= i``, or ``j <= i + Lk - Lq`` when aligned bottom-right.

    >>> causal(1, 3, "top-left").tolist(), causal(1, 3, "bottom-right").tolist()
    ([[True, False, False]], [[True, True, True]])
    """
    offset = keys - queries if alignment == "bottom-right" else 0
    return np.tril(np.ones((queries, keys), bool), offset)


def _full(rng: np.random.Generator, sizes: Sizes) -> Masked:
    return Masked(np.ones(sizes, bool))


def _causal_top_left(rng: np.random.Generator, sizes: Sizes) -> Masked:
    return Masked(causal(sizes[2], sizes[3], "top-left")[None, None], causal="top-left")


def _causal_bottom_right(rng: np.random.Generator, sizes: Sizes) -> Masked:
    return Masked(causal(sizes[2], sizes[3], "bottom-right")[None, None], causal="bottom-right")


def _window(rng: np.random.Generator, sizes: Sizes) -> Masked:
    queries, keys = sizes[2:]
    distance = np.arange(queries)[:, None] + (keys - queries) - np.arange(keys)
    return Masked(((distance >= 0) & (distance < max(2, keys // 4)))[None, None])


def _padding(rng: np.random.Generator, sizes: Sizes) -> Masked:
    batch, _, _, keys = sizes
    lengths = rng.integers(1, max(2, keys), size=batch)
    return Masked((np.arange(keys) < lengths[:, None])[:, None, None], lengths=True)


def _padding_all(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """The first batch entry is all padding."""
    found = _padding(rng, sizes)
    found.mask[0] = False
    return found


def _left_padding(rng: np.random.Generator, sizes: Sizes) -> Masked:
    batch, _, _, keys = sizes
    lengths = rng.integers(1, max(2, keys), size=batch)
    return Masked((np.arange(keys) >= keys - lengths[:, None])[:, None, None])


def _documents(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """Two documents in one sequence, each of which sees itself alone."""
    queries, keys = sizes[2:]
    return Masked(((np.arange(queries)[:, None] >= queries // 2) == (np.arange(keys) >= keys // 3))[None, None])


def _random(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """Random for every head and query; the first key is allowed everywhere but for the queries that come out empty."""
    mask = rng.random(sizes) < 0.6
    if sizes[3]:
        mask[..., 0] = True
    return Masked(mask)


def _heads_alike(rng: np.random.Generator, sizes: Sizes) -> Masked:
    batch, _, queries, keys = sizes
    return Masked(_random(rng, (batch, 1, queries, keys)).mask)


def _batch_alike(rng: np.random.Generator, sizes: Sizes) -> Masked:
    return Masked(_random(rng, (1, *sizes[1:])).mask)


def _keys_alone(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """The same for all heads and queries, with holes: no prefix."""
    batch, _, _, keys = sizes
    mask = rng.random((batch, 1, 1, keys)) < 0.5
    mask[..., -1:] = True
    mask[..., :1] = False
    return Masked(mask if keys > 1 else np.ones_like(mask))


def _one_empty(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """One query among the others may see nothing."""
    mask = _random(rng, sizes).mask
    mask[0, :, sizes[2] // 2] = False
    return Masked(mask)


def _intersection(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """Causal and left padding, each of which allows something everywhere; together they empty the first queries."""
    left = _left_padding(rng, sizes).mask
    if sizes[3] > 1:
        left[..., 0] = False
    return Masked(causal(sizes[2], sizes[3], "top-left")[None, None] & left)


def _far_key(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """Only the last key is allowed."""
    mask = np.zeros((1, 1, 1, sizes[3]), bool)
    mask[..., -1:] = True
    return Masked(np.broadcast_to(mask, (1, 1, *sizes[2:])).copy())


def _first_tile(rng: np.random.Generator, sizes: Sizes) -> Masked:
    """The first half of the keys is blocked, in long rows whole tiles."""
    keys = sizes[3]
    mask = np.broadcast_to(np.arange(keys) >= keys // 2, (1, 1, *sizes[2:])).copy()
    return Masked(mask)


MASKS: dict[str, Callable[[np.random.Generator, Sizes], Masked]] = {
    "full": _full,
    "causal top-left": _causal_top_left,
    "causal bottom-right": _causal_bottom_right,
    "sliding window": _window,
    "padding": _padding,
    "all padding": _padding_all,
    "left padding": _left_padding,
    "documents": _documents,
    "random": _random,
    "heads alike": _heads_alike,
    "batch alike": _batch_alike,
    "keys alone": _keys_alone,
    "one empty query": _one_empty,
    "causal and padding": _intersection,
    "far key": _far_key,
    "first tile blocked": _first_tile,
}
"""Name of a family -> how its mask is made."""
