"""Which attention problems a run consists of."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...spec.attention.problem import Problem
from ...spec.batch import Array, Floats
from ...spec.formats import FORMATS
from .contents import drawn, poisoned
from .masks import MASKS

Shape = tuple[int, int, int, int, int, int, int]
"""``(B, H, G, Lq, Lk, d, dv)``."""

LAYOUTS = ("contiguous", "transposed", "expanded")


@dataclass(frozen=True)
class AttentionCase:
    """One problem to be built: small, picklable, seeded, independent of every other.

    ``layout``: ``transposed`` keeps heads beside the width in memory, as projections leave them; ``expanded`` repeats
    the keys and values of the first batch entry with stride 0. ``scale``: None for ``1 / sqrt d``. ``related``: the
    problem is also put to the subject in parts and with more keys.
    """

    dtype: str
    shape: Shape
    mask: str
    content: str
    seed: int
    layout: str = "contiguous"
    scale: float | None = None
    related: bool = False

    @property
    def few(self) -> bool:
        """Whether subjects for which every new shape is dear are put to it."""
        return self.shape in FEW and self.scale is None

    @property
    def key(self) -> str:
        """Names the problem; together with the seed it reproduces it."""
        sizes = "x".join(map(str, self.shape))
        name = f"{self.dtype}/attention {sizes}/{self.mask}/{self.content}/{self.layout}".replace(" ", "-")
        return name if self.scale is None else f"{name}/scale-{self.scale:g}"

    def build(self) -> Problem:
        """The problem. The same case always gives the same bits."""
        rng = np.random.default_rng((self.seed, zlib.crc32(self.key.encode())))
        batch, heads, groups, queries, keys, width, value_width = self.shape
        q, k, v = (batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, value_width)
        masked = MASKS[self.mask](rng, (batch, heads, queries, keys))
        made = drawn(rng, q, k, v, self.content)
        if self.layout == "expanded":
            for array in (made.k, made.v):
                array[:] = array[:1]
        if self.content == "poison":
            full = np.broadcast_to(masked.mask, (batch, heads, queries, keys))
            unseen = np.asarray(~full.reshape(batch, groups, heads // groups * queries, keys).any(axis=2))
            poisoned(made, unseen, FORMATS[self.dtype].max, rng)
        arranged = _LAYOUT[self.layout]
        return Problem(
            key=self.key,
            family=self.mask,
            dtype=self.dtype,
            q=arranged(_stored(made.q, self.dtype), False),
            k=arranged(_stored(made.k, self.dtype), True),
            v=arranged(_stored(made.v, self.dtype), True),
            mask=masked.mask,
            scale=(max(width, 1) ** -0.5) if self.scale is None else self.scale,
            cotangent=_stored(made.cotangent, self.dtype),
            tangents=tuple(_stored(t, self.dtype) for t in made.tangents),  # type: ignore[arg-type]
            causal=masked.causal,
            lengths=masked.lengths,
        )


def _stored(array: Floats, dtype: str) -> Array:
    return array.astype(FORMATS[dtype].dtype)


def _contiguous(array: Array, shared: bool) -> Array:
    return array


def _transposed(array: Array, shared: bool) -> Array:
    """The same values, in memory as ``(B, L, H, d)``."""
    return np.ascontiguousarray(array.swapaxes(1, 2)).swapaxes(1, 2)


def _expanded(array: Array, shared: bool) -> Array:
    """What all batch entries share has stride 0 along them; writable, as frameworks want it."""
    if not shared or not len(array):
        return array
    return np.lib.stride_tricks.as_strided(array[:1].copy(), array.shape, (0, *array.strides[1:]))


_LAYOUT = {"contiguous": _contiguous, "transposed": _transposed, "expanded": _expanded}

SMALL: Shape = (2, 2, 2, 5, 7, 4, 4)
SQUARE: Shape = (2, 2, 2, 6, 6, 4, 4)
GROUPED: Shape = (2, 4, 2, 33, 65, 16, 16)
QUERIES: Shape = (1, 2, 2, 65, 31, 8, 8)
ONE_QUERY: Shape = (2, 2, 1, 1, 129, 64, 64)
ONE_KEY: Shape = (2, 1, 1, 9, 1, 8, 8)
LONG: Shape = (1, 2, 2, 17, 513, 32, 32)
WIDE: Shape = (1, 1, 1, 127, 128, 128, 128)
NARROW: Shape = (1, 1, 1, 4, 6, 1, 1)
VALUES: Shape = (1, 2, 2, 6, 10, 8, 3)
NO_KEYS: Shape = (1, 2, 2, 3, 0, 4, 4)
NO_QUERIES: Shape = (1, 2, 2, 0, 3, 4, 4)

FEW = (SMALL, SQUARE, GROUPED, ONE_QUERY, ONE_KEY, LONG)
"""The shapes of subjects for which every new shape is dear."""

Entry = tuple[Shape, str, str, str]

SMOKE: tuple[Entry, ...] = (
    *((SMALL, mask, "plain", "contiguous") for mask in MASKS),
    (SQUARE, "causal top-left", "plain", "contiguous"),
    (SQUARE, "padding", "poison", "transposed"),
    (SMALL, "padding", "poison", "contiguous"),
    (SMALL, "all padding", "poison", "contiguous"),
    (SMALL, "keys alone", "poison", "transposed"),
    (SMALL, "random", "peaked", "contiguous"),
    (SMALL, "one empty query", "offset", "contiguous"),
    (SMALL, "full", "ties", "expanded"),
    (ONE_KEY, "full", "plain", "contiguous"),
    (ONE_KEY, "all padding", "plain", "contiguous"),
    (NO_KEYS, "full", "plain", "contiguous"),
    (NO_QUERIES, "full", "plain", "contiguous"),
)

DEFAULT: tuple[Entry, ...] = (
    *SMOKE,
    (SQUARE, "causal and padding", "peaked", "contiguous"),
    (SMALL, "random", "tiny", "contiguous"),
    (SMALL, "random", "one-hot", "contiguous"),
    (SMALL, "sliding window", "skewed", "contiguous"),
    (GROUPED, "full", "plain", "contiguous"),
    (GROUPED, "causal top-left", "descending", "contiguous"),
    (GROUPED, "padding", "poison", "transposed"),
    (GROUPED, "random", "peaked", "transposed"),
    (GROUPED, "heads alike", "offset", "contiguous"),
    (GROUPED, "batch alike", "plain", "expanded"),
    (GROUPED, "first tile blocked", "poison", "contiguous"),
    (GROUPED, "one empty query", "skewed", "contiguous"),
    (QUERIES, "full", "peaked", "contiguous"),
    (QUERIES, "causal bottom-right", "plain", "contiguous"),
    (QUERIES, "documents", "offset", "contiguous"),
    (QUERIES, "one empty query", "one-hot", "contiguous"),
    (ONE_QUERY, "full", "peaked", "contiguous"),
    (ONE_QUERY, "far key", "poison", "contiguous"),
    (ONE_QUERY, "padding", "plain", "contiguous"),
    (LONG, "full", "ascending", "contiguous"),
    (LONG, "heads alike", "steep", "contiguous"),
    (LONG, "documents", "negative", "contiguous"),
    (LONG, "random", "plain", "contiguous"),
    (LONG, "first tile blocked", "poison", "contiguous"),
    (LONG, "causal bottom-right", "descending", "contiguous"),
    (WIDE, "causal top-left", "plain", "contiguous"),
    (WIDE, "random", "offset", "contiguous"),
    (NARROW, "random", "plain", "contiguous"),
    (NARROW, "keys alone", "peaked", "contiguous"),
    (VALUES, "random", "plain", "contiguous"),
)

EDGES = (31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513)
"""Lengths around the edges of tiles, for a deep run."""

FURTHER: tuple[Entry, ...] = tuple(
    ((1, 2, 1, queries, keys, width, width), mask, content, "contiguous")
    for turn, keys in enumerate(EDGES)
    for queries, width, mask, content in (
        (EDGES[-1 - turn] % 130, (8, 16, 40, 64, 80, 128)[turn % 6], "random", "peaked"),
        (keys % 130, 32, "causal top-left", ("ascending", "descending")[turn % 2]),
        (3, 16, ("first tile blocked", "padding", "one empty query")[turn % 3], "poison"),
    )
)

RELATED = (SMALL, "random", "plain", "contiguous"), (SMALL, "keys alone", "plain", "contiguous")
"""The problems that are also put in parts, and with more keys: two, since every part is another shape to compile."""

PREFIXED = (SQUARE, "causal top-left", "plain", "contiguous")
"""The problem whose first queries are also put alone."""


def plan_attention(effort: str, seed: int, dtypes: Sequence[str], rounds: int | None = None) -> list[AttentionCase]:
    """The drawn problems of a run, dtype by dtype; ``rounds`` repeats them with other numbers.

    >>> len({c.shape for c in plan_attention("default", 0, ["float32"])})
    12
    """
    entries = {"smoke": SMOKE, "default": DEFAULT, "deep": DEFAULT + FURTHER}[effort]
    found = []
    for dtype in dtypes:
        for turn in range(rounds or 1):
            for entry in entries:
                related = turn == 0 and (entry in RELATED or entry == PREFIXED)
                found.append(AttentionCase(dtype, *entry[:3], seed + turn, entry[3], related=related))
            found.append(AttentionCase(dtype, SMALL, "random", "plain", seed + turn, scale=0.75))
    return found
