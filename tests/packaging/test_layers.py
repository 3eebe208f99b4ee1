"""Dependencies point one way, and nothing heavy is loaded before it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("sympy", "torch", "jax", "scipy", "flint")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Apply the project's contracts to the packages that are imported from ``folder``."""
    command = [Path(sys.executable).with_name("lint-imports"), "--config", ROOT / "pyproject.toml", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def loaded(program: str, folder: Path) -> set[str]:
    """The top-level modules that are loaded when ``program`` ends."""
    command = [sys.executable, "-c", f"{program}\nimport sys\nprint('LOADED', *sys.modules)"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    last = run.stdout.splitlines()[-1].split()
    assert last[0] == "LOADED"
    return {name.partition(".")[0] for name in last[1:]}


def test_contracts_hold(tmp_path: Path) -> None:
    run = lint_imports(tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "3 kept, 0 broken" in run.stdout


@pytest.mark.parametrize(
    ("package", "line", "broken"),
    [
        ("spec", "from ..adapters import anything", "Dependencies point one way"),
        ("spec", "from ..conformance import anything", "Dependencies point one way"),
        ("adapters", "from ..conformance import anything", "Dependencies point one way"),
        ("spec", "def late():\n    import torch", "spec knows no backend"),
        ("conformance", "def late():\n    import jax.numpy", "Only adapters know the frameworks"),
    ],
)
def test_contracts_catch_an_import_the_wrong_way(tmp_path: Path, package: str, line: str, broken: str) -> None:
    for name in ("spec", "adapters", "conformance"):
        (tmp_path / "hardmask" / name).mkdir(parents=True)
        (tmp_path / "hardmask" / name / "__init__.py").write_text(line if name == package else "")
    run = lint_imports(tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "2 kept, 1 broken" in run.stdout
    verdict = next(text for text in run.stdout.splitlines() if text.startswith(broken))
    assert "BROKEN" in verdict


def test_import_is_light(tmp_path: Path) -> None:
    assert not loaded("import hardmask.conformance", tmp_path).intersection(HEAVY)


def test_help_is_light(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from hardmask.conformance.cli import main\n"
        "sys.argv = ['hardmask', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code"
    )
    assert not loaded(program, tmp_path).intersection(HEAVY)


def test_what_is_loaded_is_seen(tmp_path: Path) -> None:
    """The two tests above would pass for ever if ``loaded`` saw nothing."""
    assert "sympy" in loaded("import sympy", tmp_path)
