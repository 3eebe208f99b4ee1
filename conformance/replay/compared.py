"""What the finding of today has to do with that of the certificate."""

from __future__ import annotations

from typing import Literal

from ..diagnosis import INVERTED, ROUNDED
from ..finding import AttentionWitness, Finding, Witness
from ..minimise.trial import ALIKE
from ..terminal.witness import SHAPE
from ..text import printable
from ..verdicts import INEXACT

Status = Literal["passes", "fixed", "still failing", "different"]

WRONG = ("fail", "error")


def compared(then: Finding, now: Finding) -> tuple[Status, str]:
    """The status, and what has changed in words."""
    if now.verdict not in WRONG:
        if then.verdict in WRONG:
            return "fixed", f"It does not fail any more: {now.verdict}."
        changed = "" if now.verdict == then.verdict else f"It was '{then.verdict}', and is '{now.verdict}'."
        return "passes", changed
    was, is_ = printable(then.diagnosis), printable(now.diagnosis)
    if then.verdict not in WRONG:
        return "different", f"It was '{then.verdict}', and fails now: {is_}."
    if then.verdict != now.verdict or not _alike(then.diagnosis, now.diagnosis):
        return "different", f"The diagnosis was '{was}', and is '{is_}'."
    for before, after in _pairs(then, now):
        if isinstance(before, Witness) and isinstance(after, Witness):
            difference = _of_rows(before, after)
        elif isinstance(before, AttentionWitness) and isinstance(after, AttentionWitness):
            difference = _of_problems(before, after)
        else:
            continue
        if difference:
            return "different", difference
    return "still failing", ""


def _alike(then: str, now: str) -> bool:
    """Whether two diagnoses are one: what a run says of many rows at once is said of none of them alone."""
    if SHAPE.sub("", then) == SHAPE.sub("", now) or then == INVERTED:
        return True
    if now in ALIKE.get(then, ()):
        return True
    inexact = now in INEXACT or now.startswith((ROUNDED, "wrong "))
    return then.startswith(ROUNDED) and inexact


def _pairs(then: Finding, now: Finding) -> list[tuple[Witness | AttentionWitness | None, object]]:
    """Witnesses of one and the same row or problem."""
    return [(then.minimal, now.minimal), (then.smallest, now.smallest), (then.witness, now.witness)]


def _of_rows(before: Witness, after: Witness) -> str:
    a, b = before.returned, after.returned
    one = (before.batch, before.row, before.quantity, before.scores, before.mask)
    if a is None or b is None or one != (after.batch, after.row, after.quantity, after.scores, after.mask):
        return ""
    if a == b:
        return ""
    at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
    what = before.quantity or "answer"
    return f"The same verdict with other bits: entry {at} of the {what} was {_number(a[at])}, and is {_number(b[at])}."


def _of_problems(before: AttentionWitness, after: AttentionWitness) -> str:
    one = (before.problem, before.quantity, before.index, before.q, before.k, before.v, before.mask)
    if one != (after.problem, after.quantity, after.index, after.q, after.k, after.v, after.mask):
        return ""
    a, b = before.returned, after.returned
    if a is None or b is None or a == b:
        return ""
    place = ",".join(map(str, before.index))
    return f"The same verdict with other bits: {before.quantity}[{place}] was {_number(a)}, and is {_number(b)}."


def _number(hexadecimal: str) -> str:
    return repr(float.fromhex(hexadecimal))
