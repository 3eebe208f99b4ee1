"""The command line: exit codes, sentences, files, and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from hardmask.conformance import __version__
from hardmask.conformance.certificate import read
from hardmask.conformance.cli import main

GOOD = """
from hardmask.adapters.numpy_rows import softmax_where

def softmax(scores, mask):
    return softmax_where(scores, mask).weights

def doubled(scores, mask):
    return softmax(scores, mask) * 2

def raising(scores, mask):
    raise RuntimeError("no device")

def stopping(scores, mask):
    raise KeyboardInterrupt
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A file with functions of a user's own."""
    file = tmp_path / "mine.py"
    file.write_text(GOOD)
    return file


def hardmask(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(a) for a in arguments])


def smoke(target: str | Path, *more: str | Path) -> Result:
    return hardmask("certify", target, "--effort", "smoke", "--dtype", "float32", *more)


def test_a_conforming_subject_exits_0(mine: Path) -> None:
    result = smoke(f"{mine}:softmax")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("Certified: every subject keeps what it declares.\n")
    assert "Seed 0, effort smoke" in result.stdout


@pytest.mark.parametrize(("name", "diagnosis"), [("doubled", "not normalised"), ("raising", "RuntimeError")])
def test_a_failing_subject_exits_1_and_shows_why(name: str, diagnosis: str, mine: Path) -> None:
    result = smoke(f"{mine}:{name}")
    assert result.exit_code == 1
    assert result.stdout.endswith(f"Not certified: mine.{name}.\n")
    assert diagnosis in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nunpy"], "There is no target 'nunpy'. Did you mean 'numpy'?"),
        (["numpy.softmax-were"], "There is no target 'numpy.softmax-were'. Did you mean 'numpy.softmax-where'"),
        (["numpy.none*"], "No subject matches 'numpy.none*'. Run 'hardmask list' to see the ids."),
        (
            ["numpy", "--dtype", "float8"],
            "There is no dtype 'float8'. Choose from: float64, float32, float16, bfloat16.",
        ),
        (["numpy", "--effort", "heroic"], "There is no effort 'heroic'. Choose from: smoke, default, deep."),
        (
            ["numpy", "--contract", "mean"],
            "There is no empty-row contract 'mean'. Choose one of: zero, zero+valid, nan,",
        ),
        (["numpy", "--require", "speed"], "There is no requirement 'speed'. Choose from: zero, complete, isolation,"),
        (["nowhere.py:softmax"], "nowhere.py"),
        (["mine.py"], "'mine.py' names a file but no object in it. Write 'mine.py:NAME'."),
    ],
)
def test_a_wrong_request_exits_2_with_one_sentence(arguments: list[str], sentence: str) -> None:
    result = hardmask("certify", *arguments)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--rounds", "0"], ["--jobs", "0"], ["--nonsense"]])
def test_click_refuses_what_it_can_see(arguments: list[str]) -> None:
    assert hardmask("certify", "numpy", *arguments).exit_code == 2
    assert hardmask("certify").exit_code == 2


def test_the_certificate_holds_the_request(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    result = smoke(f"{mine}:softmax", "--seed", "11", "--contract", "nan", "--require", "complete", "--out", out)
    assert result.exit_code == 1  # it returns zeros, and has no derivatives
    certificate = read(out)
    assert certificate.seed == 11
    assert certificate.request == {
        "targets": [f"{mine}:softmax"],
        "specimens": False,
        "effort": "smoke",
        "rounds": None,
        "dtypes": ["float32"],
        "contract": "nan",
        "require": ["complete"],
        "exhaustive": None,
        "in_process": False,
    }
    (record,) = certificate.subjects
    assert (record.contract, record.declared_contract, record.verdict) == ("nan", "zero", "fail")
    assert any(f.diagnosis == "declaration stale" for f in certificate.findings)
    assert f"Certificate: {out}" in result.stdout.replace("\n", "")


def test_the_same_seed_writes_the_same_certificate_but_for_times(mine: Path, tmp_path: Path) -> None:
    contents = []
    for name in ("a.json", "b.json"):
        smoke(f"{mine}:softmax", "--seed", "5", "--out", tmp_path / name)
        content = json.loads((tmp_path / name).read_text())
        content.pop("times")
        contents.append(content)
    assert contents[0] == contents[1]


def test_a_certificate_that_cannot_be_written_exits_2(mine: Path, tmp_path: Path) -> None:
    result = smoke(f"{mine}:softmax", "--out", tmp_path / "no" / "c.json")
    assert result.exit_code == 2
    assert "The certificate cannot be written to " in result.stderr


def test_specimens_run_when_they_are_asked_for() -> None:
    plain, named = smoke("numpy"), smoke("numpy.replace-min")
    assert "replace-min" not in plain.stdout
    assert plain.exit_code == 0
    assert named.exit_code == 1
    assert "uniform" in named.stdout
    everything = smoke("numpy", "--specimens")
    assert everything.exit_code == 1
    for name in ("replace-min", "additive-min", "where-after-additive-inf"):
        assert name in everything.stdout


def test_several_jobs_give_the_same_findings(tmp_path: Path) -> None:
    for jobs in ("1", "2"):
        smoke("numpy.fill-inf", "--jobs", jobs, "--out", tmp_path / f"{jobs}.json")
    one, two = (read(tmp_path / f"{jobs}.json") for jobs in ("1", "2"))
    assert one.findings == two.findings
    assert one.digest == two.digest


def test_a_contradiction_of_the_suite_exits_3(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hardmask.conformance.verdicts as verdicts
    from hardmask.spec.oracle.referee import decide

    monkeypatch.setattr(verdicts, "decide", lambda s, m, i, y, budget, v=None: decide(s, m, i, y, 1e300, v))
    result = smoke(f"{mine}:doubled")
    assert result.exit_code == 3
    assert "the referee does not" in result.stderr
    assert "Please report this as a fault of hardmask." in result.stderr


def test_an_accident_inside_hardmask_exits_3_without_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    import hardmask.conformance.certification as certification

    def broken(*_: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(certification, "findings", broken)
    result = smoke("numpy.fill-inf")
    assert result.exit_code == 3
    assert result.stderr.startswith("hardmask itself failed: ZeroDivisionError: oops")
    assert "Nothing is certified." in result.stderr


def test_an_interruption_writes_what_there_is(mine: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    result = smoke("numpy.softmax-where", f"{mine}:stopping", "--in-process", "--out", out)
    assert result.exit_code == 1
    assert "The run was interrupted" in result.stdout
    assert read(out).complete is False


SLOW = """
import time
from pathlib import Path
from hardmask.adapters.numpy_rows import softmax_where

def slow(scores, mask):
    Path(__file__).with_name("started").touch()
    time.sleep(0.2)
    return softmax_where(scores, mask).weights
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no SIGINT to one process")
def test_ctrl_c_writes_the_certificate_and_does_not_exit_0(tmp_path: Path) -> None:
    file, out = tmp_path / "slow.py", tmp_path / "c.json"
    file.write_text(SLOW)
    command = [sys.executable, "-m", "hardmask.conformance", "certify", "numpy.softmax-where", f"{file}:slow"]
    run = subprocess.Popen(
        [*command, "--dtype", "float32", "--effort", "smoke", "--rounds", "200", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # A background job ignores SIGINT and would hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        stdout, stderr = run.communicate(timeout=60)
    finally:
        run.kill()
        run.wait()
    assert run.returncode == 1, stderr
    assert "Traceback" not in stderr
    assert "The run was interrupted" in stdout
    certificate = read(out)
    assert certificate.complete is False
    assert any(f.checked for f in certificate.findings if f.subject == "numpy.softmax-where")


def test_list_names_every_subject_with_its_path() -> None:
    result = hardmask("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert any(line.startswith("numpy ") for line in lines)
    assert any("numpy.softmax-where" in line and "zero+valid" in line and "forward+vjp+jvp" in line for line in lines)


@pytest.mark.jax
def test_two_paths_of_one_entry_point_can_be_told_apart() -> None:
    listed = hardmask("list").stdout
    assert "jax.softmax-where[jit]" in listed
    assert "jax.softmax-where[eager]" in listed


def test_help_names_the_exit_codes_and_the_version_is_the_packages() -> None:
    text = " ".join(hardmask("--help").stdout.split())
    assert "Exit codes: 0 every subject keeps what it declares" in text
    assert hardmask("--version").stdout == f"hardmask, version {__version__}\n"


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from hardmask.conformance.cli import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'sympy', 'mpmath', 'torch', 'jax', 'scipy', 'rich.table'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
