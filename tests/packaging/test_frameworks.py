"""The rule of the shared conftest: a test of a missing framework is skipped for a user and fails in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ("torch", "jax")
MODULE = """
import pytest

@pytest.mark.torch
def test_marked_torch():
    pass

@pytest.mark.jax
def test_marked_jax():
    pass

@pytest.mark.parametrize("framework", ["torch", "jax"])
def test_asking(require, framework):
    require(framework)

def test_of_no_framework():
    pass
"""


def run_pytest(folder: Path, *, installed: bool, ci: str | None) -> subprocess.CompletedProcess[str]:
    """Run the tests of ``MODULE`` under a copy of the conftest, with stand-ins of the frameworks or with none."""
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    torch: needs it\n    jax: needs it\n")
    (folder / "test_it.py").write_text(MODULE)
    blocked = "" if installed else "".join(f"sys.modules[{name!r}] = None\n" for name in FRAMEWORKS)
    (folder / "prepare.py").write_text("import sys\n" + blocked)
    for name in FRAMEWORKS:
        (folder / f"{name}.py").touch()
    environment = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(folder)
    if ci is not None:
        environment["CI"] = ci
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "prepare", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("installed", "ci", "exit_code", "tally", "reason"),
    [
        (True, None, 0, "5 passed", ""),
        (True, "true", 0, "5 passed", ""),
        (False, None, 0, "1 passed, 4 skipped", "{} is not installed; 'make test' installs it"),
        (False, "false", 0, "1 passed, 4 skipped", "{} is not installed; 'make test' installs it"),
        (False, "true", 1, "2 failed, 1 passed, 2 errors", "CI must test {}, and it is not installed."),
    ],
)
def test_missing_framework(
    tmp_path: Path, installed: bool, ci: str | None, exit_code: int, tally: str, reason: str
) -> None:
    run = run_pytest(tmp_path, installed=installed, ci=ci)
    assert run.returncode == exit_code, run.stdout + run.stderr
    assert tally in run.stdout.splitlines()[-1]
    for framework in FRAMEWORKS:
        assert reason.format(framework) in run.stdout
