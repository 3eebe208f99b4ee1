"""The wheel holds the three folders, whole and alone, and works where nothing else of the project is."""

from __future__ import annotations

import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
FOLDERS = ("spec", "adapters", "conformance")
FILES = (*FOLDERS, "pyproject.toml", "setup.py", "README.md", "LICENSE")


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command that must succeed, far from any setting that could reach back into the checkout."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST_"))}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command} exited with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def published() -> list[str]:
    """The files of the three folders and of the packaging that git tracks, or would."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *FILES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the tree is no git checkout, so that nothing says which files are published")
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what is published.

    A data file in a folder without ``__init__`` is added, and the modules are compiled: the first must be shipped, the
    byte code must not.
    """
    folder = tmp_path_factory.mktemp("tree")
    for name in published():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "spec" / "data" / "deeper").mkdir(parents=True)
    (folder / "spec" / "data" / "deeper" / "values.json").write_text("{}")
    run(sys.executable, "-m", "compileall", "-q", *FOLDERS, cwd=folder)
    return folder


@pytest.fixture(scope="module")
def wheel(tree: Path) -> Path:
    """The wheel that is built from the tree, as ``pip install .`` does."""
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", "direct", ".", cwd=tree)
    (built,) = (tree / "direct").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a fresh environment that holds the wheel and the distributions that it requires, no others."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=False)
    interpreter = environment / "bin" / "python"
    (site,) = (environment / "lib").glob("python*/site-packages")
    for name in required(wheel):
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(distribution.locate_file(top))))
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        interpreter,
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        wheel,
        cwd=site,
    )
    return interpreter


def required(wheel: Path) -> set[str]:
    """The names of the distributions that the wheel requires without any extra, theirs included."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = importlib.metadata.PathDistribution(zipfile.Path(archive, name.rpartition("/")[0] + "/"))
        waiting = list(metadata.requires or ())
    names: set[str] = set()
    while waiting:
        requirement = Requirement(waiting.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name not in names:
            names.add(requirement.name)
            waiting.extend(importlib.metadata.requires(requirement.name) or ())
    return names


def contents(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def test_wheel_holds_the_folders_and_nothing_else(wheel: Path) -> None:
    held = {name for name in contents(wheel) if ".dist-info/" not in name}
    expected = {f"hardmask/{name}" for name in published() if name.startswith(FOLDERS)}
    assert held == expected | {"hardmask/spec/data/deeper/values.json"}
    assert {f"hardmask/{folder}/py.typed" for folder in FOLDERS} <= held


def test_the_source_distribution_gives_the_same_wheel(tree: Path, wheel: Path) -> None:
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "release", ".", cwd=tree)
    (released,) = (tree / "release").glob("*.whl")
    assert sorted(contents(released)) == sorted(contents(wheel))


def test_wheel_carries_its_licence_and_version(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (licence,) = (name for name in archive.namelist() if name.endswith("/licenses/LICENSE"))
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()
    source = (ROOT / "conformance" / "__init__.py").read_text()
    assert f'__version__ = "{wheel.name.split("-")[1]}"' in source


def test_the_wheel_is_what_is_imported(python: Path, tmp_path: Path) -> None:
    program = (
        "import json, hardmask.spec, hardmask.adapters, hardmask.conformance\n"
        "print(json.dumps([hardmask.spec.__file__, hardmask.adapters.__file__, hardmask.conformance.__file__]))"
    )
    files = [Path(file) for file in json.loads(run(python, "-c", program, cwd=tmp_path))]
    assert all(file.is_relative_to(python.parents[1]) for file in files), files


def test_the_environment_holds_only_what_is_required(python: Path, tmp_path: Path) -> None:
    program = (
        "import importlib.util as u\nprint([m for m in ('torch', 'jax', 'scipy', 'flint', 'pytest') if u.find_spec(m)])"
    )
    assert run(python, "-c", program, cwd=tmp_path).strip() == "[]"


def test_the_command_helps(python: Path, tmp_path: Path) -> None:
    said = run(python.with_name("hardmask"), "--help", cwd=tmp_path)
    assert "certify" in said


def test_the_command_certifies_numpy(python: Path, tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.json"
    run(python.with_name("hardmask"), "certify", "numpy", "--effort", "smoke", "--out", certificate, cwd=tmp_path)
    written = json.loads(certificate.read_text())
    assert written["complete"] is True
    assert written["subjects"]
    assert written["findings"]
