"""The README: its first screen shows what the commands print, and its own file is judged as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from hardmask.conformance.cli import main

README = Path(__file__).parents[2].joinpath("README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(arguments))
    return result.exit_code, result.output


def cells(line: str) -> list[str]:
    """The cells of a line of the table, without the shares of the budgets, which depend on the processor."""
    return [re.sub(r" (\.\d+|<\.01|0|\d+\.\d+)$", "", cell) for cell in re.split(r"\s{2,}", line.strip())]


def test_the_first_screen_shows_what_certify_numpy_prints() -> None:
    shown = next(block for block in blocks("text") if block.startswith("numpy"))
    code, output = run("certify", "numpy", "--jobs", "1")
    assert code == 0
    printed = [cells(line) for line in output.splitlines()]
    lines = [line for line in shown.splitlines() if line != "…"]
    assert len(lines) > 25
    for line in lines:
        # Where SciPy is installed there is one more column, its own.
        wanted = cells(line)
        assert any(wanted == found[: len(wanted)] for found in printed), f"'certify numpy' does not print: {line}"


@pytest.mark.torch
def test_the_failure_that_the_readme_shows_is_real() -> None:
    shown = next(block for block in blocks("text") if block.startswith("torch"))
    code, output = run("certify", "torch.additive-inf", "--dtype", "float64", "--jobs", "1")
    assert code == 1
    for line in shown.splitlines():
        assert line.rstrip() in [printed.rstrip() for printed in output.splitlines()]


def test_the_readme_names_the_leak_of_its_own_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (source,) = blocks("python")
    tmp_path.joinpath("mine.py").write_text(source, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, output = run("certify", "mine.py:mine", "--effort", "smoke")
    assert code == 1
    assert "diagnosis  uniform" in output


def test_every_command_of_the_readme_is_one() -> None:
    named = re.findall(r"hardmask (\w+)", " ".join(blocks("console")))
    assert named
    for name in named:
        assert name in main.commands
