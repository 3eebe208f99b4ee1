"""The error records of two certificates, and their exhaustive sweeps, compared one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..document import ErrorRecord, SweepRecord
from .causes import Item
from .drift import LEVEL, drift
from .pair import Pair
from .record import Direction, Drift, Place

GROWTH = 2.0
"""The largest error on the very same rows is noted where it has grown or shrunk by this factor, which is one bin."""

Comparable = tuple[ErrorRecord, ErrorRecord]


def pairs(pair: Pair) -> list[Comparable]:
    """The records of one subject, declaration and dtype on both sides, where they are comparable."""
    if not pair.same_plan:
        return []
    old = {(e.subject, e.declaration, e.dtype): e for e in pair.old.errors}
    return [
        (a, b)
        for b in pair.new.errors
        if (a := old.get((b.subject, b.declaration, b.dtype))) is not None
        and b.subject in pair.subjects
        and b.dtype in pair.dtypes
        and b.declaration not in pair.restated
    ]


def drifts(pair: Pair) -> Iterator[Item]:
    """Every distribution of errors that is another one now.

    The level of the whole comparison is divided among all records compared.
    """
    compared = pairs(pair)
    of: dict[tuple[str, str], int] = {}
    for a, _ in compared:
        of[a.subject, a.dtype] = of.get((a.subject, a.dtype), 0) + 1
    for a, b in compared:
        found = drift(a, b, LEVEL / len(compared))
        if found is None:
            continue
        if found.distance > found.noise:
            direction, after = _direction(found)
            yield _item(pair, a, direction, "errors in ULPs", "", after, found, of[a.subject, a.dtype])
        elif pair.same_rows and (after := _extreme(a, b)):
            yield _item(pair, a, "noted", "largest error on the same rows", "", after, found, of[a.subject, a.dtype])


def _direction(found: Drift) -> tuple[Direction, str]:
    larger, smaller = found.grown > found.noise, found.shrunk > found.noise
    if larger and not smaller:
        return "worse", "larger"
    if smaller and not larger:
        return "better", "smaller"
    return "changed", "larger and smaller" if larger else "elsewhere, about as large"


def _extreme(a: ErrorRecord, b: ErrorRecord) -> str:
    """Whether the largest error on the same rows is another one by a factor; the very same rows leave no noise."""
    old, new = (max(abs(x.least or 0.0), abs(x.largest or 0.0)) for x in (a, b))
    if not (math.isfinite(old) and math.isfinite(new)):
        return ""
    return "grew" if new >= GROWTH * old > 0.0 else "shrank" if old >= GROWTH * new > 0.0 else ""


def _item(
    pair: Pair,
    a: ErrorRecord,
    direction: Direction,
    kind: str,
    before: str,
    after: str,
    found: Drift,
    of: int,
) -> Item:
    return Item(
        level="distribution",
        direction=direction,
        kind=kind,
        before=before,
        after=after,
        adapter=pair.adapters[a.subject],
        place=Place(subject=a.subject, declarations=[a.declaration], dtype=a.dtype),
        link=frozenset({a.dtype}),
        drift=found,
        rank=found.distance / found.noise,
        of=of,
    )


def sweeps(pair: Pair) -> Iterator[Item]:
    """What exhaustive sweeps over the very same rows say: nothing there is left to chance."""
    old = {(s.subject, s.dtype, s.kind): s for s in pair.old.sweeps}
    for b in pair.new.sweeps:
        a = old.get((b.subject, b.dtype, b.kind))
        if a is None or b.subject not in pair.subjects or not _same_rows(a, b):
            continue
        before, after = a.share_not_correctly_rounded, b.share_not_correctly_rounded
        far_before, far_after = a.largest_code_distance, b.largest_code_distance
        if (before, far_before) == (after, far_after) or before is None or after is None:
            continue
        worse = after > before or max(far_after or [0]) > max(far_before or [0])
        better = after < before or max(far_after or [0]) < max(far_before or [0])
        yield Item(
            level="distribution",
            direction="changed" if worse == better else "worse" if worse else "better",
            kind=f"enumerated rows, {b.kind}: not correctly rounded",
            before=_rounded(before, far_before),
            after=_rounded(after, far_after),
            adapter=pair.adapters[b.subject],
            place=Place(subject=b.subject, dtype=b.dtype, family=b.kind),
        )


def _rounded(share: float, far: list[int] | None) -> str:
    return f"{100.0 * share:.6g} %, at most {max(far or [0])} codes off"


def _same_rows(a: SweepRecord, b: SweepRecord) -> bool:
    return (a.enumerated, a.sha256, a.rows, a.complete, b.complete) == (b.enumerated, b.sha256, b.rows, True, True)
