"""The rule of the shared conftest: a test of a missing framework is skipped for a user and fails in CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
import pytest

@pytest.mark.{framework}
def test_marked():
    pass

def test_asking(require):
    require("{framework}")
"""


def outcome(folder: Path, framework: str, *, installed: bool, ci: str | None) -> subprocess.CompletedProcess[str]:
    """Run a marked test and one that asks under a copy of the conftest, with a stand-in of the framework or none."""
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    (folder / "pytest.ini").write_text(f"[pytest]\nmarkers =\n    {framework}: needs it\n")
    (folder / "test_it.py").write_text(MODULE.format(framework=framework))
    if installed:
        (folder / f"{framework}.py").touch()
        (folder / "prepare.py").touch()
    else:
        (folder / "prepare.py").write_text(f"import sys\nsys.modules[{framework!r}] = None\n")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("CI", "PYTEST_"))}
    environment["PYTHONPATH"] = str(folder)
    if ci is not None:
        environment["CI"] = ci
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "prepare", "-p", "no:cacheprovider", "-p", "no:xdist"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("framework", ["torch", "jax"])
@pytest.mark.parametrize(
    ("installed", "ci", "exit_code", "said"),
    [
        (True, None, 0, "2 passed"),
        (True, "true", 0, "2 passed"),
        (False, None, 0, "2 skipped"),
        (False, "false", 0, "2 skipped"),
        (False, "true", 1, "is not installed. Run 'make test', which installs it."),
    ],
)
def test_missing_framework(
    tmp_path: Path, framework: str, installed: bool, ci: str | None, exit_code: int, said: str
) -> None:
    run = outcome(tmp_path, framework, installed=installed, ci=ci)
    assert run.returncode == exit_code, run.stdout + run.stderr
    assert said in run.stdout
    if not installed:
        assert f"{framework}" in run.stdout
