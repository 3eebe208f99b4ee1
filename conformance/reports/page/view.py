"""What the page shows, as plain values: the templates decide nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from ...document import DeviationRecord, SubjectRecord
from ...finding import Finding
from ...terminal.matrix import SHORT, short_name, used
from ...terminal.witness import amount, hint
from ..digest import Cell, Digest, cell_of, in_order
from ..kill_table import kill_table
from ..outcome import Outcome
from ..reproduce import command_of
from ..safe import line, safe, web_link
from .histogram import Picture, pictures_of
from .witness import Problem, Row, problem_of, row_of

SUBJECTS, BLOCKS, ALL_BLOCKS, IDS, CLOSEST, REASONS = 200, 6, 60, 40, 12, 60
"""How many are shown: subjects, kinds of failure of one subject and of all, ids, closest calls, reasons."""

SYMBOLS = {
    "pass": "✓",
    "fail": "✗",
    "error": "!",
    "known deviation": "◇",
    "permitted": "○",
    "vacuous": "≈",
    "unsupported": "–",
    "hypothesis-unmet": "–",
}
"""A mark for each verdict: the page never speaks by colour alone."""

COUNTED = {
    "pass": "pass",
    "fail": "fail",
    "error": "error",
    "known": "known deviation",
    "permitted": "permitted",
    "vacuous": "vacuous",
    "unsupported": "unsupported",
    "hypothesis-unmet": "hypothesis-unmet",
}
"""The counts of :meth:`Digest.counts` in the order of the page, and the verdict in words."""

WORDS = {
    "pass": "pass",
    "fail": "FAIL",
    "error": "ERROR",
    "known deviation": "known",
    "permitted": "permitted",
    "vacuous": "vacuous",
    "unsupported": "not judged",
    "hypothesis-unmet": "not judged",
}


@dataclass(frozen=True)
class Mark:
    """A verdict as it is shown: its ``kind``, by which it is coloured, its symbol, its word, and what stands behind."""

    kind: str
    symbol: str
    word: str
    more: str = ""


def mark(verdict: str, more: str = "") -> Mark:
    """The mark of a verdict."""
    return Mark(verdict.replace(" ", "-"), SYMBOLS[verdict], WORDS[verdict], more)


def mark_of(cell: Cell | None) -> Mark:
    """The mark of a cell: the dtypes at fault, where others are not, and the largest share of the budget."""
    if cell is None:
        return mark("hypothesis-unmet")
    more = []
    if cell.word in ("fail", "error", "known deviation", "vacuous", "permitted"):
        judged = in_order({f.dtype for f in cell.findings if f.checked or f.verdict == "error"})
        if cell.dtypes != judged:
            more.append(",".join(SHORT.get(d, line(d, 20)) for d in cell.dtypes))
    if cell.ratio is not None and cell.verdict in ("pass", "fail", "permitted", "vacuous"):
        more.append(used(cell.ratio))
    return mark(cell.word, " ".join(more))


@dataclass(frozen=True)
class Matrix:
    """The subjects of one adapter and operation across, the theorems down."""

    title: str
    names: list[str]
    contracts: list[str]
    rows: list[tuple[str, list[Mark]]]
    strongest: list[str]
    verdicts: list[Mark]


@dataclass(frozen=True)
class Failure:
    """One kind of failure: what it is, the clearest finding, and all the others by id."""

    number: int
    subject: str
    theorem: str
    dtype: str
    family: str
    verdict: Mark
    facts: list[tuple[str, str]]
    row: Row | None
    problem: Problem | None
    ids: list[str]
    hidden: int
    replay: str


@dataclass(frozen=True)
class Details:
    """One subject: what it declares, and every theorem in every dtype."""

    subject: str
    verdict: Mark
    counts: list[tuple[Mark, int]]
    facts: list[tuple[str, str]]
    dtypes: list[str]
    rows: list[tuple[str, list[Mark]]]


@dataclass(frozen=True)
class Deviating:
    """A recorded deviation."""

    record: DeviationRecord
    where: list[str]
    reason: str
    link: str
    expires: str


class Page:
    """Everything on the page of one certificate."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.certificate = outcome.certificate
        self.digest = Digest(outcome.certificate)
        self.certified = outcome.certified
        self.reason = safe(outcome.reason, 20_000)
        self.kill_table = kill_table()
        self.command = safe(command_of(outcome.certificate), 8000)
        self.not_shown = [safe(sentence) for sentence in self.certificate.not_shown]
        self.subjects = self.certificate.subjects[:SUBJECTS]
        self.hidden_subjects = len(self.certificate.subjects) - len(self.subjects)

    @property
    def title(self) -> str:
        """The title of the page."""
        return ("Certified" if self.certified else "Not certified") + " · hardmask"

    @cached_property
    def head(self) -> str:
        """One line: what was run, by what."""
        frameworks = self.certificate.environment.get("frameworks")
        versions = sorted(frameworks.items()) if isinstance(frameworks, Mapping) else []
        told = [f"{name} {version}" for name, version in versions][:20]
        effort = self.certificate.request.get("effort")
        told += [f"hardmask {self.certificate.hardmask}", f"seed {self.certificate.seed}"]
        return line(" · ".join([*told, *([f"effort {effort}"] if effort else [])]))

    @cached_property
    def counts(self) -> list[tuple[Mark, int]]:
        """How many findings have each verdict."""
        return self._counts(None)

    @property
    def findings(self) -> int:
        """How many findings there are."""
        return len(self.certificate.findings)

    @property
    def entries(self) -> int:
        """How many entries of answers were judged."""
        return sum(f.elements for f in self.certificate.findings)

    def _counts(self, subject: str | None) -> list[tuple[Mark, int]]:
        counts = self.digest.counts(subject)
        return [(mark(word), counts[key]) for key, word in COUNTED.items() if counts[key]]

    @cached_property
    def matrices(self) -> list[Matrix]:
        """One matrix for each adapter and operation."""
        groups: dict[tuple[str, str], list[SubjectRecord]] = {}
        for s in self.subjects:
            groups.setdefault((s.adapter, s.operation), []).append(s)
        return [self._matrix(adapter, operation, mine) for (adapter, operation), mine in groups.items()]

    def _matrix(self, adapter: str, operation: str, mine: list[SubjectRecord]) -> Matrix:
        cells = {s.id: self.digest.cells(s.id) for s in mine}
        rows = [
            (line(short_name(name)), [mark_of(cells[s.id].get(name)) for s in mine])
            for name in self.digest.declarations
            if any(name in cells[s.id] for s in mine)
        ]
        return Matrix(
            line(f"{adapter}: {operation.replace('-', ' ')}"),
            [line(s.id.removeprefix(adapter + "."), 200) for s in mine],
            [line(s.contract, 60) for s in mine],
            rows,
            [self.digest.strongest(s.id) for s in mine],
            [self._verdict(s) for s in mine],
        )

    def _verdict(self, subject: SubjectRecord) -> Mark:
        counts = self.digest.counts(subject.id)
        if counts["known"] and not counts["fail"] and not counts["error"]:
            return mark("known deviation")
        return mark(subject.verdict)

    @cached_property
    def theorems(self) -> list[tuple[str, str, str]]:
        """Name, statement and plain words of each declaration."""
        found = self.certificate.declarations
        return [
            (line(name), safe(found[name].get("statement", "")), safe(found[name].get("plain", "")))
            for name in self.digest.declarations
            if name in found
        ]

    @cached_property
    def failures(self) -> list[Failure]:
        """The first kinds of failure of each subject."""
        return list(self._failures())

    @property
    def hidden_failures(self) -> int:
        """How many kinds of failure are in the certificate only."""
        return len(self.digest.groups) - len(self.failures)

    def _failures(self) -> Iterator[Failure]:
        seen: dict[str, int] = {}
        number = 0
        for group in self.digest.groups:
            subject = group[0].subject
            seen[subject] = seen.get(subject, 0) + 1
            if seen[subject] <= BLOCKS and number < ALL_BLOCKS:
                number += 1
                yield self._failure(number, group)

    def _failure(self, number: int, group: list[Finding]) -> Failure:
        f = group[0]
        ids = [g.id for g in group if g.id]
        return Failure(
            number,
            line(f.subject),
            line(short_name(f.declaration)),
            line(f.dtype),
            line(f.family),
            mark(f.verdict),
            list(self._facts(group)),
            row_of(f),
            problem_of(f),
            ids[:IDS],
            max(0, len(ids) - IDS),
            safe(self.outcome.replay(f.id)) if f.id else "",
        )

    def _facts(self, group: list[Finding]) -> Iterator[tuple[str, str]]:
        f = group[0]
        try:
            meaning = hint(f)
        except ValueError:
            meaning = None
        yield "Diagnosis", safe(f.diagnosis) + (f": {meaning}" if meaning else "")
        entry = self.certificate.declarations.get(f.declaration, {})
        if f.verdict != "error" and entry:
            yield "Theorem", safe(entry.get("statement", ""))
            yield "In words", safe(entry.get("plain", ""))
        if f.verdict == "fail":
            yield "Error", amount(f)
            what = "rows" if f.attention is None else "vectors"
            yield "Extent", f"{f.failed:,} of {f.checked:,} {what} of this family; tier {line(f.tier)}"
        others = sorted({line(short_name(g.declaration)) for g in group} - {line(short_name(f.declaration))})
        dtypes = ", ".join(map(line, in_order({g.dtype for g in group})))
        also = f", also on {', '.join(others)}" if others else ""
        yield "Seen in", f"{dtypes}; {len(group):,} finding{'s' if len(group) > 1 else ''}{also}"

    @cached_property
    def deviations(self) -> list[Deviating]:
        """The recorded deviations, those that fail the gate first."""
        records = sorted(self.certificate.deviations, key=lambda d: d.status == "used")
        return [
            Deviating(
                record,
                [line(x) or "any" for x in (record.subject, record.declaration, record.dtype)],
                safe(record.reason),
                web_link(record.link),
                line(record.expires),
            )
            for record in records[:SUBJECTS]
        ]

    @cached_property
    def closest(self) -> list[tuple[str, str, str, str, str]]:
        """The findings that passed with the least to spare, at most one for each subject."""
        best: dict[str, Finding] = {}
        for f in self.certificate.findings:
            if f.ratio is not None and f.verdict in ("pass", "permitted"):
                held = best.get(f.subject)
                if held is None or f.ratio > (held.ratio or 0.0):
                    best[f.subject] = f
        order = sorted(best.values(), key=lambda f: -(f.ratio or 0.0))
        return [
            (line(f.subject), line(short_name(f.declaration)), line(f.dtype), line(f.family), used(f.ratio or 0.0))
            for f in order[:CLOSEST]
        ]

    @cached_property
    def pictures(self) -> list[tuple[str, list[Picture]]]:
        """For each subject the histograms of its errors."""
        return pictures_of(self.certificate.errors, [s.id for s in self.subjects], self.digest.declarations)

    @cached_property
    def unjudged(self) -> list[tuple[str, list[str], int]]:
        """What was not judged: reason, subjects, number of findings."""
        found = self.digest.unjudged()[:REASONS]
        return [(why, [line(s, 200) for s in subjects], count) for why, subjects, count in found]

    @cached_property
    def details(self) -> list[Details]:
        """Every subject in full."""
        return [self._details(s) for s in self.subjects]

    def _details(self, subject: SubjectRecord) -> Details:
        cells = self.digest.cells(subject.id)
        dtypes = in_order({f.dtype for cell in cells.values() for f in cell.findings})
        rows = []
        for name, cell in cells.items():
            by_dtype: dict[str, list[Finding]] = {}
            for f in cell.findings:
                by_dtype.setdefault(f.dtype, []).append(f)
            marks = [mark_of(cell_of(by_dtype[d])) if d in by_dtype else mark("hypothesis-unmet") for d in dtypes]
            rows.append((line(short_name(name)), marks))
        facts = {
            "Role": subject.role,
            "Path": subject.path,
            "Contract": subject.contract,
            "Mask": subject.encoding or subject.convention,
            "Methods": ", ".join(subject.methods),
            "Promises": ", ".join(subject.promises),
            "Kernel": subject.kernel,
            "Ran": subject.ran,
            "Strongest tier that holds": self.digest.strongest(subject.id),
        }
        said = [(name, line(value)) for name, value in facts.items() if value]
        return Details(
            line(subject.id), self._verdict(subject), self._counts(subject.id), said, list(map(line, dtypes)), rows
        )

    @cached_property
    def environment(self) -> list[tuple[str, str]]:
        """What the run ran on."""
        return [(line(name), said(value)) for name, value in sorted(self.certificate.environment.items())]

    @cached_property
    def audit(self) -> str:
        """The audit of the oracle, in a sentence."""
        audit = self.certificate.audit
        return (
            f"The oracle was audited on {audit.rows:,} rows ({audit.entries:,} entries) by {line(audit.engine)}: "
            f"at most {used(audit.share)} of its stated error was used."
        )


def said(value: object) -> str:
    """A value of the environment in one line.

    >>> said({"numpy": "2.4", "flint": None})
    'numpy 2.4, flint –'
    """
    if isinstance(value, Mapping):
        return line(", ".join(f"{name} {'–' if item is None else item}" for name, item in value.items())) or "–"
    if isinstance(value, list | tuple):
        return line(", ".join(map(str, value))) or "–"
    return line(str(value))
