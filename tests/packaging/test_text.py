"""What is published names no machine: no path of somebody's disk, no package registry's host."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATH = re.compile(r"(?<![\w.~$}-])/(?:home|root|tmp|work|opt|mnt|Users|usr/local)/\w")
REGISTRY = re.compile(
    r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian|download\.pytorch|conda\.anaconda)"
)


def offences(text: str) -> list[str]:
    """The lines that name a machine's path or a registry, with their numbers."""
    return [
        f"{number}: {line.strip()}"
        for number, line in enumerate(text.splitlines(), 1)
        if MACHINE_PATH.search(line) or REGISTRY.search(line)
    ]


def texts() -> dict[str, str]:
    """The tracked files, and those that are neither tracked nor ignored yet, that hold text."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("the tree is no git checkout, so that nothing says which files are published")
    found = {}
    for name in filter(None, run.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes()):
            found[name] = content.decode()
    return found


def test_no_text_names_a_machine() -> None:
    found = texts()
    assert {"pyproject.toml", "Makefile", ".ci/run", "spec/formats.py"} <= found.keys()
    bad = [f"{name}:{line}" for name, text in found.items() for line in offences(text)]
    assert not bad, "These lines name a machine's path or a registry's host:\n" + "\n".join(bad)


@pytest.mark.parametrize(
    "line",
    [
        "cd /" + "home/ann/hardmask",
        'open("/' + 'tmp/x.json")',
        "see /" + "work/notes.md",
        "from https://" + "pypi" + ".org/simple",
        "https://files." + "pythonhosted" + ".org/packages/a.whl",
    ],
)
def test_offences_are_seen(line: str) -> None:
    assert offences(f"first\n{line}\n") == [f"2: {line}"]


@pytest.mark.parametrize(
    "line", ["a/work/b", "https://example.org/home/ann", "error/budget", "#!/usr/bin/env bash", "$HOME/tmp/x"]
)
def test_innocent_text_is_left_alone(line: str) -> None:
    assert offences(line) == []
