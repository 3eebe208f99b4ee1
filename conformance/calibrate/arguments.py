"""The arguments at which an exponential is probed: all of a format below 0 that matter, in blocks, or a seeded sample.

Arguments are walked in the order of their bits, away from 0: from ``-u/2``, above which the exponential rounds to 1, to
where it rounds to 0. One block spans a narrow range of arguments, an eighth of an octave in float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...spec.batch import Array
from ...spec.formats import FORMATS, HALVES, Format
from ...spec.rounding.model import FLOAT32

SAMPLED = 1 << 24
"""How many arguments of float64 stand for all of them."""

_BLOCKS = 270  # a block of float32 fills 65,504 rows of 15 arguments
_WORDS = {"float64": np.uint64, "float32": np.uint32, "float16": np.uint16, "bfloat16": np.uint16}


@dataclass(frozen=True)
class Arguments:
    """The arguments of one format, all of them or the share ``fraction``, drawn with ``seed``.

    >>> Arguments("float16").total, Arguments("float32").total
    (19584, 265289729)
    >>> sum(len(x) for x in Arguments("float16", 0.01).blocks())
    192
    """

    dtype: str
    fraction: float = 1.0
    seed: int = 0

    @property
    def format(self) -> Format:
        """The format."""
        return FORMATS[self.dtype]

    @property
    def ends(self) -> tuple[float, float]:
        """The first argument and a last one, whose exponential rounds to 0."""
        f = self.format
        u = FLOAT32.u if self.dtype in HALVES else f.u
        last = math.log(f.eta) - math.log(2.0)
        return -max(u / 2.0, f.eta), math.floor(last)

    @property
    def total(self) -> int:
        """How many arguments the format has between the two ends, both included."""
        first, last = self._bits()
        return last - first + 1

    @property
    def count(self) -> int:
        """How many of them are probed."""
        return sum(self._sizes())

    @property
    def exhaustive(self) -> bool:
        """Whether every argument is probed."""
        return self.count == self.total

    def blocks(self) -> Iterator[Array]:
        """The arguments, block by block, as arrays of the format's dtype."""
        first, _ = self._bits()
        word = _WORDS[self.dtype]
        sign = 1 << (8 * np.dtype(word).itemsize - 1)
        start, whole = 0, self._whole()
        for number, (size, length) in enumerate(zip(self._sizes(), whole, strict=True)):
            offsets = np.arange(size, dtype=np.uint64)
            if size < length:
                # One argument out of each of so many equal intervals.
                rng = np.random.default_rng((self.seed, number))
                edges = (length * np.arange(size + 1, dtype=object) // max(size, 1)).astype(np.uint64)
                offsets = edges[:-1] + (rng.random(size) * (edges[1:] - edges[:-1])).astype(np.uint64)
            if size:
                yield (offsets + np.uint64(first + start + sign)).astype(word).view(self.format.dtype)
            start += length

    def _bits(self) -> tuple[int, int]:
        word = _WORDS[self.dtype]
        low, high = (int(np.array(-x).astype(self.format.dtype).view(word)) for x in self.ends)
        return low, high

    def _whole(self) -> list[int]:
        blocks = 32 if self.dtype in HALVES else _BLOCKS
        return [self.total * (i + 1) // blocks - self.total * i // blocks for i in range(blocks)]

    def _sizes(self) -> list[int]:
        share = self.fraction * min(1.0, SAMPLED / self.total) if self.dtype == "float64" else self.fraction
        return [min(length, max(1, round(length * share))) for length in self._whole()]
