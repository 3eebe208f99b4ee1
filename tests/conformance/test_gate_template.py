"""The repository of the guide as a gate: open with two known deviations, and closed by every change that matters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hardmask.conformance.certificate import read
from hardmask.conformance.cli import main

PAGE = Path(__file__).parents[2] / "docs" / "howto-gate.md"

FILLED = "return softmax(np.where(mask, scores, scores.dtype.type(-1e9)))"


@pytest.fixture(autouse=True)
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the guide shows, in a repository of their own."""
    for name, code in re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        (tmp_path / name).write_text(code)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gate(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["certify", *arguments])


def edit(file: str, old: str, new: str) -> None:
    text = Path(file).read_text()
    assert text.count(old) == 1, old
    Path(file).write_text(text.replace(old, new))


def said(result: Result) -> str:
    return result.stdout.splitlines()[-1]


def test_it_passes_with_two_recorded_deviations(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = gate("--out", "c.json")
    assert result.exit_code == 0, result.output
    assert "Certified, with 2 known deviations: beyond them every subject keeps what it declares." in result.stdout
    certificate = read("c.json")
    assert {d.status for d in certificate.deviations} == {"used"}
    assert {d.link for d in certificate.deviations} == {f"https://example.org/kernels/issues/{n}" for n in (12, 15)}
    (repository / "inner").mkdir()
    monkeypatch.chdir(repository / "inner")
    assert gate().exit_code == 0, "from a folder below"


def test_it_fails_when_a_third_failure_appears() -> None:
    edit("hardmask.toml", '["kernel.py:filled"]', '["kernel.py:filled", "kernel.py:penalised"]')
    result = gate()
    assert (result.exit_code, said(result)) == (1, "Not certified: kernel.penalised.")


def test_it_fails_when_a_kernel_gets_worse_in_a_way_that_is_not_recorded() -> None:
    edit("kernel.py", FILLED, FILLED + " * 2")
    result = gate()
    assert (result.exit_code, said(result)) == (1, "Not certified: kernel.filled.")
    assert "not normalised" in result.stdout


def test_it_fails_when_one_expires() -> None:
    edit("hardmask.toml", 'issues/15"\nexpires = 2099-06-30', 'issues/15"\nexpires = 2024-06-30')
    result = gate()
    assert result.exit_code == 1
    assert said(result) == (
        "Not certified: kernel.filled. The deviation of kernel.filled on *_blocked_eq_zero expired on 2024-06-30: "
        "mend the failure, or review the reason and set a later date."
    )


def test_it_fails_when_one_is_fixed_and_still_listed() -> None:
    # Empty rows are mended; what lies below the fill is not.
    edit("kernel.py", FILLED, FILLED + " * mask.any(axis=-1, keepdims=True)")
    result = gate()
    assert result.exit_code == 1
    assert said(result).startswith("Not certified. The deviation of kernel.filled on extension:empty-row is fixed:")


def test_it_fails_when_one_names_nothing() -> None:
    edit("hardmask.toml", '"*_mem_Icc"', '"*_mem_Icc", "extension:empty-rows"')
    result = gate()
    assert result.exit_code == 1
    assert "The deviation of kernel.filled on extension:empty-rows matches nothing that was judged" in said(result)
