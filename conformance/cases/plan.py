"""Which batches a run consists of: effort, lengths, rounds."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ...spec.batch import Batch
from .build import SHORT, build

EFFORTS: tuple[str, ...] = ("smoke", "default", "deep")

LONG_KINDS = ("shapes", "poison", "full", "single", "causal", "empty", "truncation")
SHORT_KINDS = ("shapes", "poison", "mixture", "empty", "jacobian", "facts")

TILED, TILED_ROWS = 128, 112
"""Length and number of the rows that are a whole number of tiles: of 4 keys, of 8, …, of 128."""


@dataclass(frozen=True)
class Case:
    """One batch to be built: small, picklable, seeded, independent of every other."""

    dtype: str
    kind: str
    rows: int
    keys: int
    round: int
    seed: int

    @property
    def key(self) -> str:
        """Names the batch; together with the seed it reproduces it."""
        return f"{self.dtype}/{self.kind}/{self.rows}x{self.keys}/{self.round}"

    def build(self) -> Batch:
        """The batch. The same case always gives the same bits."""
        return build(self.kind, self.key, (self.seed, zlib.crc32(self.key.encode())), self.dtype, self.rows, self.keys)


@dataclass(frozen=True)
class Effort:
    """Sizes of a run.

    ``long``: lengths of the long rows, one per round in turn; all but one are multiples of no vector length, as a tail
    is where kernels go wrong. ``rows``: rows per batch, chosen so that each long batch holds at least 2·10⁵ elements at
    default effort.
    """

    rows: int
    long: tuple[int, ...]
    rounds: int


SIZES: dict[str, Effort] = {
    "smoke": Effort(rows=104, long=(), rounds=1),
    "default": Effort(rows=1552, long=(131,), rounds=1),
    "deep": Effort(rows=1552, long=(131, 67, 256, 1031), rounds=8),
}


def plan(effort: str, seed: int, dtypes: Sequence[str], rounds: int | None = None) -> list[Case]:
    """The cases of a run, dtype by dtype; ``rounds`` replaces the effort's own number.

    A default run uses five lengths: 0, 1, 16, 128 and 131.

    >>> sorted({c.keys for c in plan("default", 0, ["float32"])})
    [0, 1, 16, 128, 131]
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
            cases += [Case(dtype, kind, rows, keys, turn, seed) for kind, rows, keys in sizes]
    return cases
