"""The command line of an audit: exit codes, files, what is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from hardmask.conformance.certificate import write
from hardmask.conformance.cli import main
from hardmask.conformance.document import Certificate
from hardmask.conformance.finding import Deviation
from hardmask.conformance.upgrades import Comparison

from .handmade import VALUES, certificate, errors, finding, output


@pytest.fixture
def audit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """``audit(old, new, *options)``: the command on two certificates in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(old: Certificate, new: Certificate, *options: str) -> Result:
        write(old, "old.json")
        write(new, "new.json")
        result = CliRunner().invoke(main, ["audit", "old.json", "new.json", *options])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


GOOD = certificate([finding(), finding(family="empty")], outputs=[output(), output(family="empty")])
BAD = certificate(
    [finding(verdict="fail", diagnosis="NaN"), finding(family="empty")],
    outputs=[output(True), output(family="empty")],
    environment={"python": "3.11.7", "frameworks": {"x": "2.0"}},
)


def test_nothing_changed(audit: object) -> None:
    result = audit(GOOD, GOOD, "--fail-on", "bits")  # type: ignore[operator]
    assert result.exit_code == 0
    assert "Identical: the two certificates have one digest" in " ".join(result.output.split())


def test_a_regression_is_explained_in_eighty_columns(audit: object) -> None:
    result = audit(GOOD, BAD)  # type: ignore[operator]
    assert result.exit_code == 1
    assert "differs      frameworks.x 1.0 → 2.0" in result.output
    assert "worse    pass → fail: NaN (1 finding)" in result.output
    assert "key 0 got nan, true 0.0" in result.output
    assert f"{finding().id} · x.y · spec_eq_weights · f32 · ties" in result.output
    assert "BITS" in result.output
    assert result.output.splitlines()[-1] == "Regression: 1 cause (1 in verdicts) at --fail-on policy."
    assert max(map(len, result.output.splitlines())) <= 80


@pytest.mark.parametrize(("level", "code"), [("verdict", 0), ("policy", 0), ("distribution", 1), ("bits", 1)])
def test_each_level_includes_the_more_serious_ones(audit: object, level: str, code: int) -> None:
    old, new = (
        certificate([finding()], errors=[errors(counts)], outputs=[output(bool(index))])
        for index, counts in enumerate(({"0.5": 4000}, {"2": 4000}))
    )
    result = audit(old, new, "--fail-on", level)  # type: ignore[operator]
    assert result.exit_code == code
    assert "all" not in re.findall(r"worse +errors in ULPs: larger \((.*)\)", result.output)
    last = " ".join(result.output.split("\n\n")[-1].split())
    assert last == (
        f"No regression at --fail-on {level}; 2 causes at the levels below it."
        if code == 0
        else "Regression: 1 cause (1 in distributions of errors) at --fail-on distribution."
        if level == "distribution"
        else "Regression: 2 causes (1 in distributions of errors, 1 in bits) at --fail-on bits."
    )


def test_a_level_that_cannot_be_compared_gives_no_green_light(audit: object) -> None:
    other = certificate([finding()], seed=4)
    result = audit(certificate([finding()]), other, "--fail-on", "bits")  # type: ignore[operator]
    assert result.exit_code == 2
    assert "No answer: --fail-on bits asks for bits" in result.output
    assert audit(certificate([finding()]), other).exit_code == 0  # type: ignore[operator]


def test_the_record_is_typed_and_complete(audit: object) -> None:
    result = audit(GOOD, BAD, "--json", "c.json", "--markdown", "c.md")  # type: ignore[operator]
    assert result.exit_code == 1
    record = msgspec.json.decode(Path("c.json").read_bytes(), type=Comparison)
    assert record.schema == "hardmask-comparison/1"
    found = [(c.level, c.direction, c.count) for c in record.changes]
    assert found == [("verdict", "worse", 1), ("bits", "changed", 1)]
    assert record.changes[1].places[0].family == "ties"
    assert record.changes[1].places[0].declarations == [VALUES]
    assert json.loads(Path("c.json").read_text())["old"]["digest"] == GOOD.digest
    page = Path("c.md").read_text()
    assert "- **worse**: pass → fail: NaN (1 finding)" in page
    assert "### Bits" in page


def test_known_deviations_are_shown_as_known(audit: object) -> None:
    known = Deviation(reason="an old friend", expires="2099-01-01")
    new = certificate([finding(verdict="fail", diagnosis="NaN", deviation=known)])
    result = audit(certificate([finding()]), new)  # type: ignore[operator]
    assert result.exit_code == 0
    assert "known    pass → fail: NaN" in result.output
    assert "an old friend (until 2099-01-01)" in result.output


def test_hostile_text_is_printed_as_text(audit: object) -> None:
    bad = "x.[red]\x1b[31m|`<b>"
    new = certificate([finding(bad, verdict="fail", diagnosis="a\nb\x07 <script>", family="*\r*")])
    old = certificate([finding(bad, family="*\r*")], environment={"a\x1b": {"b": "c\n"}})
    result = audit(old, new, "--markdown", "c.md")  # type: ignore[operator]
    assert result.exit_code == 1
    for text in (result.output, Path("c.md").read_text()):
        assert all(c.isprintable() for line in text.split("\n") for c in line)
    assert "x.[red][31m|`<b>" in result.output
    assert "<b>" not in Path("c.md").read_text().replace("\\<", "")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["no.json", "no.json"], "The certificate 'no.json' cannot be read"),
        (["text.json", "good.json"], "'text.json' is not a complete hardmask certificate"),
        (["good.json", "other.json"], "no subject in common"),
        (["good.json", "good.json", "--json", "no/such/c.json"], "its folder is not there"),
        (["good.json", "good.json", "--fail-on", "taste"], "taste"),
        (["good.json"], "compares two certificates, and 1 is named"),
    ],
)
def test_a_request_that_is_wrong_gets_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(certificate([finding()]), "good.json")
    write(certificate([finding("other.y")]), "other.json")
    Path("text.json").write_text("{}")
    result = CliRunner().invoke(main, ["audit", *arguments])
    assert result.exit_code == 2
    assert sentence in result.output
    assert "Traceback" not in result.output
