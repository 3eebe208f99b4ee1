"""The typed records of a comparison of two certificates."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..finding import AttentionWitness, Deviation, Witness

SCHEMA = "hardmask-comparison/1"

Level = Literal["verdict", "policy", "distribution", "bits"]
LEVELS: tuple[Level, ...] = ("verdict", "policy", "distribution", "bits")
"""What may change, most serious first: a verdict, what is computed where no bound decides, how the errors are
distributed, the bits."""

Direction = Literal["worse", "changed", "better", "noted"]
DIRECTIONS: tuple[Direction, ...] = ("worse", "changed", "better", "noted")
"""``worse`` and ``changed`` are regressions; ``better`` and ``noted`` are none."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two certificates: its digest, the version of hardmask, and what was run on what."""

    digest: str
    hardmask: str
    targets: list[str]
    effort: str | None
    seed: int
    python: str
    frameworks: dict[str, str]
    subjects: int
    findings: int


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One setting in which the two runs differ: what was asked for, or what it ran on. Absent values are empty."""

    what: str
    old: str
    new: str


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where something changed. ``id`` is that of the finding, ``quantity`` is named for outputs."""

    subject: str
    declarations: list[str] = []
    dtype: str = ""
    family: str = ""
    quantity: str = ""
    id: str = ""


class Example(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The clearest place of a change, with the witness of its finding: of the new one, or of the old one where the new
    certificate has none."""

    place: Place
    witness: Witness | None = None
    attention: AttentionWitness | None = None


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of one side in ULPs: how many, from how many rows, and where they lie.

    ``above`` and ``below``: the shares of entries whose error is positive, and negative.
    """

    entries: int
    rows: int
    unusable: int
    least: float | None
    largest: float | None
    above: float
    below: float
    quantiles: dict[str, float]


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How far two distributions of errors are apart, and how far sampling alone may put them.

    ``distance``: the largest difference of the two shares of entries, over all edges of bins: of the errors up to the
    edge, and of the errors beyond it in size. ``noise``: what the distance exceeds by chance with a probability of at
    most ``level``, whatever the distributions are. ``grown`` and ``shrunk``: by how much the share of errors beyond an
    edge in size rose and fell at most, with the edges. All zero where the rows were enumerated: nothing is left to
    chance.
    """

    distance: float
    noise: float
    level: float
    grown: float
    grown_beyond: float
    shrunk: float
    shrunk_beyond: float
    old: Spread
    new: Spread


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One cause with all that follows from it.

    ``kind`` says what changed from ``before`` to ``after``. ``count`` of ``of`` records changed, where ``of`` are those
    compared of the same subjects and dtypes, or 0. ``known``: a recorded deviation lets the new failures pass, and the
    change is no regression. ``places`` lists every one.
    """

    level: Level
    direction: Direction
    kind: str
    before: str
    after: str
    adapter: str
    subjects: list[str]
    declarations: list[str]
    dtypes: list[str]
    families: list[str]
    quantities: list[str]
    count: int
    of: int
    known: bool
    deviation: Deviation | None
    note: str
    drift: Drift | None
    example: Example | None
    places: list[Place]

    @property
    def regression(self) -> bool:
        """Whether it counts against the new certificate."""
        return self.direction in ("worse", "changed") and not self.known


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two certificates.

    ``identical``: they have one digest, and differ in their times at most. ``suite``: what differs in hardmask itself
    or in the statements, which comes first. ``differences``: what differs in the request and the environment.
    ``compared``: how many pairs of records were compared at each level. ``not_compared``: why a level, or a part of
    one, could not be; ``missing``: the levels that could not be at all. ``changes``: most serious first.
    """

    schema: str
    hardmask: str
    old: Side
    new: Side
    identical: bool
    paired: bool
    suite: list[str]
    differences: list[Difference]
    compared: dict[str, int]
    not_compared: list[str]
    missing: list[Level]
    changes: list[Change]
