"""Audits of runs: nothing changes by itself, one bit is found, and two interpreters are told apart."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from hardmask.conformance.certificate import read
from hardmask.conformance.cli import main
from hardmask.conformance.upgrades import compare

VALUES = "Proofs.Autograd.HardMaskedSoftmax.spec_eq_weights"

WRAPPER = """\
from dataclasses import replace

import numpy as np

from hardmask.adapters.registry import resolve

(good,) = resolve(["{target}"])


def flipping(bits):
    left = bits

    def forward(scores, mask):
        nonlocal left
        answer = good.forward(scores, mask)
        weights = np.array(getattr(answer, "weights", answer))
        middling = np.argwhere((weights > 0.1) & (weights < 0.4))
        if left and len(weights) > 20 and len(middling):
            left -= 1
            weights.view(np.uint32)[tuple(middling[0])] ^= 1
        return weights

    return replace(
        good, id="mine.softmax", adapter="user", forward=forward, vjp=None, jvp=None, any_axis=False, contract="zero",
        promises=frozenset(),
    )


plain, flipped = flipping(0), flipping(1)
"""

KERNEL = """\
import sys

import numpy as np


def softmax(scores, mask):
    top = np.max(scores, axis=-1, keepdims=True, where=mask, initial=-np.inf)
    if "newer" in sys.prefix:
        e = np.exp(np.where(mask, scores, -np.inf) - top)
        return e / e.sum(axis=-1, keepdims=True)
    e = np.exp(scores - top, where=mask, out=np.zeros_like(scores))
    total = e.sum(axis=-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total > 0)
"""


def hardmask(*arguments: object) -> Result:
    """One run of the command line, which must not end in a traceback."""
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize(
    "target",
    [
        "numpy.fill-inf",
        pytest.param("torch.softmax-where", marks=pytest.mark.torch),
        pytest.param("torch.sdpa[math]", marks=pytest.mark.torch),
        pytest.param("jax.softmax-where[jit]", marks=pytest.mark.jax),
    ],
)
def test_two_runs_with_one_seed_differ_in_their_times_alone(target: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("old.json", "new.json")]
    for file in files:
        hardmask("certify", target, "--effort", "smoke", "--dtype", "float32", "--out", file)
    old, new = (json.loads(file.read_bytes()) for file in files)
    assert old.pop("times") is not new.pop("times")
    assert json.dumps(old) == json.dumps(new)
    assert compare(*map(read, files)).identical
    result = hardmask("audit", *files, "--fail-on", "bits")
    assert result.exit_code == 0
    assert "Identical" in result.output


@pytest.mark.parametrize(
    "target", ["numpy.softmax-where", pytest.param("torch.softmax-where", marks=pytest.mark.torch)]
)
def test_one_bit_of_one_output_is_named(target: str, tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper.py"
    wrapper.write_text(WRAPPER.format(target=target))
    files = []
    for name in ("plain", "flipped"):
        files.append(tmp_path / f"{name}.json")
        options = ("--effort", "smoke", "--dtype", "float32", "--jobs", 1, "--out", files[-1])
        assert hardmask("certify", f"{wrapper}:{name}", *options).exit_code == 0, "the bit is within the budget"
    (change,) = [c for c in compare(*map(read, files)).changes if c.kind == "outputs"]
    (place,) = change.places
    assert (place.subject, place.quantity, place.dtype) == ("mine.softmax", "weights", "float32")
    assert VALUES in place.declarations
    assert change.note == "the verdicts on them are as they were"
    result = hardmask("audit", *files, "--fail-on", "bits")
    assert result.exit_code == 1
    shown = " ".join(result.output.split())
    for name in ("mine.softmax", "spec_eq_weights", place.family, "other bits (1 of"):
        assert name in shown
    assert hardmask("audit", *files).exit_code == 0, "one bit within the budget is no regression by default"


@pytest.fixture(scope="session")
def interpreters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two interpreters of their own, which have NumPy and nothing else."""
    made = []
    for name in ("older", "newer"):
        folder = tmp_path_factory.mktemp(name) / name
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        (site,) = folder.glob("lib/python*/site-packages")
        package = Path(np.__file__).parent
        for part in (package, *package.parent.glob("numpy.libs"), *package.parent.glob("numpy-*.dist-info")):
            (site / part.name).symlink_to(part)
        made.append(folder / "bin" / "python")
    return made[0], made[1]


def test_two_interpreters_run_the_same_rows(interpreters: tuple[Path, Path], tmp_path: Path) -> None:
    kernel, kept = tmp_path / "kernel.py", tmp_path / "kept"
    kernel.write_text(KERNEL)
    old, new = interpreters
    options = ("--effort", "smoke", "--dtype", "float32", "--seed", 3)
    result = hardmask("audit", f"{kernel}:softmax", "--python", old, "--python", new, *options, "--out-dir", kept)
    assert result.exit_code == 1
    assert "pass → fail: NaN" in result.output
    assert "on the very same rows" in " ".join(result.output.split())
    certificates = [read(kept / name) for name in ("old.json", "new.json")]
    assert [c.seed for c in certificates] == [3, 3]
    assert [c.subjects[0].verdict for c in certificates] == ["pass", "fail"]
    again = hardmask("audit", kept / "old.json", kept / "new.json")
    assert again.output == result.output
    same = hardmask("audit", f"{kernel}:softmax", "--python", old, "--python", old, *options, "--fail-on", "bits")
    assert same.exit_code == 0
    assert "Identical" in same.output


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["numpy", "--python", sys.executable], "Name two interpreters"),
        (["numpy", "--python", sys.executable, "--python", "no/such/python"], "no/such/python"),
        (["numpi", "--python", sys.executable, "--python", sys.executable], "There is no target 'numpi'"),
        (["a.json", "b.json", "--seed", "3"], "--seed is for a run in two interpreters"),
        (["a.json", "b.json", "--dtype", "float32"], "--dtype is for a run in two interpreters"),
        (["a.json", "b.json", "c.json"], "compares two certificates, and 3 are named"),
        (
            ["numpy", "--python", sys.executable, "--python", sys.executable, "--effort", "huge"],
            "There is no effort 'huge'",
        ),
        (
            ["numpy", "--python", sys.executable, "--python", sys.executable, "--out-dir", "no/such/folder"],
            "cannot be made",
        ),
    ],
)
def test_what_is_asked_for_wrongly_gets_a_sentence(
    arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = hardmask("audit", *arguments)
    assert result.exit_code == 2
    assert sentence in result.output
