"""What a piece of a sweep came to, and how pieces add up."""

from __future__ import annotations

import msgspec

STOP = 1_000_000
"""Violations after which a sweep ends: there is nothing left to learn, and each of them is judged in full."""

SHOWN = 16
"""Violating rows that are kept."""


class Row(msgspec.Struct, frozen=True):
    """A violating row: its scores and what was returned, as 16-bit codes, and its mask."""

    scores: list[int]
    mask: list[bool]
    returned: list[int]
    valid: bool | None = None


class Counts(msgspec.Struct):
    """The counts of some rows, in the order of enumeration.

    ``misrounded`` and ``distance`` have one entry per output: how many are not the correctly rounded number, and the
    largest distance to it in codes; None where that was not asked. ``judged``: rows that the tables left open and the
    ordinary check decided. ``stopped``: the sweep ended early, after :data:`STOP` violations.
    """

    firsts: int = 0
    rows: int = 0
    outputs: int = 0
    violations: int = 0
    permitted: int = 0
    judged: int = 0
    misrounded: list[int] | None = None
    distance: list[int] | None = None
    rejected: bool | None = None
    stopped: bool = False
    first: list[Row] = msgspec.field(default_factory=list)
    errors: list[str] = msgspec.field(default_factory=list)

    @property
    def over(self) -> bool:
        """Whether nothing more is to be enumerated."""
        return self.stopped or bool(self.errors)

    def add(self, more: Counts) -> None:
        """Add the piece that follows."""
        for name in ("firsts", "rows", "outputs", "violations", "permitted", "judged"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        if more.misrounded is not None and more.distance is not None:
            before = self.misrounded or [0] * len(more.misrounded), self.distance or [0] * len(more.distance)
            self.misrounded = [a + b for a, b in zip(before[0], more.misrounded, strict=True)]
            self.distance = [max(a, b) for a, b in zip(before[1], more.distance, strict=True)]
        if more.rejected is not None:
            self.rejected = more.rejected
        self.first = [*self.first, *more.first][:SHOWN]
        self.errors += [e for e in more.errors if e not in self.errors]
        self.stopped = self.stopped or more.stopped or self.violations >= STOP
