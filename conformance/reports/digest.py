"""What the findings of a certificate add up to: counts and cells, computed once for all kinds of reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ...spec.catalogue import KEYS, name_of
from ...spec.formats import DTYPES
from ..document import Certificate, DeviationRecord, SubjectRecord
from ..finding import BEYOND, SEVERITY, Finding, Verdict, combine
from ..terminal.matrix import kept
from ..terminal.witness import failures, text
from .safe import line, safe

NOT_JUDGED = ("unsupported", "hypothesis-unmet")
"""Verdicts of findings behind which nothing was judged."""


@dataclass(frozen=True)
class Cell:
    """What some findings come to: the combined verdict, and the largest ``error / budget`` of those that decide it.

    ``known``: every failure among them is a recorded deviation. ``dtypes``: those with that verdict.
    """

    verdict: Verdict
    known: bool
    ratio: float | None
    dtypes: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def word(self) -> str:
        """The verdict in words; a known deviation says so.

        >>> cell_of([]).word
        'hypothesis-unmet'
        """
        return "known deviation" if self.known else self.verdict

    @property
    def reasons(self) -> list[str]:
        """The diagnoses of the findings with the combined verdict, each once."""
        return list(dict.fromkeys(line(f.diagnosis) for f in self.findings if f.verdict == self.verdict))


def cell_of(findings: Sequence[Finding]) -> Cell:
    """The cell of some findings; of none it is ``hypothesis-unmet``."""
    verdict = combine(f.verdict for f in findings)
    deciding = [f for f in findings if f.verdict == verdict]
    bad = [f for f in findings if f.verdict in ("fail", "error")]
    known = bool(bad) and all(f.deviation is not None for f in bad)
    ratios = [f.ratio for f in (deciding if verdict == "fail" else findings) if f.ratio is not None]
    return Cell(verdict, known, max(ratios, default=None), in_order({f.dtype for f in deciding}), tuple(findings))


def in_order(dtypes: set[str]) -> tuple[str, ...]:
    """The dtypes from the widest to the narrowest; those that hardmask does not know come last.

    >>> in_order({"float16", "float64"})
    ('float64', 'float16')
    """
    return (*(d for d in DTYPES if d in dtypes), *sorted(dtypes - set(DTYPES)))


class Digest:
    """The findings of a certificate by subject, declaration and dtype."""

    def __init__(self, certificate: Certificate) -> None:
        self.certificate = certificate
        self._by_subject: dict[str, dict[str, list[Finding]]] = {s.id: {} for s in certificate.subjects}
        for f in certificate.findings:
            self._by_subject.setdefault(f.subject, {}).setdefault(f.declaration, []).append(f)

    def cells(self, subject: str) -> dict[str, Cell]:
        """The cells of a subject by declaration, in the order of :attr:`declarations`."""
        mine = self._by_subject.get(subject, {})
        return {name: cell_of(mine[name]) for name in self.declarations if name in mine}

    def counts(self, subject: str | None = None) -> Counter[str]:
        """How many findings have each verdict; known deviations are counted apart, as ``known``."""
        mine = self._by_subject.get(subject, {}).values() if subject is not None else (self.certificate.findings,)
        return Counter(
            "known" if f.deviation is not None and f.verdict in ("fail", "error") else f.verdict
            for findings in mine
            for f in findings
        )

    @cached_property
    def declarations(self) -> list[str]:
        """The names of the declarations in the order of every table; those that are in no catalogue come last."""
        found = {*self.certificate.declarations, *(f.declaration for f in self.certificate.findings)}
        known = [name for name in map(name_of, KEYS) if name in found]
        return [*known, *sorted(found.difference(known))]

    @cached_property
    def groups(self) -> list[list[Finding]]:
        """The failures that no recorded deviation lets pass, grouped by subject and diagnosis; the clearest first."""
        found = ([f for f in group if f.deviation is None] for group in failures(self.certificate))
        return [group for group in found if group]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(f): place for place, f in enumerate(f for group in self.groups for f in group)}

    def clearness(self, finding: Finding) -> tuple[bool, int]:
        """By what failures are ordered: those with a smallest row or problem first, then as :attr:`groups` has them."""
        return finding.minimal is None and finding.smallest is None, self._places.get(id(finding), -1)

    @cached_property
    def known(self) -> list[Finding]:
        """The failures that a recorded deviation lets pass."""
        return [f for f in self.certificate.findings if f.deviation is not None and f.verdict in ("fail", "error")]

    @cached_property
    def faults(self) -> list[DeviationRecord]:
        """The recorded deviations that fail the gate."""
        return [d for d in self.certificate.deviations if d.status != "used"]

    def strongest(self, subject: str) -> str:
        """The strongest tier under which all declarations hold, in words."""
        try:
            return safe(kept(self.certificate, subject))
        except (KeyError, ValueError, StopIteration):  # a dtype or a tier that hardmask does not know
            return "–"

    def block(self, group: Sequence[Finding]) -> str:
        """A group of failures as the terminal shows it."""
        try:
            return safe(text(group, self.certificate.declarations), 8000)
        except (ArithmeticError, AssertionError, IndexError, KeyError, ValueError):
            # The witness in a file that hardmask did not write may contradict itself.
            f = group[0]
            return safe(f"{f.subject} · {f.declaration} · {f.dtype} · {f.family}\n  diagnosis  {f.diagnosis}")

    def unjudged(self) -> list[tuple[str, list[str], int]]:
        """What was not judged: for each reason the subjects, and how many findings have it; the most frequent first."""
        reasons: dict[str, dict[str, int]] = {}
        for f in self.certificate.findings:
            if f.verdict in NOT_JUDGED:
                why = f.diagnosis
                if f.verdict == "hypothesis-unmet":
                    # The diagnosis says what the subject did, as a fact, unless there was no row at all.
                    seen = f"; what was seen: {why}" if why and "hypotheses" not in why else ""
                    why = f"no row meets the hypotheses{seen}"
                if f.family.startswith(BEYOND):
                    why = f"{f.family}: {why}"
                mine = reasons.setdefault(line(why), {})
                mine[f.subject] = mine.get(f.subject, 0) + 1
        found = [(why, sorted(mine), sum(mine.values())) for why, mine in reasons.items()]
        return sorted(found, key=lambda entry: (-entry[2], entry[0]))


def worst_first(subjects: Sequence[SubjectRecord]) -> list[SubjectRecord]:
    """Subjects from the worst verdict to the best; of equals in their order."""
    return sorted(subjects, key=lambda s: SEVERITY.index(s.verdict))
