"""The action, the job and the hook: each valid to its service, and their steps run in a shell."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from hardmask.conformance.certificate import read
from hardmask.conformance.cli import main

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "howto-gate.md").read_text()

FILES = {
    "action.yml": ("check_jsonschema", "--builtin-schema", "vendor.github-actions"),
    ".github/workflows/hardmask.yml": ("check_jsonschema", "--builtin-schema", "vendor.github-workflows"),
    ".gitlab-ci.yml": ("check_jsonschema", "--builtin-schema", "vendor.gitlab-ci"),
    ".pre-commit-hooks.yaml": ("pre_commit", "validate-manifest"),
    ".pre-commit-config.yaml": ("pre_commit", "validate-config"),
}


def content(name: str) -> str:
    """A file of the repository, or one that the guide shows."""
    if (ROOT / name).exists():
        return (ROOT / name).read_text()
    return PAGE.partition(f"```yaml\n# {name}\n")[2].partition("```")[0]


def loaded(name: str) -> Any:
    return YAML(typ="safe").load(content(name))


@pytest.mark.parametrize(("name", "linter"), FILES.items())
def test_it_is_valid_to_its_service(name: str, linter: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / Path(name).name
    file.write_text(content(name))
    assert file.read_text().strip(), name
    command = [sys.executable, "-m", *linter, str(file)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_guide_uses_what_the_action_offers() -> None:
    action = loaded("action.yml")
    steps = loaded(".github/workflows/hardmask.yml")["jobs"]["certify"]["steps"]
    used = next(s["with"] for s in steps if "hardmask@" in s["uses"])
    assert set(used) <= set(action["inputs"])
    for name in (*action["inputs"], *action["outputs"]):
        assert f"`{name}`" in PAGE, name
    hook = loaded(".pre-commit-hooks.yaml")[0]
    assert loaded(".pre-commit-config.yaml")["repos"][0]["hooks"][0]["id"] == hook["id"]


def test_no_step_puts_an_input_into_its_script() -> None:
    """What is written into a script by the service would be run."""
    for step in loaded("action.yml")["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def step(name: str) -> str:
    (script,) = (s["run"] for s in loaded("action.yml")["runs"]["steps"] if s.get("name") == name)
    return str(script)


def run(script: str, folder: Path, **inputs: str) -> tuple[subprocess.CompletedProcess[str], str, dict[str, str]]:
    """A step in a shell as the service starts it: what it printed, the job summary, the outputs."""
    bin = folder / "bin"
    bin.mkdir(exist_ok=True)
    if not (bin / "python").exists():
        (bin / "python").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        (bin / "python").chmod(0o755)
    summary, output = folder / "summary.md", folder / "output"
    summary.write_text("")
    output.write_text("")
    env = os.environ | {
        "PATH": f"{bin}:{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(output),
        **{f"HARDMASK_{key}": value for key, value in inputs.items()},
    }
    command = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script]
    result = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return result, summary.read_text(), outputs


INPUTS = {"TARGETS": "", "CONFIG": "", "EFFORT": "", "CERTIFICATE": "hardmask-certificate.json", "JUNIT": ""}


def test_the_action_certifies_and_writes_the_summary(tmp_path: Path) -> None:
    config = 'targets = ["numpy.softmax-where"]\neffort = "smoke"\ndtypes = ["float32"]\n'
    (tmp_path / "hardmask.toml").write_text(config)
    result, summary, outputs = run(step("Certify"), tmp_path, **INPUTS | {"JUNIT": "j.xml"})
    assert result.returncode == 0, result.stdout + result.stderr
    assert outputs == {"exit-code": "0", "certificate": "hardmask-certificate.json"}
    assert "numpy.softmax-where" in summary
    assert [s.id for s in read(tmp_path / "hardmask-certificate.json").subjects] == ["numpy.softmax-where"]
    assert (tmp_path / "j.xml").read_text().startswith("<?xml")


def test_the_action_fails_as_certify_does(tmp_path: Path) -> None:
    more = {"TARGETS": "numpy.softmax-where\n  numpy.replace-m?n", "EFFORT": "smoke"}
    (tmp_path / "numpy.replace-mxn").write_text("a pattern is for hardmask, not for the shell")
    result, summary, outputs = run(step("Certify"), tmp_path, **INPUTS | more)
    assert (result.returncode, outputs["exit-code"]) == (1, "1")
    assert "Not certified: numpy.replace-min." in result.stdout
    assert "numpy.replace-min" in summary
    hostile = {"TARGETS": "$(touch${IFS}pwned) `touch pwned` --help; touch pwned"}
    result, _, outputs = run(step("Certify"), tmp_path, **INPUTS | hostile)
    assert (result.returncode, outputs["exit-code"]) == (2, "2")
    assert not (tmp_path / "pwned").exists()


def test_the_action_installs_the_framework_before_hardmask(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text('#!/bin/sh\nfor a in "$@"; do printf "<%s>" "$a"; done; echo\n')
    (tmp_path / "bin" / "python").chmod(0o755)
    result, _, _ = run(step("Install hardmask"), tmp_path, SOURCE="/the action", PACKAGES="torch==2.*\n  numpy")
    assert result.stdout == ("<-m><pip><install><torch==2.*><numpy>\n<-m><pip><install></the action>\n"), (
        result.stdout + result.stderr
    )
    result, _, _ = run(step("Install hardmask"), tmp_path, SOURCE="/the action", PACKAGES=" \n")
    assert result.stdout == "<-m><pip><install></the action>\n"


def test_the_hook_and_the_job_call_commands_that_there_are() -> None:
    for line in (loaded(".pre-commit-hooks.yaml")[0]["entry"], loaded(".gitlab-ci.yml")["hardmask"]["script"][1]):
        program, command, *arguments = shlex.split(line)
        assert program == "hardmask"
        options = {name for p in main.commands[command].params for name in p.opts}
        assert {a for a in arguments if a.startswith("--")} <= options
