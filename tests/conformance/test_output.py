"""What is written where, and how brackets get onto a terminal."""

from __future__ import annotations

import os
import stat
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from hardmask.adapters.subject import Subject
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.cli import main
from hardmask.conformance.exhaustive import Enumeration
from hardmask.conformance.metamorphic.report import print_report as print_metamorphic
from hardmask.conformance.metamorphic.request import Request as MetamorphicRequest
from hardmask.conformance.metamorphic.request import metamorphic
from hardmask.conformance.mutants.kit import weights_of
from hardmask.conformance.output import OutputError, writable, write_or_explain, write_whole
from hardmask.conformance.terminal.report import print_report

BRACKETS = "see [link] and [/red]"


@pytest.fixture
def odd() -> Subject:
    """A subject whose id and reasons would be markup."""
    return Subject("odd.f[jit][/x]", weights_of, dtypes=("float32",), contract="zero", unsupported={"vjp": BRACKETS})


def test_a_file_is_written_whole_and_a_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    write_whole(link, b"one")
    assert link.is_symlink()
    assert real.read_bytes() == b"one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.json", "real.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(pipe, b"through")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_failure_to_write_leaves_nothing_and_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OutputError, match=r"^The record cannot be written to 'folder': .*\.$"):
        write_or_explain(folder, b"content", "folder", "record")
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]
    with pytest.raises(OutputError, match="its folder is not there"):
        writable(tmp_path / "none" / "x.json", "record")
    assert writable(None, "record") is None


def test_a_device_stays_a_device() -> None:
    if not Path(os.devnull).is_char_device():
        pytest.skip("no null device here")
    words = ["certify", "numpy.softmax-where", "--effort", "smoke", "--dtype", "float32", "--out", os.devnull]
    assert CliRunner().invoke(main, words).exit_code == 0
    assert Path(os.devnull).is_char_device()


@pytest.mark.parametrize("markup", [True, False])
def test_brackets_are_printed_as_they_are(odd: Subject, markup: bool) -> None:
    enumeration = Enumeration(("float16",), fraction=1e-4)
    for report in (
        certify(Request(("odd",), dtypes=("float32",), effort="smoke"), subjects=[odd]),
        certify(Request(("odd",), dtypes=("float32",), enumeration=enumeration), subjects=[odd]),
    ):
        stream = StringIO()
        print_report(report, Console(file=stream, width=140, markup=markup))
        assert f"{odd.id} ({BRACKETS}" in stream.getvalue() or f"{odd.id} (the subject" in stream.getvalue()


def test_brackets_are_printed_as_they_are_by_the_metamorphic_run_too(odd: Subject) -> None:
    report = metamorphic(MetamorphicRequest(("odd",), keys=(8,), rows=2, dtypes=("float32",)), subjects=[odd])
    stream = StringIO()
    print_metamorphic(report, Console(file=stream, width=140))
    assert f"Not asked of {odd.id}: {BRACKETS}; " in stream.getvalue()


def test_a_call_that_raises_is_no_contradiction() -> None:
    def broken(scores: object, mask: object) -> None:
        raise RuntimeError("no")

    subject = Subject("mine.broken", broken, dtypes=("float32",))  # type: ignore[arg-type]
    report = metamorphic(MetamorphicRequest(("x",), keys=(8,), rows=2, dtypes=("float32",)), subjects=[subject])
    assert (report.exit_code, report.reason) == (1, "Some calls gave no usable answer: mine.broken.")
