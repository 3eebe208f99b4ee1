"""What the recorded deviations come to in one run: failures that pass, and deviations that do not hold any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

import msgspec

from ..certificate import sealed
from ..document import Certificate, DeviationRecord
from ..finding import Deviation, Finding
from .rule import FAILED, UNJUDGED, Rule

Status = Literal["used", "expired", "unmatched", "fixed"]


def today() -> date:
    """The present day, in UTC: a gate opens and closes for everybody at once."""
    return datetime.now(UTC).date()


@dataclass(frozen=True)
class Gate:
    """The deviations that a run is held against.

    ``restricted``: only some of the subjects were asked for. A deviation that names none of them is left aside.
    ``partial``: less or other than the configuration asks was judged of them (dtypes, effort, seed, …). A failure that
    does not show then may show in the whole run: nothing is called fixed or unmatched.
    """

    rules: tuple[Rule, ...] = ()
    restricted: bool = False
    partial: bool = False

    def applied(self, certificate: Certificate, day: date | None = None) -> Certificate:
        """The certificate with its known failures marked and every deviation accounted for, sealed anew."""
        if not self.rules:
            return certificate
        findings, records = self.judged(certificate.findings, day or today())
        return sealed(msgspec.structs.replace(certificate, findings=findings, deviations=records))

    def judged(self, findings: Sequence[Finding], day: date) -> tuple[list[Finding], list[DeviationRecord]]:
        """The findings, known failures marked, and one record for each deviation that is not left aside.

        A failure that several deviations name belongs to the first of them that has not expired.
        """
        subjects = {f.subject for f in findings}
        marked = list(findings)
        records: list[DeviationRecord] = []
        for rule in self.rules:
            if self.restricted and not any(map(rule.names, subjects)):
                continue
            mine = [i for i, f in enumerate(findings) if f.verdict not in UNJUDGED and rule.matches(f)]
            failed = [i for i in mine if findings[i].verdict in FAILED]
            status = _status(rule, day, judged=bool(mine), failed=bool(failed))
            if self.partial and status in ("fixed", "unmatched"):
                continue
            fresh = [i for i in failed if status == "used" and marked[i].deviation is None]
            why = Deviation(reason=rule.reason, link=rule.link, expires=rule.expires.isoformat())
            for i in fresh:
                marked[i] = msgspec.structs.replace(marked[i], deviation=why)
            records.append(_record(rule, status, len(fresh)))
        return marked, records


def _status(rule: Rule, day: date, *, judged: bool, failed: bool) -> Status:
    if rule.expired(day):
        return "expired"
    return "used" if failed else "fixed" if judged else "unmatched"


def _record(rule: Rule, status: Status, findings: int) -> DeviationRecord:
    return DeviationRecord(
        subject=rule.subject,
        declaration=rule.declaration,
        dtype=rule.dtype,
        family=rule.family,
        reason=rule.reason,
        link=rule.link,
        expires=rule.expires.isoformat(),
        status=status,
        findings=findings,
    )


def stale(records: Iterable[DeviationRecord]) -> list[str]:
    """One sentence for each deviation on which the gate fails, and what to do about it."""
    return [_sentence(r) for r in records if r.status != "used"]


def _sentence(r: DeviationRecord) -> str:
    what = "The deviation of " + described(r)
    if r.status == "expired":
        return f"{what} expired on {r.expires}: mend the failure, or review the reason and set a later date."
    if r.status == "fixed":
        return f"{what} is fixed: what it lets pass does not fail any more; delete it."
    return f"{what} matches nothing that was judged: correct its names, or delete it."


def described(r: DeviationRecord) -> str:
    """What a record is about, in words."""
    return (
        f"{r.subject} on {r.declaration}"
        + (f" in {r.dtype}" if r.dtype else "")
        + (f" ({r.family})" if r.family else "")
    )


def known_count(records: Iterable[DeviationRecord]) -> int:
    """How many deviations are used: one table of the configuration counts once, whatever it lists."""
    return len({(r.subject, r.reason, r.link, r.expires) for r in records if r.status == "used"})
