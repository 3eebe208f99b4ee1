"""Ask a subject about every argument, and keep the extremes.

The subject is called from one thread; a second one reads its answers meanwhile. Arguments whose interval is still wide
enough to hold a new extreme are asked about again, in rows with other sums.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from ...adapters.subject import Subject
from ...spec.batch import Array, Bools, Floats
from .arguments import Arguments
from .reading import Reader, Reading
from .rows import ask, layout

STAGES = {"float64": 32, "float32": 32, "float16": 96, "bfloat16": 96}
"""How often one argument is asked about at most: the halves have few arguments, and reveal little at a time."""

_CLOSE = 0.01  # in u: intervals that pass the largest certain deviation by less are left alone
_REPEATABLE = 8  # results this many binades above the smallest normal number are divided by larger sums too


@dataclass
class Side:
    """The largest deviation to one side, at least ``lower`` (there at ``argument``) and at most ``upper``."""

    lower: float = 0.0
    upper: float = 0.0
    argument: float = 0.0

    def certain(self, deviation: float, argument: float) -> None:
        """Take note of a deviation that was certainly reached."""
        if deviation > self.lower:
            self.lower, self.argument = deviation, argument
        self.upper = max(self.upper, self.lower)

    def merge(self, other: Side) -> None:
        """Take note of another block's."""
        self.certain(other.lower, other.argument)
        self.upper = max(self.upper, other.upper)


@dataclass
class Tiny:
    """What became of results below the normal range; errors in units of the smallest subnormal number.

    ``zero_from``: the largest argument with weight 0 (``-inf`` if there is none).
    """

    lower: float = 0.0
    upper: float = 0.0
    argument: float = 0.0
    zero_from: float = -np.inf

    def merge(self, other: Tiny) -> None:
        """Take note of another block's."""
        if other.lower > self.lower:
            self.lower, self.argument = other.lower, other.argument
        self.upper = max(self.upper, other.upper)
        self.zero_from = max(self.zero_from, other.zero_from)


@dataclass
class Extremes:
    """What was seen in one block: arguments between ``first`` and ``last``, ``first`` the nearer to 0."""

    first: float = 0.0
    last: float = 0.0
    count: int = 0
    above: Side = field(default_factory=Side)
    below: Side = field(default_factory=Side)
    tiny: Tiny = field(default_factory=Tiny)
    off_grid: int = 0
    disagreeing: int = 0


class Block:
    """The arguments of one block that are still to be asked about, and what is known of all of them."""

    def __init__(self, arguments: Array, seed: int) -> None:
        self.open = arguments
        self.seen = Extremes(float(arguments[0]), float(arguments[-1]), len(arguments))
        self.stage = 0
        self._low: Floats = np.full(len(arguments), -np.inf)
        self._high: Floats = np.full(len(arguments), np.inf)
        self._rng = np.random.default_rng((seed, len(arguments), int(arguments.view(f"u{arguments.itemsize}")[0])))

    def ask(self, subject: Subject) -> Floats:
        """The weights of the next rows."""
        return ask(subject, *layout(self.stage).rows(self.open, self._rng if self.stage else None))

    def read(self, weights: Floats, reader: Reader, stages: int) -> None:
        """Take in an answer to :meth:`ask`; :attr:`open` is then what deserves another look."""
        found = reader.read(weights, layout(self.stage), self.open)
        if self.stage == 0:
            self._first(found)
        self._intersect(found)
        self.seen.off_grid += found.off_grid
        x = self.open.astype(np.float64)
        for side, deviation in ((self.seen.above, self._low), (self.seen.below, -self._high)):
            if deviation.size:
                at = int(deviation.argmax())
                side.certain(float(deviation[at]), float(x[at]))
        self.stage += 1
        close = _CLOSE * reader.format.u
        wide = (self._high > self.seen.above.lower + close) | (-self._low > self.seen.below.lower + close)
        wide &= found.normal
        least = reader.format.lam * 2.0**_REPEATABLE
        if self.stage < stages:
            self._keep(wide & (x > np.log(least)))
        else:
            self._keep(np.zeros(len(x), bool))

    def _first(self, found: Reading) -> None:
        tiny, x = self.seen.tiny, self.open.astype(np.float64)
        if found.zero.any():
            tiny.zero_from = float(x[found.zero].max())
        if not found.normal.all():
            at = int(found.low_tiny.argmax())
            tiny.lower, tiny.argument = float(found.low_tiny[at]), float(x[at])
            tiny.upper = float(found.high_tiny.max())

    def _intersect(self, found: Reading) -> None:
        low, high = np.maximum(self._low, found.low), np.minimum(self._high, found.high)
        apart = low > high
        if apart.any():
            # One argument, two exponentials: both are within the wider interval.
            self.seen.disagreeing += int(apart.sum())
            low = np.where(apart, np.minimum(self._low, found.low), low)
            high = np.where(apart, np.maximum(self._high, found.high), high)
        self._low, self._high = low, high

    def _keep(self, wide: Bools) -> None:
        closed = ~wide
        if closed.any():
            self.seen.above.upper = max(self.seen.above.upper, float(self._high[closed].max()))
            self.seen.below.upper = max(self.seen.below.upper, float(-self._low[closed].min()))
        kept = np.flatnonzero(wide)
        self._rng.shuffle(kept)  # so that the next rows have other sums, each its own
        self.open, self._low, self._high = self.open[kept], self._low[kept], self._high[kept]


def sweep(
    subject: Subject, arguments: Arguments, reader: Reader, listen: Callable[[int], None] = lambda count: None
) -> list[Extremes]:
    """The extremes of every block, in order. ``listen`` hears of each block how many arguments it held.

    Raises UnusableError when an answer tells nothing.
    """
    stages = STAGES[arguments.dtype]
    fresh = iter(arguments.blocks())
    again: deque[Block] = deque()
    waiting: deque[tuple[Block, Future[None]]] = deque()
    done: list[Extremes] = []
    with ThreadPoolExecutor(1) as reading:
        while True:
            block = again.popleft() if again else None
            if block is None and (new := next(fresh, None)) is not None:
                block = Block(new, arguments.seed)
            if block is not None:
                waiting.append((block, reading.submit(block.read, block.ask(subject), reader, stages)))
            elif not waiting:
                break
            if block is None or len(waiting) > 1:
                read, future = waiting.popleft()
                future.result()
                if len(read.open):
                    again.append(read)
                else:
                    done.append(read.seen)
                    listen(read.seen.count)
    return sorted(done, key=lambda seen: -seen.first)
