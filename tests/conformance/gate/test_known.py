"""Recorded deviations: what they let pass, and every way in which the gate fails on one."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from hardmask.adapters.subject import Subject
from hardmask.conformance.certificate import digest_of, read, write
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.conclusion import conclusion
from hardmask.conformance.document import Certificate
from hardmask.conformance.gate import known
from hardmask.conformance.gate.configuration import read as read_configuration
from hardmask.conformance.gate.draft import drafted
from hardmask.conformance.gate.known import Gate
from hardmask.conformance.gate.rule import Rule
from hardmask.conformance.terminal.matrix import cell
from hardmask.conformance.terminal.report import print_report

TODAY = date(2026, 6, 15)
RULE = Rule("test.off", "*", "", "", "It is known.", "https://example.org/1", date(2026, 6, 15))


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "today", lambda: TODAY)


@pytest.fixture(scope="module")
def off(good: Subject) -> Subject:
    """Right, but on rows of two keys and more, whose weights are too large."""

    def forward(scores: Any, mask: Any) -> Any:
        return (good.forward(scores, mask) * 1.25).astype(scores.dtype)

    return replace(good, id="test.off", forward=forward, vjp=None, jvp=None)


@pytest.fixture(scope="module")
def run(good: Subject, off: Subject) -> Callable[..., Report]:
    """A run held against some rules; what the gate does not change is judged once."""
    done: dict[tuple[int, ...], Certificate] = {}

    def certified(*rules: Rule, subjects: tuple[Subject, ...] = (good, off), **how: Any) -> Report:
        request = Request(tuple(s.id for s in subjects), effort="smoke", dtypes=("float32", "float16"))
        key = tuple(map(id, subjects))
        if key not in done:
            done[key] = certify(request, subjects=subjects, minimise=False).certificate
        certificate = Gate(rules, **how).applied(done[key])
        return Report(certificate, *conclusion(request, certificate, ""))

    return certified


def statuses(report: Report) -> list[tuple[str, bool]]:
    return [(r.status, r.findings > 0) for r in report.certificate.deviations]


def test_without_deviations_nothing_changes(run: Callable[..., Report]) -> None:
    report = run()
    assert (report.exit_code, report.reason) == (1, "Not certified: test.off.")
    assert report.certificate.deviations == []


def test_a_known_failure_keeps_its_verdict_and_passes(run: Callable[..., Report], tmp_path: Path) -> None:
    report = run(RULE)
    assert report.exit_code == 0
    expected = "Certified, with 1 known deviation: beyond it every subject keeps what it declares."
    assert report.reason == expected
    certificate = report.certificate
    failed = [f for f in certificate.findings if f.verdict == "fail"]
    assert failed
    for f in certificate.findings:
        assert (f.deviation is not None) == (f.verdict == "fail")
    assert {(f.deviation.reason, f.deviation.link, f.deviation.expires) for f in failed if f.deviation} == {
        ("It is known.", "https://example.org/1", "2026-06-15")
    }
    assert next(s for s in certificate.subjects if s.id == "test.off").verdict == "fail"
    (record,) = certificate.deviations
    assert (record.status, record.findings) == ("used", len(failed))
    assert certificate.digest == digest_of(certificate), "sealed anew"
    write(certificate, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == certificate


def test_the_last_day_counts_and_the_next_one_does_not(run: Callable[..., Report], monkeypatch: Any) -> None:
    assert run(RULE).exit_code == 0
    monkeypatch.setattr(known, "today", lambda: date(2026, 6, 16))
    report = run(RULE)
    assert report.exit_code == 1
    assert statuses(report) == [("expired", False)]
    assert all(f.deviation is None for f in report.certificate.findings)
    assert report.reason == (
        "Not certified: test.off. The deviation of test.off on * expired on 2026-06-15: mend the failure, or review "
        "the reason and set a later date."
    )


def test_a_deviation_that_is_fixed_or_matches_nothing_fails(run: Callable[..., Report]) -> None:
    fixed = replace(RULE, declaration="extension:batch-invariance")
    report = run(RULE, fixed)
    assert (report.exit_code, statuses(report)) == (1, [("used", True), ("fixed", False)])
    assert report.reason == (
        "Not certified. The deviation of test.off on extension:batch-invariance is fixed: what it lets pass does not "
        "fail any more; delete it."
    )
    for nothing in (
        replace(RULE, subject="test.of"), replace(RULE, declaration="extension:row-sun"),
        replace(RULE, dtype="float64"), replace(RULE, family="no such family"),
        replace(RULE, declaration="backward_eq_derivative"),
    ):  # fmt: skip
        report = run(RULE, nothing)
        assert (report.exit_code, statuses(report)) == (1, [("used", True), ("unmatched", False)])
        assert report.reason.endswith("matches nothing that was judged: correct its names, or delete it.")


def test_a_second_failure_is_not_let_pass(run: Callable[..., Report], off: Subject, good: Subject) -> None:
    again = replace(off, id="test.off-too")
    report = run(RULE, subjects=(good, off, again))
    assert (report.exit_code, report.reason) == (1, "Not certified: test.off-too.")
    narrow = replace(RULE, dtype="float16")
    report = run(narrow)
    assert (report.exit_code, report.reason) == (1, "Not certified: test.off.")
    assert {f.dtype for f in report.certificate.findings if f.deviation} == {"float16"}
    one = replace(RULE, declaration="row-sum")
    assert statuses(run(one)) == [("unmatched", False)], "an extension goes by its whole name"
    assert run(replace(RULE, declaration="extension:row-sum")).exit_code == 1
    # A Lean name and the last part of it are the same.
    name = "getScalar_hardMaskedSoftmaxVecSpec"
    short, long = run(replace(RULE, declaration=name)), run(replace(RULE, declaration=f"*.{name}"))
    assert statuses(short) == statuses(long) == [("used", True)]


def test_a_failure_belongs_to_one_deviation(run: Callable[..., Report]) -> None:
    first = replace(RULE, dtype="float16", reason="The first.")
    report = run(first, RULE)
    counts = [r.findings for r in report.certificate.deviations]
    failed = [f for f in report.certificate.findings if f.verdict == "fail"]
    assert report.exit_code == 0
    assert sum(counts) == len(failed)
    assert counts[0] == sum(f.dtype == "float16" for f in failed)
    assert report.reason.startswith("Certified, with 2 known deviations: beyond them")
    # One that has expired leaves what it named to the next.
    report = run(replace(first, expires=date(2020, 1, 1)), RULE)
    assert (report.exit_code, statuses(report)) == (1, [("expired", False), ("used", True)])
    assert report.reason.startswith("Not certified. The deviation of test.off on * in float16 expired")


def test_an_error_may_be_known_too(run: Callable[..., Report], good: Subject) -> None:
    def dead(scores: Any, mask: Any) -> Any:
        raise RuntimeError("no device")

    report = run(RULE, subjects=(good, replace(good, id="test.off", forward=dead, vjp=None, jvp=None)))
    assert {f.verdict for f in report.certificate.findings if f.deviation} == {"error"}
    assert report.exit_code == 0, report.reason


def test_a_part_of_the_configured_run(run: Callable[..., Report], good: Subject) -> None:
    other = replace(RULE, subject="other.subject")
    fixed = replace(RULE, declaration="extension:batch-invariance")
    assert run(RULE, other).exit_code == 1
    assert statuses(run(RULE, other, restricted=True)) == [("used", True)], "its subject was not asked for"
    assert statuses(run(RULE, fixed, restricted=True)) == [("used", True), ("fixed", False)]
    assert statuses(run(RULE, fixed, other, partial=True)) == [("used", True)], "what is missing may show elsewhere"
    old = replace(RULE, expires=date(2020, 1, 1))
    assert statuses(run(old, partial=True, restricted=True)) == [("expired", False)]
    assert run(other, fixed, restricted=True, subjects=(good,)).exit_code == 0


def test_verify_accepts_the_certificate(good: Subject, off: Subject, tmp_path: Path) -> None:
    request = Request(("test.good", "test.off"), effort="smoke", dtypes=("float32",))
    report = certify(request, subjects=(good, off), gate=Gate((replace(RULE, dtype="float32"),)))
    assert report.exit_code == 0
    write(report.certificate, tmp_path / "c.json")
    result = CliRunner().invoke(main, ["verify", str(tmp_path / "c.json")])
    assert "deviation" not in "".join(line for line in result.output.splitlines() if "let pass" in line), result.output
    assert result.exit_code == 0, result.output


def test_what_the_terminal_shows(run: Callable[..., Report]) -> None:
    def printed(report: Report) -> str:
        text = StringIO()
        print_report(report, Console(file=text, width=140, markup=False))
        return text.getvalue()

    report = run(RULE, replace(RULE, subject="nobody", expires=date(2020, 1, 1)))
    text = printed(report)
    assert "known fail" in text
    assert "FAIL" not in text
    assert "diagnosis" not in text, "known failures are not shown in full"
    count = report.certificate.deviations[0].findings
    assert f"Known deviations:\n  test.off · {count} findings until 2026-06-15 · *\n" in text
    assert "    It is known. (https://example.org/1)\n" in text
    assert "The deviation of nobody on * expired on 2020-01-01" in text
    mine = [f for f in report.certificate.findings if f.declaration == "extension:row-sum" and f.subject == "test.off"]
    assert cell(mine).plain.startswith("known fail ")
    half = run(replace(RULE, dtype="float16"))
    assert "FAIL" in printed(half), "a cell is known only when all its failures are"


def test_the_draft_is_complete_but_for_the_reasons(run: Callable[..., Report], tmp_path: Path) -> None:
    first = replace(RULE, dtype="float16", declaration="extension:row-sum", reason='A "quoted" reason\\.')
    report = run(first)
    text = drafted(report.certificate, (first, replace(RULE, subject="gone")), TODAY, tmp_path)
    content = tomllib.loads(text)
    assert content["targets"] == ["test.good", "test.off"]
    assert (content["effort"], content["seed"], content["dtypes"]) == ("smoke", 0, ["float32", "float16"])
    kept, *drafts = content["deviation"]
    assert (kept["reason"], kept["dtype"], kept["expires"]) == ('A "quoted" reason\\.', "float16", date(2026, 6, 15))
    assert drafts
    assert {d["reason"] for d in drafts} == {""}
    assert {d["expires"] for d in drafts} == {date(2026, 9, 13)}
    file = tmp_path / "hardmask.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=r"deviation 2 \(test.off\) has an empty 'reason'"):
        read_configuration(file)
    file.write_text(text.replace('reason = ""', 'reason = "So."'))
    filled = read_configuration(file)
    again = run(*filled.rules)
    assert again.exit_code == 0, again.reason
    assert all(r.status == "used" for r in again.certificate.deviations)
    ids = {f.id for f in report.certificate.findings if f.verdict == "fail"}
    told = {word for line in text.splitlines() if line.startswith("# ") for word in line[2:].split()}
    assert len(ids & told) >= len({(f.declaration, f.dtype) for f in again.certificate.findings if f.deviation}) - 1


KERNEL = """
import numpy as np

def kernel(scores, mask):
    with np.errstate(all="ignore"):
        filled = np.where(mask, scores, scores.dtype.type(-1e9))
        e = np.exp(filled - filled.max(axis=-1, keepdims=True, initial=-np.inf))
        return (e / e.sum(axis=-1, keepdims=True)).astype(scores.dtype)
"""


def hardmask(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["certify", *arguments])


def test_from_nothing_to_a_gate_that_is_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kernel.py").write_text(KERNEL)
    result = hardmask("kernel.py:kernel", "--effort", "smoke", "--write-deviations", "hardmask.toml")
    assert result.exit_code == 1, result.output
    assert result.stdout.splitlines()[-1].startswith("Drafted hardmask.toml: ")
    again = hardmask("--write-deviations", "hardmask.toml")
    assert again.exit_code == 2, "the draft has no reasons yet"
    assert "has an empty 'reason'" in again.stderr
    draft = Path("hardmask.toml").read_text()
    Path("hardmask.toml").write_text(draft.replace('reason = ""', 'reason = "The caller skips empty rows."'))
    result = hardmask("--out", "certificate.json")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Configuration: hardmask.toml\n")
    assert "known deviation" in result.stdout.splitlines()[-2]
    assert {d.status for d in read("certificate.json").deviations} == {"used"}
    again = hardmask("--write-deviations", "hardmask.toml")
    assert again.exit_code == 2
    assert again.stderr == "'hardmask.toml' is there already, and is not replaced. Name a file that is not there.\n"
    assert hardmask("--no-config", "kernel.py:kernel", "--effort", "smoke", "--dtype", "float32").exit_code == 1
    assert hardmask("numpy.softmax-where", "--dtype", "float32").exit_code == 0, "its deviations are left aside"
