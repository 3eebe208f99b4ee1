"""Which batches a run consists of: effort, lengths, rounds."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ...spec.batch import Batch
from ...spec.layout import Layout
from .build import SHORT, build
from .layouts import COVERING, FEW, FURTHER, build_layout

EFFORTS: tuple[str, ...] = ("smoke", "default", "deep")

LONG_KINDS = ("shapes", "poison", "full", "single", "causal", "empty", "truncation")
SHORT_KINDS = ("shapes", "poison", "mixture", "empty", "jacobian", "facts")

TILED, TILED_ROWS = 128, 111
"""Length and number of the rows that are a whole number of tiles: of 4 keys, of 8, …, of 128. Kernels that take two
rows at once have one left."""

OTHER_LENGTHS, OTHER_ROWS = (2, 7, 64, 257), 21
"""Lengths and number of the rows for subjects that take no other axis; those that do get their lengths with the
layouts, and a compiler need not see more shapes."""


@dataclass(frozen=True)
class Case:
    """One batch to be built: small, picklable, seeded, independent of every other.

    A case with a ``layout`` is for subjects that take any axis, one of the kind ``lengths`` for all others.
    """

    dtype: str
    kind: str
    rows: int
    keys: int
    round: int
    seed: int
    layout: Layout | None = None

    @property
    def key(self) -> str:
        """Names the batch; together with the seed it reproduces it."""
        return f"{self.dtype}/{self.kind}/{self.rows}x{self.keys}/{self.round}"

    def build(self) -> Batch:
        """The batch. The same case always gives the same bits."""
        seed = (self.seed, zlib.crc32(self.key.encode()))
        if self.layout is not None:
            return build_layout(self.layout, self.key, seed, self.dtype)
        return build(self.kind, self.key, seed, self.dtype, self.rows, self.keys)


@dataclass(frozen=True)
class Effort:
    """Sizes of a run.

    ``long``: lengths of the long rows, one per round in turn; all but one are multiples of no vector length, as a tail
    is where kernels go wrong. ``rows``: rows per batch, chosen so that each long batch holds at least 2·10⁵ elements at
    default effort. ``layouts``: arrays of other ranks, axes and orders in memory, in the first round.
    """

    rows: int
    long: tuple[int, ...]
    rounds: int
    layouts: tuple[Layout, ...] = COVERING


SIZES: dict[str, Effort] = {
    "smoke": Effort(rows=104, long=(), rounds=1, layouts=FEW),
    "default": Effort(rows=1552, long=(131,), rounds=1),
    "deep": Effort(rows=1552, long=(131, 67, 256, 1031), rounds=8, layouts=COVERING + FURTHER),
}


def plan(effort: str, seed: int, dtypes: Sequence[str], rounds: int | None = None) -> list[Case]:
    """The cases of a run, dtype by dtype; ``rounds`` replaces the effort's own number.

    A default run uses five lengths of plain rows, and four more for subjects that take no other axis.

    >>> sorted({c.keys for c in plan("default", 0, ["float32"]) if c.layout is None})
    [0, 1, 2, 7, 16, 64, 128, 131, 257]
    """
    size = SIZES[effort]
    cases = []
    for dtype in dtypes:
        for turn in range(size.rounds if rounds is None else rounds):
            sizes = [("empty", 8, 0), ("one", 96, 1)] if turn == 0 else []
            sizes += [(kind, size.rows, SHORT) for kind in SHORT_KINDS]
            if size.long:
                keys = size.long[turn % len(size.long)]
                sizes += [(kind, size.rows, keys) for kind in LONG_KINDS]
                sizes.append(("tiles", TILED_ROWS, TILED))
                if turn == 0:
                    sizes += [("lengths", OTHER_ROWS, keys) for keys in OTHER_LENGTHS]
            cases += [Case(dtype, kind, rows, keys, turn, seed) for kind, rows, keys in sizes]
            if turn == 0:
                cases += [_in_layout(dtype, layout, seed) for layout in size.layouts]
    return cases


def _in_layout(dtype: str, layout: Layout, seed: int) -> Case:
    kind = f"{'x'.join(map(str, layout.shape))} {layout}".replace(", ", " ").replace(" ", "-")
    return Case(dtype, kind, layout.rows, layout.keys, 0, seed, layout)
