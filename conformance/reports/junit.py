"""A certificate as JUnit XML: one suite for each subject, one case for each theorem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from ..document import DeviationRecord, SubjectRecord
from ..finding import Finding
from ..terminal.matrix import short_name, used
from .digest import NOT_JUDGED, Cell, Digest
from .outcome import Outcome
from .safe import line, safe

SHOWN = 20
"""Ids of failed findings listed in one case; the certificate has them all."""


def junit(outcome: Outcome) -> bytes:
    """The JUnit file of a certificate, in UTF-8: it holds a failure or an error exactly where the exit code is not 0.

    The first suite, ``hardmask``, holds the verdict and every recorded deviation that fails the gate. What was not
    judged and what is a known deviation is skipped, with the reason.
    """
    digest = Digest(outcome.certificate)
    subjects = outcome.certificate.subjects
    suites = [_run(outcome, digest), *(_subject(outcome, digest, s) for s in subjects)]
    root = ET.Element("testsuites", {"name": "hardmask", **_totals(suites), "time": _seconds(outcome)})
    root.extend(suites)
    ET.indent(root)
    return ET.tostring(root, encoding="UTF-8", xml_declaration=True) + b"\n"


def _run(outcome: Outcome, digest: Digest) -> ET.Element:
    """The suite of the run as a whole."""
    suite = _suite(outcome, "hardmask", _properties(outcome, digest))
    case = ET.SubElement(suite, "testcase", classname="hardmask", name="verdict", time="0")
    if not outcome.certified:
        _say(case, "failure", line(outcome.reason), f"exit-code-{outcome.exit_code}", safe(outcome.reason))
    for record in digest.faults:
        place = line(f"deviation {record.subject} {record.declaration} {record.dtype}".strip())
        case = ET.SubElement(suite, "testcase", classname="hardmask", name=place, time="0")
        if not outcome.certified:
            said = f"{record.status}: {_because(record)}"
            _say(case, "failure", line(said), record.status, safe(said))
    ET.SubElement(suite, "system-out").text = safe("\n".join(outcome.certificate.not_shown), 20_000)
    suite.attrib.update(_counts(suite))
    return suite


def _because(record: DeviationRecord) -> str:
    parts = [record.reason, record.link, f"expires {record.expires}" if record.expires else ""]
    return "; ".join(part for part in parts if part)


def _subject(outcome: Outcome, digest: Digest, subject: SubjectRecord) -> ET.Element:
    """The suite of one subject."""
    suite = _suite(
        outcome,
        line(subject.id),
        {
            "adapter": subject.adapter,
            "role": subject.role,
            "path": subject.path,
            "contract": subject.contract,
            "verdict": subject.verdict,
            "strongest tier that holds": digest.strongest(subject.id),
            **{f"findings: {name}": str(count) for name, count in sorted(digest.counts(subject.id).items())},
        },
    )
    for name, cell in digest.cells(subject.id).items():
        suite.append(_case(outcome, digest, subject, name, cell))
    suite.attrib.update(_counts(suite))
    return suite


def _case(outcome: Outcome, digest: Digest, subject: SubjectRecord, name: str, cell: Cell) -> ET.Element:
    """The case of one theorem."""
    case = ET.Element("testcase", classname=line(subject.id), name=line(short_name(name)), time="0")
    bad = [f for f in cell.findings if f.verdict in ("fail", "error") and f.deviation is None]
    told = "; ".join(cell.reasons[:3])
    if bad:
        group = _same_cause(digest, bad)
        kind = "error" if any(f.verdict == "error" for f in bad) else "failure"
        ids = ", ".join(f.id for f in bad[:SHOWN]) + (f" and {len(bad) - SHOWN} more" if len(bad) > SHOWN else "")
        body = f"{digest.block(group)}\n  findings   {ids}\n  replay     {safe(outcome.replay(group[0].id))}"
        _say(
            case, kind, line(f"{group[0].dtype}, {group[0].family}: {group[0].diagnosis}"), line(bad[0].diagnosis), body
        )
        return case
    if empty := _wholly_vacuous(cell):
        said = f"The budget says nothing about it in {', '.join(empty)}."
        _say(case, "failure", said, "vacuous", said)
        return case
    if cell.known:
        deviations = dict.fromkeys(f.deviation for f in cell.findings if f.deviation is not None)
        said = "; ".join(
            " ".join(part for part in (d.reason, d.link, d.expires and f"(expires {d.expires})") if part)
            for d in deviations
        )
        _say(case, "skipped", line(f"known deviation: {said}"), "hardmask.deviation")
    elif cell.verdict in NOT_JUDGED:
        _say(case, "skipped", told or "no row meets the hypotheses", f"hardmask.{cell.verdict}")
    lines = list(_remarks(cell))
    if lines:
        ET.SubElement(case, "system-out").text = safe("\n".join(lines), 20_000)
    return case


def _same_cause(digest: Digest, bad: list[Finding]) -> list[Finding]:
    """The findings of a case in the order of the terminal, the clearest first."""
    ordered = sorted(bad, key=digest.clearness)
    return [f for f in ordered if f.diagnosis == ordered[0].diagnosis]


def _wholly_vacuous(cell: Cell) -> list[str]:
    """The dtypes in which nothing but vacuous findings was judged."""
    judged: dict[str, set[str]] = {}
    for f in cell.findings:
        if f.checked:
            judged.setdefault(f.dtype, set()).add(f.verdict)
    return [dtype for dtype, verdicts in judged.items() if verdicts == {"vacuous"}]


def _remarks(cell: Cell) -> Iterator[str]:
    """What stands beside a case that did not fail: its share of the budget, and what of it was not judged."""
    judged = [f for f in cell.findings if f.checked]
    if judged:
        what = f"{cell.word}: {sum(f.checked for f in judged)} judged, in {len(judged)} findings"
        yield what + ("" if cell.ratio is None else f"; largest share of the budget {used(cell.ratio)}")
    if cell.verdict in NOT_JUDGED:
        return
    missing = dict.fromkeys((f.dtype, line(f.diagnosis)) for f in cell.findings if f.verdict in NOT_JUDGED)
    for dtype, why in missing:
        yield f"not judged in {dtype}: {why or 'no row meets the hypotheses'}"


def _suite(outcome: Outcome, name: str, properties: dict[str, str]) -> ET.Element:
    suite = ET.Element("testsuite", name=name, time="0", timestamp=_started(outcome))
    holder = ET.SubElement(suite, "properties")
    for key, value in properties.items():
        ET.SubElement(holder, "property", name=line(key), value=line(value))
    return suite


def _properties(outcome: Outcome, digest: Digest) -> dict[str, str]:
    """The seed, the effort and the versions of a run."""
    certificate = outcome.certificate
    found = {"hardmask": certificate.hardmask, "seed": str(certificate.seed), "digest": certificate.digest}
    found["effort"] = str(certificate.request.get("effort"))
    for kind in ("frameworks", "libraries"):
        versions = certificate.environment.get(kind)
        if isinstance(versions, dict):
            found |= {f"version: {name}": str(version) for name, version in sorted(versions.items())}
    found |= {name: str(certificate.environment.get(name)) for name in ("python", "system", "machine")}
    found |= {f"findings: {name}": str(count) for name, count in sorted(digest.counts().items())}
    return found


def _say(case: ET.Element, tag: str, message: str, kind: str, body: str | None = None) -> None:
    ET.SubElement(case, tag, message=message, type=kind).text = body


def _counts(suite: ET.Element) -> dict[str, str]:
    cases = suite.findall("testcase")
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    counts = {key: str(sum(case.find(tag) is not None for case in cases)) for key, tag in tags.items()}
    return {"tests": str(len(cases)), **counts}


def _totals(suites: Iterable[ET.Element]) -> dict[str, str]:
    held = list(suites)
    return {key: str(sum(int(s.attrib[key]) for s in held)) for key in ("tests", "failures", "errors", "skipped")}


def _started(outcome: Outcome) -> str:
    """When the run started, in UTC; the epoch where the certificate does not say."""
    started = outcome.certificate.times.get("started")
    try:
        moment = datetime.fromtimestamp(float(started or 0), UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        moment = datetime.fromtimestamp(0, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S")


def _seconds(outcome: Outcome) -> str:
    seconds = outcome.certificate.times.get("seconds")
    return f"{seconds:.3f}" if isinstance(seconds, int | float) and abs(seconds) < 1e12 else "0"
