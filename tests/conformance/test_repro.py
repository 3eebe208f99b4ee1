"""``hardmask repro``: a failure as a script that runs without hardmask, and shows what it says."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.conformance.certificate import write
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.document import Certificate
from hardmask.conformance.finding import Finding
from hardmask.conformance.replay import failing
from hardmask.conformance.repro import script
from hardmask.conformance.repro.literals import number
from hardmask.conformance.terminal.witness import failures

GUARD = """
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "hardmask":
            raise ImportError("hardmask is not for scripts")


sys.meta_path.insert(0, Refuse())
"""


def certified(targets: Sequence[str], dtype: str = "float32") -> Certificate:
    return certify(Request(tuple(targets), contract="zero", effort="smoke", dtypes=(dtype,))).certificate


def executed(text: str, folder: Path) -> tuple[int, str]:
    """Exit code and output of a script in a process of its own, where hardmask cannot be imported."""
    file = folder / "script.py"
    file.write_text(GUARD + text)
    result = subprocess.run([sys.executable, "-I", str(file)], capture_output=True, text=True, timeout=300, check=False)
    return result.returncode, result.stdout + result.stderr


def shown(certificate: Certificate) -> list[tuple[Finding, str]]:
    """One script of every subject and diagnosis for which there is one."""
    found = []
    for group in failures(certificate):
        for f in group:
            try:
                found.append((f, script(certificate, f)))
            except ValueError:
                continue
            break
    return found


def holds(certificate: Certificate, folder: Path) -> list[str]:
    """Runs every script; returns the subjects and diagnoses that were shown."""
    names = []
    for f, text in shown(certificate):
        code, output = executed(text, folder)
        assert code == 1, f"{f.subject}, {f.diagnosis}: {output}"
        assert "The fault shows: " in output
        assert "Traceback" not in output
        assert len(text.splitlines()) <= 45
        names.append(f"{f.subject}: {f.diagnosis}")
    return names


@pytest.fixture(scope="module")
def numpy_certificate() -> Certificate:
    return certified(["numpy.unguarded-inf", "numpy.additive-1e9", "numpy.additive-min", "numpy.attention[-inf]"])


def test_failures_of_numpy_show_without_hardmask(numpy_certificate: Certificate, tmp_path: Path) -> None:
    names = holds(numpy_certificate, tmp_path)
    assert "numpy.unguarded-inf: NaN" in names
    assert "numpy.additive-1e9: raw softmax" in names
    assert "numpy.additive-1e9: leak" in names
    assert "numpy.attention[-inf]: NaN" in names


CORRECT = """
def forward(scores, mask):
    safe = np.where(mask, scores, -np.inf)
    top = np.max(safe, axis=-1, keepdims=True, where=mask, initial=-np.inf)
    e = np.where(mask, np.exp(safe - np.where(np.isfinite(top), top, 0)), 0)
    return np.divide(e, e.sum(-1, keepdims=True), out=np.zeros_like(e), where=mask.any(-1, keepdims=True))


run = forward
"""


def test_a_correct_function_in_its_place_shows_nothing(numpy_certificate: Certificate, tmp_path: Path) -> None:
    found = [text for f, text in shown(numpy_certificate) if "attention" not in f.subject]
    assert len(found) >= 4
    for text in found:
        assert "\nrun = forward\n" in text
        code, output = executed(text.replace("\nrun = forward\n", CORRECT, 1), tmp_path)
        assert code == 0, output
        assert "The fault does not show." in output


def test_a_function_of_the_user_is_run_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n\ndef softmax(s, m):\n    e = np.exp(np.where(m, s, -np.inf))\n"
        "    return e / e.sum(-1, keepdims=True)\n"
    )
    certificate = certified([f"{tmp_path}/mine.py:softmax"])
    found = shown(certificate)
    assert {f.diagnosis for f, _ in found} >= {"NaN"}
    for _, text in found:
        code, output = executed(text, tmp_path)
        assert code == 1, output


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["repro", *arguments], catch_exceptions=False)
    return result.exit_code, result.output


def test_the_command_writes_a_file_or_prints(numpy_certificate: Certificate, tmp_path: Path) -> None:
    write(numpy_certificate, tmp_path / "c.json")
    f, text = shown(numpy_certificate)[0]
    code, printed = run(str(tmp_path / "c.json"), f.id)
    assert (code, printed) == (0, text)
    code, printed = run(str(tmp_path / "c.json"), f.id[:10], "--out", str(tmp_path / "s.py"))
    assert (code, printed) == (0, "")
    assert (tmp_path / "s.py").read_text() == text


def test_what_did_not_fail_is_refused(numpy_certificate: Certificate, tmp_path: Path) -> None:
    write(numpy_certificate, tmp_path / "c.json")
    f = next(f for f in numpy_certificate.findings if f.verdict == "pass")
    code, text = run(str(tmp_path / "c.json"), f.id)
    assert code == 2
    assert "only a failure can be shown by a script" in text


def test_every_refusal_is_a_sentence(numpy_certificate: Certificate) -> None:
    refusals = {}
    for f in failing(numpy_certificate):
        try:
            compile(script(numpy_certificate, f), "script", "exec")
        except ValueError as problem:
            refusals[f.id] = str(problem)
    assert all(id in sentence for id, sentence in refusals.items())
    assert len(refusals) < len(failing(numpy_certificate)) / 2


def test_numbers_are_exact() -> None:
    rng = np.random.default_rng(0)
    values = [
        *rng.normal(size=50),
        *rng.normal(size=50).astype(np.float32).tolist(),
        0.0,
        -0.0,
        5e-324,
        np.inf,
        -np.inf,
    ]
    for x in values:
        back = eval(number(float(x)), {"np": np})
        assert (back, np.signbit(back)) == (x, np.signbit(x))
    assert np.isnan(eval(number(float("nan")), {"np": np}))
