"""Worker processes and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from hardmask.conformance.workers import Workers

PROGRAM = """
import os, signal
from hardmask.conformance.workers import Workers

if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda number, frame: print("interrupted", flush=True))
    with Workers(2) as workers:
        calls = [workers.submit(abs, -n) for n in range(4)]
        os.killpg(0, signal.SIGINT)  # as a terminal does, while the processes are starting
        print(sum(call.result() for call in calls))
"""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no process groups here")
def test_an_interruption_does_not_reach_processes_that_are_starting(tmp_path: os.PathLike[str]) -> None:
    program = os.path.join(tmp_path, "program.py")
    with open(program, "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, start_new_session=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n6\n", "")


def test_interruptions_are_let_through_again() -> None:
    with Workers(1) as workers:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ()) if hasattr(signal, "pthread_sigmask") else None
        assert workers.submit(abs, -3).result() == 3
    if before is not None:
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
