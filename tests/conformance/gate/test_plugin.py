"""The pytest plugin, in sessions of its own: the verdicts of certify, as tests."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.finding import combine
from hardmask.conformance.terminal.matrix import short_name

pytest_plugins = "pytester"

KERNEL = """
import os
import numpy as np

def softmax(scores):
    with np.errstate(all="ignore"):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        return (e / e.sum(axis=-1, keepdims=True)).astype(scores.dtype)

def filled(scores, mask):
    with open(os.path.join(os.path.dirname(__file__), "calls"), "a") as log:
        log.write(f"{os.getpid()}\\n")
    return softmax(np.where(mask, scores, scores.dtype.type(-1e9)))

def dead(scores, mask):
    raise RuntimeError("no device")
"""

KNOWN = """
targets = ["kernel.py:filled"]
effort = "smoke"
dtypes = ["float32"]

[[deviation]]
subject = "kernel.filled"
declarations = ["extension:empty-row", "getScalar_hardMaskedSoftmaxVecSpec", "spec_eq_weights", "*_mem_Icc"]
reason = "Empty rows are uniform."
expires = 2099-06-30

[[deviation]]
subject = "kernel.filled"
declaration = "*_blocked_eq_zero"
reason = "The same rows."
expires = 2099-06-30
"""

EMPTY_ROW = "hardmask::kernel.filled::extension:empty-row"
SMOKE = ("--hardmask-effort", "smoke", "--hardmask-dtype", "float32")


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Any:
    """``session(*options)``: run pytest in a folder with a kernel and a test of the user's own."""
    pytester.path.joinpath("kernel.py").write_text(KERNEL)
    pytester.makepyfile(test_own="def test_own():\n    pass\n")
    # As the entry point does, whatever else is installed beside it.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    load = ("-p", "hardmask.conformance.pytest_plugin", "-p", "xdist", "-p", "no:cacheprovider")
    return lambda *options: pytester.runpytest_subprocess(*load, *options)


def test_the_entry_point_names_the_plugin() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"hardmask": "hardmask.conformance.pytest_plugin"}


def test_one_test_for_each_subject_and_declaration_with_the_verdicts_of_certify(session: Any) -> None:
    result = session("--hardmask", "kernel.py:filled", "--hardmask", "numpy.fill-inf", *SMOKE, "-v", "--junitxml=j.xml")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"{EMPTY_ROW} FAILED*", "*diagnosis  uniform*", "*returned  *0.5*0.5*"])
    result.stdout.fnmatch_lines(["*Not certified: kernel.filled."])
    request = Request(("kernel.py:filled", "numpy.fill-inf"), effort="smoke", dtypes=("float32",))
    certificate = certify(request, minimise=False).certificate
    cells: dict[str, list[Any]] = {}
    for f in certificate.findings:
        cells.setdefault(f"hardmask.{f.subject}:{short_name(f.declaration)}", []).append(f.verdict)
    told: dict[str, str] = {}
    for case in ElementTree.parse("j.xml").iter("testcase"):
        kinds = [child.tag for child in case if child.tag in ("failure", "skipped", "error")]
        told[f"{case.get('classname')}:{case.get('name')}"] = kinds[0] if kinds else "passed"
    expected = {"fail": "failure", "pass": "passed", "permitted": "passed"}
    assert set(told) == {*cells, "hardmask:verdict", "test_own:test_own"}
    assert {name: told[name] for name in cells} == {
        name: expected.get(combine(verdicts), "skipped") for name, verdicts in cells.items()
    }
    assert len(set(told.values())) == 3


def test_known_deviations_are_expected_failures_and_stale_ones_fail(session: Any) -> None:
    Path("hardmask.toml").write_text(KNOWN)
    result = session("--hardmask-config", "hardmask.toml", "-rxX")
    assert result.ret == 0
    outcomes = result.parseoutcomes()
    assert (outcomes["xfailed"], outcomes.get("failed", 0)) == (6, 0)
    result.stdout.fnmatch_lines([f"XFAIL {EMPTY_ROW} - Empty rows are uniform. (known until 2099-06-30)"])
    fixed = KNOWN.replace('"*_mem_Icc"', '"*_mem_Icc", "extension:row-sum"')
    Path("hardmask.toml").write_text(
        fixed.replace('blocked_eq_zero"\n', 'blocked_eq_zero"\n').replace("2099", "2020", 1)
    )
    result = session("--hardmask-config", "hardmask.toml", "-rf")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*of kernel.filled on extension:empty-row expired on 2020-06-30*"])
    result.stdout.fnmatch_lines([f"FAILED {EMPTY_ROW}*", "FAILED hardmask::deviations*", "FAILED hardmask::verdict*"])
    Path("hardmask.toml").write_text(fixed)
    result = session("--hardmask-config", "hardmask.toml", "-rf")
    assert result.parseoutcomes()["failed"] == 2
    result.stdout.fnmatch_lines(["*of kernel.filled on extension:row-sum is fixed*"])


def test_processes_judge_once(session: Any) -> None:
    result = session("--hardmask", "kernel.py:filled", *SMOKE, "-n", "2", "-rf")
    assert result.ret == 1
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 7, "six declarations and the verdict"
    result.stdout.fnmatch_lines(["*Not certified: kernel.filled."])
    assert len(set(Path("calls").read_text().split())) == 1


def test_collection_and_selection_judge_no_more_than_they_need(session: Any) -> None:
    result = session("--hardmask", "kernel.py:filled", *SMOKE, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["test_own.py::test_own", EMPTY_ROW, "hardmask::verdict"])
    assert not Path("calls").exists()
    result = session("--hardmask", "kernel.py:filled", "--hardmask", "numpy", *SMOKE, "-k", "fill-inf and row-sum")
    assert (result.ret, result.parseoutcomes()["passed"]) == (0, 1)
    assert not Path("calls").exists(), "no test of it was selected"


def test_an_error_is_an_error_of_the_test(session: Any) -> None:
    result = session("--hardmask", "kernel.py:dead", *SMOKE, "-k", "dead and row-sum")
    assert result.ret == 1
    assert result.parseoutcomes()["errors"] == 1
    result.stdout.fnmatch_lines(["*RuntimeError: no device*"])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--hardmask", "nunpy", "-n", "1"), "There is no target 'nunpy'. Did you mean 'numpy'?"),
        (("--hardmask", "nunpy"), "There is no target 'nunpy'. Did you mean 'numpy'?"),
        (("--hardmask", "numpy", "--hardmask-effort", "heroic"), "There is no effort 'heroic'."),
        (("--hardmask-config", "none.toml"), "The configuration 'none.toml' cannot be read"),
    ],
)
def test_a_mistake_is_a_sentence(session: Any, options: tuple[str, ...], sentence: str) -> None:
    result = session(*options)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{sentence}*"])
    assert "INTERNALERROR" not in result.stdout.str()
    assert "Traceback" not in result.stderr.str()


def test_without_its_options_it_loads_nothing() -> None:
    code = (
        "import sys, hardmask.conformance.pytest_plugin;"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'numpy', 'msgspec', 'click', 'sympy', 'rich'}))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
