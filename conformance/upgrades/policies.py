"""What is computed where no bound decides: what an empty row gives, which kernel ran, how accurate it was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ...spec.attention.tiers import CONTAINS as AMONG_ATTENTION
from ...spec.rounding.tiers import CONTAINS as AMONG_ROWS
from ..document import Measured, SubjectRecord
from ..finding import Finding
from .causes import Item
from .flips import cause, judged
from .pair import Key, Pair
from .record import Direction, Level, Place

DECLARED = ("contract", "declared_contract", "convention", "encoding", "causal", "tier", "tier_other_axis", "custom")
"""What a subject declares of itself: another declaration makes another verdict out of the same answers."""

OFFERED = ("methods", "dtypes", "any_axis", "promises", "limits", "unsupported")
"""What a subject offers, as collections of names."""

Cell = tuple[str, str, str]
"""Subject, declaration and dtype."""

PLACED = re.compile(r"(.*) (?:isolated|reaches .*)")
"""A fact about what is put at a place, such as a NaN at a blocked key."""

GOOD, BAD = ("isolated", "visible"), "swallowed"
"""How facts end that are as one wants them, and one that is not."""

REACHES = " reaches "

UNSEEN = "could not be seen"


def policies(pair: Pair, flipped: Collection[Cell]) -> Iterator[Item]:
    """Every policy that is another one now; ``flipped``: where a verdict is, so that what follows needs no telling."""
    old, new = pair.findings
    for key, a in old.items():
        b = new.get(key)
        if b is not None:
            yield from _diagnosis(pair, key, a, b)
    for a_record, b_record in pair.subjects.values():
        yield from _subject(pair, a_record, b_record)
    yield from _measured(pair, flipped)


def _diagnosis(pair: Pair, key: Key, a: Finding, b: Finding) -> Iterator[Item]:
    """Another diagnosis under the same verdict."""
    before, after = _facts(a), _facts(b)
    if a.verdict != b.verdict or before == after:
        return
    for gone, come in _matched(before, after):
        level: Level = "policy"
        if a.verdict == "pass" and all("bits" in fact for fact in (*gone, *come)):
            level = "bits"  # whether two answers of one subject agree in bits
        direction = _better_or_not(gone, come)
        if a.verdict == "error" or (not judged(a) and key[3].startswith("(")):
            direction = "noted"  # another message, or another reason why nothing was judged
        subject, declaration, dtype, family = key
        yield Item(
            level=level,
            direction=direction,
            kind=f"{a.verdict}, diagnosis" if judged(a) else "fact",
            before="; ".join(gone) or "none",
            after="; ".join(come) or "none",
            adapter=pair.adapters[subject],
            place=Place(subject=subject, declarations=[declaration], dtype=dtype, family=family, id=b.id),
            link=frozenset({declaration}),
            finding=b,
            known=b.deviation is not None,
        )


def _matched(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """What is gone and what has come: place by place where both tell what becomes of something there, then the rest."""
    gone, come = [x for x in before if x not in after], [x for x in after if x not in before]
    for old in list(gone):
        place = _place(old)
        new = next((x for x in come if place and _place(x) == place), None)
        if new is not None:
            gone.remove(old)
            come.remove(new)
            yield [old], [new]
    if gone or come:
        yield gone, come


def _place(fact: str) -> str:
    found = PLACED.fullmatch(fact)
    return found.group(1) if found else ""


def _better_or_not(gone: Sequence[str], come: Sequence[str]) -> Direction:
    """Isolation and visibility of a NaN are what one wants, and the contrary is not; of all else nobody can say."""
    if len(gone) == len(come) == 1 and REACHES in gone[0] and REACHES in come[0]:
        old, new = (set(x.partition(REACHES)[2].split(", ")) for x in (gone[0], come[0]))
        return "worse" if old < new else "better" if new < old else "changed"
    if all(map(_bad, gone)) and all(x.endswith(GOOD) for x in come):
        return "better"
    if all(x.endswith(GOOD) for x in gone) and all(map(_bad, come)):
        return "worse"
    return "changed"


def _bad(fact: str) -> bool:
    return REACHES in fact or fact.endswith(BAD)


def _facts(finding: Finding) -> list[str]:
    """The parts of a diagnosis in an order that does not depend on the order of the batches."""
    return sorted({part for part in cause(finding).split("; ") if part})


def _subject(pair: Pair, a: SubjectRecord, b: SubjectRecord) -> Iterator[Item]:
    for name in DECLARED:
        yield from _field(pair, a, b, name, "changed")
    for name in OFFERED:
        before, after = sorted(getattr(a, name)), sorted(getattr(b, name))
        if before != after:
            gone, come = [x for x in before if x not in after], [x for x in after if x not in before]
            yield _of_subject(pair, a.id, name, "changed", ", ".join(gone) or "–", ", ".join(come) or "–")
    for name in ("operation", "role", "path", "group", "kernel"):
        yield from _field(pair, a, b, name, "noted")
    if a.ran != b.ran:
        blind = UNSEEN in a.ran or UNSEEN in b.ran or not a.ran or not b.ran
        direction: Direction = "noted" if blind else "changed"
        yield _of_subject(pair, a.id, "kernel that ran", direction, a.ran or "not told", b.ran or "not told")


def _field(pair: Pair, a: SubjectRecord, b: SubjectRecord, name: str, direction: Direction) -> Iterator[Item]:
    before, after = getattr(a, name), getattr(b, name)
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        keys = [k for k in dict.fromkeys((*before, *after)) if before.get(k) != after.get(k)]
        before, after = ({k: side[k] for k in keys if k in side} for side in (before, after))
    yield _of_subject(pair, a.id, name.replace("_", " "), direction, _text(before), _text(after))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(inner)}" for key, inner in value.items()) or "–"
    return str(getattr(value, "changes", value)) or "–"


def _of_subject(pair: Pair, subject: str, kind: str, direction: Direction, before: str, after: str) -> Item:
    return Item("policy", direction, kind, before, after, pair.adapters[subject], Place(subject=subject))


def _measured(pair: Pair, flipped: Collection[Cell]) -> Iterator[Item]:
    """The strongest tier that holds is another one. That none holds any more says nothing beyond a new failure."""
    old = {(m.subject, m.declaration, m.dtype): m for m in pair.old.measured}
    for b in pair.new.measured:
        a = old.get((b.subject, b.declaration, b.dtype))
        comparable = b.subject in pair.subjects and b.dtype in pair.dtypes and b.declaration not in pair.restated
        if a is None or not comparable or a.strongest == b.strongest:
            continue
        if "" in (a.strongest, b.strongest) and (b.subject, b.declaration, b.dtype) in flipped:
            continue
        yield Item(
            level="policy",
            direction=_direction(a, b, pair.subjects[b.subject][1].operation),
            kind="strongest tier that holds",
            before=a.strongest or "none",
            after=b.strongest or "none",
            adapter=pair.adapters[b.subject],
            place=Place(subject=b.subject, declarations=[b.declaration], dtype=b.dtype),
            link=frozenset({b.declaration}),
        )


def _direction(a: Measured, b: Measured, operation: str) -> Direction:
    """Whether the new tier admits more than the old one, or less; some tiers admit neither more nor less."""
    contains = AMONG_ROWS if operation == "masked-softmax" else AMONG_ATTENTION
    if not b.strongest or b.strongest in contains.get(a.strongest, ()):
        return "worse"
    if not a.strongest or a.strongest in contains.get(b.strongest, ()):
        return "better"
    return "changed"
