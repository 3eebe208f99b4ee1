"""Verdicts that flipped, and what is judged on one side only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..cases.build import SEARCHED
from ..document import Certificate
from ..finding import Finding, Verdict, combine
from .causes import Item
from .pair import JUDGED, Key, Pair
from .record import Direction, Place

QUALITY: dict[Verdict, int] = {"pass": 0, "permitted": 1, "vacuous": 2, "fail": 3, "error": 4}
"""Verdicts of what was judged, the best first."""

SHAPE = re.compile(r"\([\d, ]*\)|\b(?:float|bfloat)\d+\b")
"""What tells one message of an error from another one of the same cause."""


def judged(finding: Finding | None) -> bool:
    """Whether a finding rests on answers of the subject."""
    return finding is not None and finding.verdict in JUDGED


def flips(pair: Pair) -> Iterator[Item]:
    """Every verdict that is another one now, and all that is judged on one side only."""
    yield from _subjects(pair)
    old, new = pair.findings
    for key in dict.fromkeys((*old, *new)):
        yield from _flip(pair, key, old.get(key), new.get(key))


def _flip(pair: Pair, key: Key, a: Finding | None, b: Finding | None) -> Iterator[Item]:
    if judged(a) and judged(b):
        assert a is not None
        assert b is not None
        if a.verdict != b.verdict:
            worse = QUALITY[b.verdict] > QUALITY[a.verdict]
            yield _item(pair, key, "worse" if worse else "better", "verdict", _with_diagnosis(a), _with_diagnosis(b), b)
        elif pair.same_rows and b.checked < a.checked and b.family != SEARCHED:
            fewer = float(a.checked - b.checked)
            yield _item(pair, key, "worse", "coverage", "judged", "fewer rows judged", b, rank=fewer)
        elif pair.same_rows and b.failed > a.failed and b.family != SEARCHED and cause(a) == cause(b):
            more = float(b.failed - a.failed)
            yield _item(pair, key, "worse", "failures", _with_diagnosis(b), "on more rows", b, rank=more)
    elif judged(a):
        assert a is not None
        yield from _lost(pair, key, a, b)
    elif judged(b):
        assert b is not None
        yield from _gained(pair, key, a, b)


def _lost(pair: Pair, key: Key, a: Finding, b: Finding | None) -> Iterator[Item]:
    """What was judged and is not judged now."""
    why = b or _instead(pair.findings[1], key)
    after = "not judged" if why is None or not why.diagnosis else f"not judged: {why.diagnosis}"
    direction: Direction = "noted"
    if not a.checked:
        # A call that fails is an error of all declarations that it might serve; one that succeeds, of those it serves.
        yield _item(pair, key, direction, "coverage", a.verdict, after, a)
        return
    if pair.same_rows:
        direction = "noted" if b is None and key[3] == SEARCHED else "worse"  # a search goes where answers lead it
    elif pair.same_version and key[:3] not in pair.reached:
        direction = "worse"  # other rows explain a family that is not there, but not that all are gone
    yield _item(pair, key, direction, "coverage", _with_diagnosis(a), after, a)


def _gained(pair: Pair, key: Key, a: Finding | None, b: Finding) -> Iterator[Item]:
    """What was not judged and is judged now."""
    if b.verdict in ("fail", "error", "vacuous"):
        direction: Direction = "worse" if pair.same_plan or a is not None else "noted"
        yield _item(pair, key, direction, "verdict", "not judged", _with_diagnosis(b), b)
    else:
        yield _item(pair, key, "better" if a is not None else "noted", "coverage", "not judged", b.verdict, b)


def _instead(findings: dict[Key, Finding], key: Key) -> Finding | None:
    """The finding that says why nothing of a subject, declaration and dtype was judged."""
    return next((f for name in ("(not run)", "(hypothesis unmet)") if (f := findings.get((*key[:3], name)))), None)


def _with_diagnosis(finding: Finding) -> str:
    if not finding.diagnosis or finding.verdict in ("pass", "permitted"):
        return finding.verdict
    return f"{finding.verdict}: {cause(finding)}"


def cause(finding: Finding) -> str:
    """The diagnosis; of an error without subject, shapes and dtypes, so that one error has one name."""
    if finding.verdict != "error":
        return finding.diagnosis
    return SHAPE.sub("…", finding.diagnosis.replace(finding.subject, "…"))


def _item(
    pair: Pair,
    key: Key,
    direction: Direction,
    kind: str,
    before: str,
    after: str,
    finding: Finding,
    *,
    rank: float = 0.0,
) -> Item:
    subject, declaration, dtype, family = key
    return Item(
        level="verdict",
        direction=direction,
        kind=kind,
        before=before,
        after=after,
        adapter=pair.adapters[subject],
        place=Place(subject=subject, declarations=[declaration], dtype=dtype, family=family, id=finding.id),
        link=frozenset({declaration}),
        finding=finding,
        known=direction == "worse" and finding.deviation is not None,
        rank=rank,
    )


def _subjects(pair: Pair) -> Iterator[Item]:
    """Subjects, and their dtypes, that one side alone has."""
    both = pair.subjects
    asked: Direction = "worse" if pair.same_targets else "noted"
    for record in (s for s in pair.old.subjects if s.id not in both):
        yield _whole(pair, record.id, "", asked, _summary(pair.old, record.id), "no such subject")
    for record in (s for s in pair.new.subjects if s.id not in both):
        yield _whole(pair, record.id, "", "noted", "no such subject", _summary(pair.new, record.id))


def _summary(certificate: Certificate, subject: str) -> str:
    return combine(f.verdict for f in certificate.findings if f.subject == subject)


def _whole(pair: Pair, subject: str, dtype: str, direction: Direction, before: str, after: str) -> Item:
    place = Place(subject=subject, dtype=dtype)
    return Item("verdict", direction, "subject", before, after, pair.adapters[subject], place)


def flipped(items: Iterable[Item]) -> frozenset[tuple[str, str, str]]:
    """Subject, declaration and dtype of every verdict that flipped."""
    return frozenset(
        (i.place.subject, name, i.place.dtype)
        for i in items
        if i.level == "verdict" and i.kind == "verdict"
        for name in i.place.declarations
    )
