"""Wall times of the command, and rows per second of each check beside a loop over rows in mpmath.

    python benchmarks/certify.py
    python benchmarks/certify.py --skip-frameworks

Times of the command are those of fresh processes, start-up included. Rates are those of one thread, on one batch of
default effort, after a warm-up; the rate of a check counts the rows of the batch, whatever the check asks of each.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from rich.console import Console
from rich.table import Table

from hardmask.adapters.registry import resolve
from hardmask.conformance.cases import Case
from hardmask.conformance.checks import CHECKS
from hardmask.conformance.runner import prepare
from hardmask.conformance.truth import Truth
from hardmask.conformance.view import View
from hardmask.spec.contracts import contract
from hardmask.spec.oracle.referee import decide

COMMANDS = (("--help",), ("certify", "numpy"), ("certify", "torch", "jax"))
LIMITS = (0.3, 5.0, 90.0)
DTYPES = ("float64", "float32", "bfloat16")
ROWS, KEYS = 1664, 131
KINDS = {"empty_row": "mixture", "facts": "facts"}
"""The kind of batch that gives a check most to do, where it is not ``shapes``."""


def main() -> int:
    """Print both tables; the exit code is 1 when a command cannot do its work."""
    parser = argparse.ArgumentParser(description="Times of the command, and rows per second of each check.")
    parser.add_argument("--skip-frameworks", action="store_true", help="do not time 'certify torch jax'")
    options = parser.parse_args()
    console = Console(width=120)
    failed = _commands(console, COMMANDS[:2] if options.skip_frameworks else COMMANDS)
    _rates(console)
    return int(failed)


def _commands(console: Console, commands: tuple[tuple[str, ...], ...]) -> bool:
    table = Table("command", "seconds", "asked for", "exit code", title=f"wall time, {os.cpu_count()} processors")
    failed = False
    for arguments, limit in zip(commands, LIMITS, strict=False):
        started = time.perf_counter()
        run = subprocess.run(
            [sys.executable, "-m", "hardmask.conformance", *arguments], stdout=subprocess.DEVNULL, check=False
        )
        seconds = time.perf_counter() - started
        failed |= run.returncode > 1
        table.add_row("hardmask " + " ".join(arguments), f"{seconds:.2f}", f"<= {limit}", str(run.returncode))
    console.print(table)
    return failed


def _rates(console: Console) -> None:
    table = Table("step", *DTYPES, title=f"rows per second, {KEYS} keys, NumPy reference, one thread")
    columns = [dict(_steps(dtype)) for dtype in DTYPES]
    for step in columns[0]:
        table.add_row(step, *(f"{column[step]:,.0f}" for column in columns))
    console.print(table)


def _steps(dtype: str) -> Iterator[tuple[str, float]]:
    (subject,) = resolve(["numpy.softmax-where"])
    case = Case(dtype, "shapes", ROWS, KEYS, 0, 0)
    yield "build the rows", _rate(case.build)
    yield "truth and budgets", _rate(lambda: prepare(case, [subject]))
    views = {
        kind: View(subject, contract(subject.contract), prepare(replace(case, kind=kind), [subject]), frozenset())
        for kind in ("shapes", *KINDS.values())
    }
    yield "call the subject: forward, VJP, JVP", _rate(lambda: _answer(_fresh(views["shapes"])))
    for check in CHECKS:
        name = check.__module__.rpartition(".")[2]
        answered = _answer(views[KINDS.get(name, "shapes")])
        yield f"check {name}", _rate(lambda check=check, answered=answered: list(check(_with_answers(answered))))
    yield "mpmath, row by row: the weights alone", _loop(views["shapes"].truth, 40)


def _fresh(view: View) -> View:
    return View(view.subject, view.contract, view.truth, frozenset())


def _answer(view: View) -> View:
    _ = view.forward
    for mode in ("vjp", "jvp"):
        for side in ("cotangents", "tangents"):
            view.derivative(mode, side)  # type: ignore[arg-type]  # the literals are lost in the tuples
    return view


def _with_answers(answered: View) -> View:
    """A view that has the answers of another one, and none of its comparisons."""
    view = _fresh(answered)
    view._calls = dict(answered._calls)
    return view


def _rate(step: Callable[[], object], repeats: int = 3) -> float:
    step()
    best = min(_timed(step) for _ in range(repeats))
    return ROWS / best


def _timed(step: Callable[[], object]) -> float:
    started = time.perf_counter()
    step()
    return time.perf_counter() - started


def _loop(truth: Truth, rows: int) -> float:
    """One decision of the referee per row, in interval arithmetic at 128 bits."""
    batch, w = truth.batch, truth.weights.weights.value

    def loop() -> None:
        for r in range(rows):
            scores, mask = batch.scores64[r].tolist(), batch.mask[r].tolist()
            decide(scores, mask, int(w[r].argmax()), float(w[r].max()), 1e-3, lib="mpmath")

    return rows / _timed(loop)


if __name__ == "__main__":
    sys.exit(main())
