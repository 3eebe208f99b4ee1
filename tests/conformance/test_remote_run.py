"""Runs whose subjects live in workers: the same certificate, and a whole one whatever a subject does to its process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest

from hardmask.adapters.errors import TargetError
from hardmask.adapters.remote import POSSIBLE
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.pool import PoolByDtype

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="workers need a POSIX system")

BACKENDS = Path(__file__).with_name("hostile_backends.py")


def run(*targets: str, **fields: Any) -> Report:
    return certify(Request(targets, **{"dtypes": ("float32",), "effort": "smoke", "in_process": False, **fields}))


def hostile(name: str, **fields: Any) -> Report:
    """A run on that subject behind a good one, whose verdict is looked at here."""
    report = run(f"{BACKENDS}:with_{name}", **fields)
    assert report.certificate.complete
    assert {s.id: s.verdict for s in report.certificate.subjects}["bad.good"] == "pass"
    return report


def errors(report: Report, subject: str) -> list[str]:
    """The error sentences about a subject, each once."""
    found = [f.diagnosis for f in report.certificate.findings if f.subject == subject and f.verdict == "error"]
    return list(dict.fromkeys(found))


def content(report: Report) -> Any:
    whole = msgspec.to_builtins(report.certificate)
    del whole["times"], whole["digest"], whole["request"]["in_process"]
    return whole


def test_a_certificate_is_the_same_through_workers() -> None:
    targets = "numpy.softmax-where", "numpy.fill-inf", "numpy.attention", "numpy.attention[lengths]"
    there, here = (certify(Request(targets, effort="smoke", in_process=i)) for i in (False, True))
    assert [r.certificate.request["in_process"] for r in (there, here)] == [False, True]
    assert content(there) == content(here)


def test_a_pool_of_judges_with_a_worker_each_changes_nothing() -> None:
    request = Request(("numpy.softmax-where", "numpy.fill-inf"), dtypes=("float32", "float16"), in_process=False)
    with PoolByDtype(2) as pool:
        pooled = certify(request, executor=pool)
    assert content(pooled) == content(certify(replace(request, in_process=True)))


@pytest.mark.torch
def test_a_certificate_of_pytorch_is_the_same_through_workers() -> None:
    targets = "torch.softmax-where", "torch.softmax-where[dim=0]", "torch.masked-softmax"
    there, here = (certify(Request(targets, effort="smoke", in_process=i)) for i in (False, True))
    assert content(there) == content(here)


DEATHS = {
    "killed": (
        "crashed its process on float32 rows of shape (8, 0): it was killed by signal 11 (SIGSEGV), and its last words "
        "were 'about to [31mfall over'."
    ),
    "aborted": "crashed its process on float32 rows of shape (8, 0): it was killed by signal 6 (SIGABRT).",
    "null": "crashed its process on float32 rows of shape (8, 0): it was killed by signal 11 (SIGSEGV).",
    "left": "ended its process on float32 rows of shape (8, 0): it exited with status 0.",
}


@pytest.mark.parametrize("name", DEATHS)
def test_a_death_is_an_error_and_the_rest_is_judged(name: str) -> None:
    report = hostile(name)
    assert report.exit_code == 1
    first, second, third, *more = errors(report, f"bad.{name}")
    assert first == f"bad.{name}.forward {DEATHS[name]}"
    assert all(" its process on float32 rows of shape " in s for s in (second, third))
    assert more
    assert all("3 calls of this subject crashed or did not return, and no more are made." in s for s in more)


def test_a_kernel_that_dies_on_rows_without_keys_is_judged_on_all_others() -> None:
    report = hostile("no_keys")
    (only,) = errors(report, "bad.no_keys")
    assert only == (
        "bad.no_keys.forward crashed its process on float32 rows of shape (8, 0): it was killed by signal 8 (SIGFPE)."
    )
    verdicts = {f.family: f.verdict for f in report.certificate.findings if f.subject == "bad.no_keys"}
    assert verdicts["batch empty"] == "error"
    assert list(verdicts.values()).count("pass") > 10


@pytest.mark.parametrize("name", ["asleep", "busy"])
def test_a_hang_is_stopped(name: str) -> None:
    first, *_, last = errors(hostile(name, call_timeout=0.5), f"bad.{name}")
    assert first == (
        f"bad.{name}.forward did not return on float32 rows of shape (8, 0): it was stopped after 0.5 s, the limit for "
        "one call."
    )
    assert f"bad.{name}.forward was not called on " in last


def test_the_time_of_all_calls_of_a_subject_is_limited() -> None:
    found = errors(hostile("asleep", subject_timeout=0.5), "bad.asleep")
    assert found[0].endswith("all calls of the subject together had 0.5 s, and these were used up.")
    assert all("was not called" in s for s in found[1:])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process holds")
def test_a_worker_that_takes_too_much_memory_is_stopped() -> None:
    first, *_ = errors(hostile("hungry", memory_limit=300), "bad.hungry")
    assert first.startswith(
        "bad.hungry.forward took too much memory on float32 rows of shape (8, 0): its process held "
    )
    assert first.endswith(" MiB and was stopped; the limit is 300 MiB.")


def test_what_a_subject_prints_reaches_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    report = hostile("loud")
    assert report.exit_code == 0
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["listed", "wider", "refusing", "left_by_exit", "spoiling"])
def test_what_is_no_answer_is_said_as_in_process(name: str) -> None:
    here = certify(Request((f"{BACKENDS}:with_{name}",), dtypes=("float32",), effort="smoke"))
    there = hostile(name)
    assert errors(there, f"bad.{name}")
    mine, its = content(there), content(here)
    for whole in (mine, its):
        del whole["environment"]["builds"]  # this process may have loaded frameworks that the worker has not
    assert mine == its


def test_attention_that_dies_or_writes_over_its_arguments_is_at_fault() -> None:
    report = run(f"{BACKENDS}:attentions")
    falling, over = errors(report, "bad.falling"), errors(report, "bad.over-q")
    assert "crashed its process on float32 q (2, 2, 5, 4), k (2, 2, 7, 4)" in falling[0]
    assert all("changed the array q that it was given" in s for s in over)


@pytest.mark.parametrize("contract", ["reject", "zero"])
def test_a_crash_is_no_polite_refusal(contract: str) -> None:
    report = run(f"{BACKENDS}:with_aborted", contract=contract)
    assert report.exit_code == 1
    judged = {f.verdict for f in report.certificate.findings if f.subject == "bad.aborted"}
    assert "error" in judged
    assert not judged & {"pass", "permitted", "fail"}


CRASHES_ON_IMPORT = "import os, sys\nsys.stderr.write('no luck\\n')\nsys.stderr.flush()\nos.{}\n"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("abort()", "crashed its process: it was killed by signal 6 (SIGABRT)"),
        ("_exit(0)", "ended its process: it exited"),
    ],
)
def test_a_file_that_ends_the_process_when_it_is_loaded_is_named(tmp_path: Path, how: str, said: str) -> None:
    file = tmp_path / "mine.py"
    file.write_text(CRASHES_ON_IMPORT.format(how))
    with pytest.raises(TargetError) as caught:
        run(f"{file}:softmax")
    assert f"Loading '{file}:softmax' {said}" in str(caught.value)
    assert "its last words were 'no luck'" in str(caught.value)


def test_a_target_that_names_nothing_is_said_as_in_process(tmp_path: Path) -> None:
    missing = f"{tmp_path}/none.py:f"
    for target in ("numpy.softmax-were", "nunpy", "numpy.x*", "zz*", "mine.py", missing, "numpy.softmax-where:f"):
        sentences = []
        for in_process in (True, False):
            with pytest.raises(TargetError) as caught:
                run(target, in_process=in_process)
            sentences.append(str(caught.value))
        assert sentences[0] == sentences[1]


PARENT = """
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.pool import PoolByDtype

if __name__ == "__main__":
    with PoolByDtype(2) as pool:
        certify(Request(({target!r},), dtypes=("float32", "float16"), in_process=False), executor=pool)
"""


def in_group(marker: str) -> list[int]:
    """The processes whose environment holds a marker."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (
                    marker.encode() in (entry / "environ").read_bytes()
                    and "State:\tZ" not in (entry / "status").read_text()
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_parent_leaves_no_process_behind(tmp_path: Path) -> None:
    marker = f"HARDMASK_TEST_MARKER={tmp_path.name}-{os.getpid()}"
    program = tmp_path / "program.py"
    program.write_text(PARENT.format(target=f"{BACKENDS}:with_busy"))
    name, _, value = marker.partition("=")
    parent = subprocess.Popen([sys.executable, str(program)], env={**os.environ, name: value})
    try:
        until = time.monotonic() + 120
        while len(in_group(marker)) < 5 and time.monotonic() < until:  # a parent, two judges, a worker of each
            assert parent.poll() is None
            time.sleep(0.2)
        assert len(in_group(marker)) >= 5
        parent.kill()
        parent.wait()
        while in_group(marker) and time.monotonic() < until:
            time.sleep(0.2)
        assert in_group(marker) == []
    finally:
        for pid in in_group(marker):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter of its own that has NumPy and nothing else."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    package = Path(numpy.__file__).parent
    for part in (package, *package.parent.glob("numpy.libs"), *package.parent.glob("numpy-*.dist-info")):
        (site / part.name).symlink_to(part)
    return folder / "bin" / "python"


def test_another_interpreter_needs_numpy_alone(bare: Path) -> None:
    report = run("numpy.softmax-where", "numpy.atten*", python=str(bare), dtypes=("float32", "bfloat16"))
    assert report.exit_code == 0
    assert report.certificate.environment["framework_python"] == sys.version.split()[0]
    assert report.certificate.environment["frameworks"] == {"numpy": numpy.__version__}
    (subject, *_) = report.certificate.subjects
    assert subject.id == "numpy.softmax-where"
    assert "bfloat16" not in subject.dtypes
    assert subject.unsupported["bfloat16"].startswith("bfloat16 needs ml_dtypes in the interpreter")
    assert str(bare.parent.parent) not in msgspec.json.encode(report.certificate).decode()


@pytest.mark.torch
def test_a_framework_that_the_other_interpreter_lacks_is_named(bare: Path) -> None:
    with pytest.raises(TargetError, match=r"The target 'torch' needs torch, which is not installed\."):
        run("torch", python=str(bare))


def test_an_interpreter_that_cannot_run_a_worker_is_named(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "empty")], check=True)
    python = tmp_path / "empty" / "bin" / "python"
    with pytest.raises(TargetError) as caught:
        run("numpy", python=str(python))
    assert str(caught.value) == (
        f"The interpreter '{python}' cannot run a worker: NumPy cannot be imported there (ModuleNotFoundError: No "
        "module named 'numpy'), so run '-m pip install numpy' with it."
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"call_timeout": 0.0}, "A call timeout is a number above 0; 0.0 is none."),
        ({"subject_timeout": float("nan")}, "A subject timeout is a number above 0; nan is none."),
        ({"memory_limit": 0}, "A memory limit is a number above 0; 0 is none."),
        ({"python": "python", "in_process": True}, "drop 'in process', or the interpreter"),
    ],
)
def test_limits_that_are_none_are_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=r"\.") as caught:
        run("numpy", **fields)
    assert said in str(caught.value)
