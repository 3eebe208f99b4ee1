"""``hardmask report``, ``hardmask badge`` and the options of ``hardmask certify``: the same reports, or a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hardmask.conformance.certificate import sealed, write
from hardmask.conformance.cli import main
from hardmask.conformance.reports import Outcome, badge, junit, markdown
from hardmask.conformance.reports.outcome import outcome_of

CERTIFY = ("certify", "numpy.replace-min", "--dtype", "float32", "--effort", "smoke", "--jobs", "1")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.fixture
def file(failing: Outcome, tmp_path: Path) -> str:
    path = tmp_path / "certificate.json"
    write(sealed(failing.certificate), path)
    return str(path)


def test_a_certificate_from_a_file_gives_the_reports_of_its_run(failing: Outcome, file: str, tmp_path: Path) -> None:
    xml, page = tmp_path / "report.xml", tmp_path / "report.md"
    result = run("report", file, "--junit", str(xml), "--markdown", str(page))
    assert (result.exit_code, result.stderr) == (0, "")
    named = Outcome(sealed(failing.certificate), failing.exit_code, failing.reason, file)
    assert xml.read_bytes() == junit(named)
    assert page.read_text() == markdown(named)
    assert run("report", file, "--markdown", "-").stdout == markdown(named)
    assert json.loads(run("badge", file).stdout) == badge(named)
    assert run("badge", file, "--out", str(tmp_path / "badge.json"), "--label", "masks").exit_code == 0
    assert json.loads((tmp_path / "badge.json").read_text()) == badge(named, "masks")


def test_what_a_file_comes_to_is_what_its_run_came_to(failing: Outcome, passing: Outcome) -> None:
    for outcome in (failing, passing):
        again = outcome_of(outcome.certificate)
        assert (again.exit_code, again.reason) == (outcome.exit_code, outcome.reason)


def test_certify_writes_the_reports_and_keeps_its_exit_code(tmp_path: Path) -> None:
    xml, page, out = (str(tmp_path / name) for name in ("r.xml", "r.md", "c.json"))
    result = run(*CERTIFY, "--junit", xml, "--markdown", page, "--out", out)
    assert result.exit_code == 1
    assert f"JUnit report: {xml}" in result.stdout.replace("\n", "")
    assert "<failure" in Path(xml).read_text()
    assert f"hardmask replay {out}" in Path(page).read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("report", "{file}"), "Name a report to write: --"),
        (("report", "{file}.no", "--junit", "-"), "cannot be read: No such file"),
        (("report", "{file}", "--junit", "/no/such/folder/x.xml"), "The JUnit report cannot be written to"),
        (
            ("report", "{file}", "--junit", "same", "--markdown", "same"),
            "Two reports cannot both be written to 'same'.",
        ),
        (("badge", "{file}", "--out", "/no/such/folder/x.json"), "The badge cannot be written to"),
        (("badge", "/dev/null"), "cannot be read: it is no regular file"),
        ((*CERTIFY, "--markdown", "/no/such/folder/x.md"), "The Markdown report cannot be written to"),
    ],
)
def test_a_request_that_cannot_be_carried_out_is_a_sentence(words: tuple[str, ...], sentence: str, file: str) -> None:
    result = run(*(word.format(file=file) for word in words))
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stdout == ""


def test_a_certificate_that_contradicts_itself_is_a_sentence(
    hostile: Outcome, failing: Outcome, tmp_path: Path
) -> None:
    import msgspec

    path = tmp_path / "strange.json"
    for request in ({}, {**failing.certificate.request, "effort": 3}, {**failing.certificate.request, "dtypes": ["x"]}):
        write(sealed(msgspec.structs.replace(failing.certificate, request=request)), path)
        for command in (("report", str(path), "--markdown", "-"), ("badge", str(path))):
            result = run(*command)
            assert result.exit_code == 2
            assert "It cannot be told what this certificate came to" in result.stderr
