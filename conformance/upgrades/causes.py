"""One cause, one entry: what changed in many places for one reason is put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ..finding import SEVERITY, Finding
from .record import DIRECTIONS, LEVELS, Change, Direction, Drift, Example, Level, Place

KINDS = ("subject", "coverage", "verdict")
"""Kinds of one level and direction from the most serious on; all others come after them."""


@dataclass(frozen=True)
class Item:
    """One record that changed. ``link``: items of one kind that share a link, or have none, may have one cause.

    ``finding`` is shown as the example, ``rank`` tells which of several: the largest. ``of``: how many records were
    compared of this subject and dtype.
    """

    level: Level
    direction: Direction
    kind: str
    before: str
    after: str
    adapter: str
    place: Place
    link: frozenset[str] = frozenset()
    finding: Finding | None = None
    known: bool = False
    note: str = ""
    drift: Drift | None = None
    rank: float = 0.0
    of: int = 0


@dataclass
class _Part:
    """The items of one subject in one bucket, each with its place in the order of all."""

    items: list[tuple[int, Item]] = field(default_factory=list)
    links: set[str] = field(default_factory=set)


def changes(items: Iterable[Item]) -> list[Change]:
    """The causes, most serious first.

    Items are put together when level, direction, kind, what was before and after, and the adapter are the same, and the
    subjects have a link in common, directly or by way of others.
    """
    buckets: dict[tuple[object, ...], dict[str, _Part]] = {}
    for order, item in enumerate(items):
        key = (item.level, item.direction, item.known, item.kind, item.before, item.after, item.note, item.adapter)
        part = buckets.setdefault(key, {}).setdefault(item.place.subject, _Part())
        part.items.append((order, item))
        part.links |= item.link
    made = [_change(group) for bucket in buckets.values() for group in _connected(list(bucket.values()))]
    return sorted(made, key=_seriousness)


def _connected(parts: Sequence[_Part]) -> list[list[Item]]:
    """The items of parts whose links overlap, one list for each connected group."""
    groups: list[_Part] = []
    for part in parts:
        apart = []
        merged = _Part(list(part.items), set(part.links))
        for group in groups:
            if group.links & merged.links or group.links == merged.links:
                merged = _Part(group.items + merged.items, group.links | merged.links)
            else:
                apart.append(group)
        groups = [*apart, merged]
    return [[item for _, item in sorted(group.items, key=lambda pair: pair[0])] for group in groups]


def _change(items: Sequence[Item]) -> Change:
    first = items[0]
    places = [item.place for item in items]
    shown = max(items, key=lambda item: (item.rank, _clarity(item)))
    compared = {(item.place.subject, item.place.dtype): item.of for item in items}
    return Change(
        level=first.level,
        direction=first.direction,
        kind=first.kind,
        before=first.before,
        after=first.after,
        adapter=first.adapter,
        subjects=_once(p.subject for p in places),
        declarations=_once(name for p in places for name in p.declarations),
        dtypes=_once(p.dtype for p in places),
        families=_once(p.family for p in places),
        quantities=_once(p.quantity for p in places),
        count=len(items),
        of=sum(compared.values()),
        known=first.known,
        deviation=shown.finding.deviation if first.known and shown.finding is not None else None,
        note=first.note,
        drift=shown.drift,
        example=Example(
            place=shown.place,
            witness=None if shown.finding is None else shown.finding.minimal or shown.finding.witness,
            attention=None if shown.finding is None else shown.finding.smallest or shown.finding.attention,
        ),
        places=places,
    )


def _clarity(item: Item) -> tuple[float, ...]:
    """Prefers a finding whose witness holds the row itself, a short one, but of more than one key."""
    finding = item.finding
    if finding is None:
        return (0.0,)
    shown = finding.minimal or finding.witness
    keys = 0 if shown is None else shown.keys
    return (
        1.0,
        float(finding.minimal is not None or finding.smallest is not None),
        float(shown is not None and shown.scores is not None),
        float(keys > 1),
        -float(keys),
    )


def _once(values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value]


def _seriousness(change: Change) -> tuple[object, ...]:
    verdict = change.after.partition(":")[0]
    return (
        LEVELS.index(change.level),
        change.known,
        DIRECTIONS.index(change.direction),
        KINDS.index(change.kind) if change.kind in KINDS else len(KINDS),
        next((i for i, name in enumerate(SEVERITY) if name == verdict), len(SEVERITY)),
        -change.count,
        change.subjects[:1],
        change.kind,
        change.before,
        change.after,
    )
