"""Rows per second of all checks, beside a loop in mpmath, PyTorch's gradcheck, and the backend's own work.

    python benchmarks/throughput.py
    python benchmarks/throughput.py --profile

A row counts as checked when its forward pass, VJP and JVP were judged by every check that applies: the truth with its
budgets and its audit, the calls of the subject (one forward pass, and VJP and JVP along two vectors each), and the
checks. A target may name several subjects, which share one truth as they do in a run; each counts its rows. Compared on
the same float32 rows of 64 keys:

(a) mpmath, row by row, 50 digits: the softmax and both derivatives, compared with what was returned;
(b) ``torch.autograd.gradcheck`` row by row, in float64 since it needs that, reverse and forward mode;
(c) the backend's own forward and backward pass, by one call of a subject's VJP (forward where it has none).

All times are processor time of one thread, the best of several short runs, so that other work on the machine disturbs
them little. (a) and (b) run on the first few rows, (a) with the first subject's answers.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

import mpmath
import numpy as np
from rich.console import Console
from rich.table import Table

from hardmask.adapters.memory import keep_freed_memory
from hardmask.adapters.registry import resolve
from hardmask.adapters.subject import Subject
from hardmask.conformance.audit import audited
from hardmask.conformance.cases import Case
from hardmask.conformance.checks import CHECKS
from hardmask.conformance.runner import prepare
from hardmask.conformance.truth import SIDES, Truth
from hardmask.conformance.view import DERIVATIVES, View
from hardmask.spec.batch import Batch
from hardmask.spec.contracts import contract

KEYS = 64
GOAL_LOOP, GOAL_OWN = 100.0, 15.0


def main() -> int:
    """Print the rates and ratios of each target; the exit code is always 0, since a time proves nothing."""
    parser = argparse.ArgumentParser(description="Rows per second of all checks, float32, 64 keys.")
    parser.add_argument("--targets", nargs="+", default=["numpy.softmax-where", "torch.softmax-where", "torch"])
    parser.add_argument("--rows", type=int, default=1664)
    parser.add_argument("--few", type=int, default=16, help="rows for mpmath and gradcheck")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # before a framework is loaded: processor time of several threads adds up
    keep_freed_memory()
    console = Console(width=120)
    case = Case("float32", "shapes", options.rows, KEYS, 0, 0)
    batch = case.build()
    table = Table("target", "checks", "(a) mpmath", "(b) gradcheck", "(c) own pass")
    grad = options.few / _best(lambda: _gradcheck(batch, options.few), 2)
    for target in options.targets:
        subjects = resolve([target])
        whole = _best(lambda s=subjects: _check_all(case, s), options.repeats)
        own = sum(_best(lambda s=s: _own(batch, s), options.repeats) for s in subjects)
        rate = options.rows * len(subjects) / whole
        loop = options.few / _best(lambda s=subjects[0]: _loop(batch, s, options.few), 2)
        table.add_row(
            f"{target} ({len(subjects)} subject{'s' if len(subjects) > 1 else ''})",
            f"{rate:,.0f} rows/s",
            f"{loop:,.0f} rows/s: {rate / loop:,.0f} times (goal at least {GOAL_LOOP:.0f})",
            f"{grad:,.0f} rows/s: {rate / grad:,.0f} times",
            f"{whole / own:.1f} times its time (goal at most {GOAL_OWN:.0f})",
        )
        if options.profile:
            _profile(console, case, subjects[0], options.repeats)
    console.print(table)
    return 0


def _best(work: Callable[[], object], repeats: int) -> float:
    """The least processor time of a piece of work, after one run to warm up."""
    work()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def _view(truth: Truth, subject: Subject) -> View:
    return View(subject, contract(subject.contract), truth, frozenset())


def _answer(view: View) -> None:
    _ = view.forward
    for mode, _ in DERIVATIVES:
        for side in SIDES:
            view.derivative(mode, side)


def _check_all(case: Case, subjects: list[Subject]) -> None:
    """What a run does with one batch; building its rows is left out, as it is for the others."""
    truth = _prepared(case, subjects)
    for subject in subjects:
        view = _view(truth, subject)
        for check in CHECKS:
            for _ in check(view):
                pass


def _own(batch: Batch, subject: Subject) -> None:
    if subject.vjp is None:
        subject.forward(batch.scores, batch.mask)
    else:
        subject.vjp(batch.scores, batch.mask, batch.cotangents)


_BATCHES: dict[str, Batch] = {}


class _Built(Case):
    """A case whose rows are built once."""

    def build(self) -> Batch:
        """The rows."""
        if self.key not in _BATCHES:
            _BATCHES[self.key] = super().build()
        return _BATCHES[self.key]


def _prepared(case: Case, subjects: list[Subject]) -> Truth:
    built = _Built(case.dtype, case.kind, case.rows, case.keys, case.round, case.seed)
    return prepare(built, subjects)


def _loop(batch: Batch, subject: Subject, rows: int) -> int:
    """The plain way to check rows: evaluate the formulas with 50 digits, compare entry by entry. How many differ."""
    scores, mask = batch.scores[:rows], batch.mask[:rows]
    answer = subject.forward(scores, mask)
    returned = [
        np.asarray(getattr(answer, "weights", answer)).tolist(),
        subject.vjp(scores, mask, batch.cotangents[:rows]).tolist(),
        subject.jvp(scores, mask, batch.tangents[:rows]).tolist(),
    ]
    different = 0
    with mpmath.workdps(50):
        for r in range(rows):
            allowed = [i for i in range(KEYS) if mask[r, i]]
            e = {i: mpmath.exp(mpmath.mpf(float(scores[r, i]))) for i in allowed}
            total = mpmath.fsum(e.values())
            w = {i: value / total for i, value in e.items()}
            true = [w]
            for vectors in (batch.cotangents, batch.tangents):
                v = {i: mpmath.mpf(float(vectors[r, i])) for i in allowed}
                centre = mpmath.fsum(w[i] * v[i] for i in allowed)
                true.append({i: w[i] * (v[i] - centre) for i in allowed})
            for values, got in zip(true, returned, strict=True):
                for i in range(KEYS):
                    exact = values.get(i, mpmath.mpf(0))
                    different += abs(got[r][i] - exact) > 1e-5 * abs(exact) + 1e-6
    return different


def _gradcheck(batch: Batch, rows: int) -> None:
    import torch

    from hardmask.adapters.torch_rows import softmax_where

    for r in range(rows):
        x = torch.tensor(batch.scores64[r : r + 1], requires_grad=True)
        m = torch.tensor(batch.mask[r : r + 1])
        torch.autograd.gradcheck(
            softmax_where, (x, m), raise_exception=False, check_forward_ad=True, check_undefined_grad=False
        )


def _profile(console: Console, case: Case, subject: Subject, repeats: int) -> None:
    truth = _prepared(case, [subject])
    answered = _view(truth, subject)
    _answer(answered)
    rounding = subject.rounding_for("forward", case.dtype)
    derivatives = {subject.rounding_for(mode, case.dtype) for mode in subject.methods if mode != "forward"}

    def truths() -> None:
        again = Truth(truth.batch)
        for side in SIDES:
            again.derivative(side)

    def budgets() -> None:
        again = Truth(truth.batch)
        again.__dict__["weights"] = truth.weights
        again.budget(rounding)
        for model in derivatives:
            for side in SIDES:
                again.derivative_budget(model, side)

    def with_answers() -> View:
        view = _view(truth, subject)
        view._calls = dict(answered._calls)
        return view

    parts: dict[str, Callable[[], object]] = {
        "truth: weights and derivatives": truths,
        "budgets": budgets,
        "audit of the truth": lambda: audited(truth, case.seed, True),
        "subject: forward, two VJPs, two JVPs": lambda: _answer(_view(truth, subject)),
    }
    for check in CHECKS:
        name = check.__module__.rpartition(".")[2]
        parts[f"check {name}"] = lambda check=check: list(check(with_answers()))
    table = Table("part", "µs per row", title=f"{subject.id}: where the time goes")
    for name, work in parts.items():
        table.add_row(name, f"{_best(work, repeats) / case.rows * 1e6:.1f}")
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
