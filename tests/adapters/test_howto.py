"""Every snippet of docs/howto-adapter.md, executed: the files are written, the targets are resolved and called."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hardmask.adapters import Answer, Subject, resolve
from hardmask.conformance.certification import Request, certify
from hardmask.spec.formats import FORMATS

PAGE = (Path(__file__).parents[2] / "docs" / "howto-adapter.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.M | re.S)
FILES = {code.split("\n")[0].removeprefix("# "): code for kind, code in BLOCKS if kind in ("python", "toml")}
COMMANDS = [line.removeprefix("$ ") for kind, code in BLOCKS if kind == "console" for line in code.splitlines()]

MASK = np.array([[True, True, False], [False, False, False]])


def needs(command: str) -> list[pytest.MarkDecorator]:
    named = [part.partition(":")[0] for part in shlex.split(command)]
    return [
        mark
        for word, mark in (("torch", pytest.mark.torch), ("jax", pytest.mark.jax))
        if any(f"import {word}\n" in FILES.get(name, "") for name in named)
    ]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with all the files of the page, and the package of its last section installed."""
    for name, code in FILES.items():
        (tmp_path / name).write_text(code)
    info = tmp_path / "mypackage-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mypackage\nVersion: 1.0\n")
    registered = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]["hardmask.adapters"]
    lines = "\n".join(f"{name} = {value}" for name, value in registered.items())
    (info / "entry_points.txt").write_text(f"[hardmask.adapters]\n{lines}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    yield tmp_path
    for name in list(sys.modules):
        if name.startswith("hardmask_target_") or f"{name}.py" in FILES:
            del sys.modules[name]


def test_the_page_names_its_files_and_uses_each() -> None:
    assert len(FILES) == len([kind for kind, _ in BLOCKS if kind != "console"])
    assert {kind for kind, _ in BLOCKS} == {"python", "toml", "console"}
    for name in FILES:
        assert name == "pyproject.toml" or any(name.removesuffix(".py") in command for command in COMMANDS), name


@pytest.mark.parametrize("command", [pytest.param(c, marks=needs(c)) for c in COMMANDS])
def test_a_command_of_the_page(command: str) -> None:
    program, verb, *targets = shlex.split(command)
    assert (program, verb) == ("hardmask", "certify")
    found = resolve(targets)
    assert len(found) == len(targets)
    for subject in found:
        check(subject)
    # One dtype is enough here: the runner's own tests run the others.
    request = Request(tuple(targets), dtypes=("float32",), effort="smoke")
    report = certify(request)
    assert report.exit_code == (1 if targets == ["mine.py:softmax"] else 0), report.reason


def check(subject: Subject) -> None:
    """Two equal scores get one half each, the empty row keeps the contract, and derivatives are right."""
    for dtype in subject.dtypes:
        scores = np.zeros(MASK.shape, FORMATS[dtype].dtype)
        vector = np.array([[1, 0, 0], [1, 0, 0]], scores.dtype)
        with np.errstate(all="ignore"):
            answer = subject.forward(scores, MASK)
            derived = [f(scores, MASK, vector) for f in (subject.vjp, subject.jvp) if f is not None]
        weights = answer
        if isinstance(answer, Answer):
            weights = answer.weights
            assert subject.contract == "zero+valid"
            assert answer.valid is not None
            assert answer.valid.tolist() == [True, False]
        assert isinstance(weights, np.ndarray)
        assert weights.dtype == scores.dtype
        assert weights[0].tolist() == [0.5, 0.5, 0]
        empty = weights[1].astype(np.float64)
        assert np.isnan(empty).all() if nan_expected(subject) else (empty == 0).all()
        for values in derived:
            assert values[0].tolist() == [0.25, -0.25, 0]
        with np.errstate(all="ignore"):
            none = subject.forward(scores[:, :0], MASK[:, :0])
        assert (none.weights if isinstance(none, Answer) else none).shape == (2, 0)


def nan_expected(subject: Subject) -> bool:
    """The plain function of the page's first section does not keep the contract that it is taken to promise."""
    return subject.contract == "nan" or subject.id == "mine.softmax"


def test_the_plain_function_passes_under_the_contract_that_it_keeps() -> None:
    assert "--contract nan" in PAGE
    report = certify(Request(("mine.py:softmax",), contract="nan", dtypes=("float32",), effort="smoke"))
    assert report.exit_code == 0, report.reason


def test_the_table_of_fields_is_complete_and_right() -> None:
    rows = dict(re.findall(r"^\| `(\w+)[^|]*\|.*\| ([^|]*) \|$", PAGE, re.M))
    plain = Subject("a", lambda scores, mask: scores)
    assert rows.keys() == {"vjp", "jvp", "dtypes", "contract", "tier", "model", "promises", "unsupported", "role"} | {
        "any_axis",
        "tier_other_axis",
        "opt_in",
    }
    assert rows["dtypes"] == ", ".join(f"`{d}`" for d in plain.dtypes)
    assert rows["contract"] == f"`{plain.contract}`"
    assert rows["role"] == f"`{plain.role}`"
    assert (
        rows["tier"] == f"`{plain.tier_for('forward', 'float32')}`; `{plain.tier_for('vjp', 'float16')}` for the halves"
    )
    assert {rows[f] for f in ("vjp", "jvp", "model", "promises", "unsupported", "tier_other_axis", "opt_in")} == {
        "none"
    }
    assert (plain.vjp, plain.jvp, plain.promises, plain.unsupported) == (None, None, frozenset(), {})
    assert plain.model == plain.tier_other_axis == {}
    assert rows["any_axis"] == f"`{plain.any_axis}`"
    assert plain.opt_in == ""
