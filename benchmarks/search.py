"""What the directed search finds that as many random rows do not.

For a correct softmax in each format, and for wrong ones whose exp is off in a narrow window: the largest share of the
budget of a weight that random rows use, that as many bred rows use, each for several seeds, and that Hypothesis reaches
with ``target`` in the time that a search took; a share above 1 is a failure. Takes a few minutes.

    OMP_NUM_THREADS=1 python benchmarks/search.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import hypothesis
import numpy as np
from hypothesis import HealthCheck, Phase, given, settings, target
from rich.console import Console
from rich.table import Table

from hardmask.adapters import Subject, resolve
from hardmask.conformance import check_row
from hardmask.conformance.cases import Case
from hardmask.conformance.runner import Policy, Results, judge, merge
from hardmask.conformance.search import GENERATIONS, Climb, climb
from hardmask.conformance.strategies import Row, masked_rows
from hardmask.spec.formats import DTYPES, FORMATS

ROWS, KEYS = 1552, 16
NAME = "spec_eq_weights"


def off_near(gap: float, height: float, width: float) -> Callable[[Any, Any], Any]:
    """A float32 softmax whose exp is off by up to ``height`` units of roundoff where a score is about ``gap`` below
    the maximum."""

    def forward(scores: Any, mask: Any) -> Any:
        x = np.where(mask, scores, -np.inf)
        top = x.max(axis=1, keepdims=True, initial=-np.inf)
        d = np.where(mask, x - np.where(np.isfinite(top), top, 0), 0)
        bump = 1.0 + height * FORMATS["float32"].u * np.exp(-(((d + gap) / width) ** 2))
        e = np.where(mask, np.exp(d) * bump.astype(np.float32), 0).astype(np.float32)
        total = e.sum(axis=1, keepdims=True)
        return (e / np.where(total > 0, total, 1)).astype(np.float32)

    return forward


def subjects(dtypes: list[str]) -> Iterator[tuple[Subject, str]]:
    """What is searched, and in which format."""
    (good,) = resolve(["numpy.softmax-where"])
    for dtype in dtypes:
        yield good, dtype
    for height, width in ((12, 0.3), (12, 0.03), (12, 0.003), (20, 0.003)):
        yield Subject(f"wrong-by-{height}u-in-{width}", off_near(7.3, height, width), dtypes=("float32",)), "float32"


def share(results: Results) -> float:
    """The largest share of the budget of a weight."""
    return max(t.ratio for tallies in results.values() for (name, _), t in tallies.items() if name == NAME)


def by_hypothesis(subject: Subject, dtype: str, number: int, seconds: float) -> tuple[float, int]:
    """The share that ``target`` reaches in so many seconds, and the examples that it judged."""
    forward_only = replace(subject, vjp=None, jvp=None)
    best, examples, end = 0.0, 0, time.perf_counter() + seconds

    @hypothesis.seed(number)
    @settings(
        max_examples=10**6, database=None, deadline=None, phases=[Phase.generate, Phase.target],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(masked_rows(dtype, min_keys=2, max_keys=KEYS))
    def climbing(row: Row) -> None:
        nonlocal best, examples
        if time.perf_counter() > end:
            raise TimeoutError
        found = check_row(forward_only, row.scores, row.mask)
        reached = max(f.ratio or 0.0 for f in found if f.declaration.endswith(NAME))
        best, examples = max(best, reached), examples + 1
        target(reached)

    try:
        climbing()
    except TimeoutError:
        pass
    except AssertionError:
        best = max(best, 1.0)  # a failing row ends the test
    return best, examples


def main() -> None:
    """Print one line for each subject."""
    parser = argparse.ArgumentParser(description="Directed search against random rows and Hypothesis' target.")
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    table = Table("subject", "format", "random", "search", "seconds", "rows/s", "Hypothesis", "rows/s")
    for subject, dtype in subjects(options.dtypes):
        random, bred = [], []
        started = time.perf_counter()
        for seed in range(options.seeds):
            case = Climb(dtype, "search", ROWS, KEYS, 0, seed, subject=subject.id)
            bred.append(share(climb(case, subject, Policy())[0]))
        seconds = (time.perf_counter() - started) / options.seeds
        for seed in range(options.seeds):
            results: Results = {}
            for turn in range(GENERATIONS):
                case = Case(dtype, "shapes", ROWS, KEYS, turn, seed)
                merge(results, judge(case, [replace(subject, vjp=None, jvp=None)], Policy(measure=False)))
            random.append(share(results))
        reached, examples = by_hypothesis(subject, dtype, 0, seconds)
        table.add_row(
            subject.id,
            dtype,
            " ".join(f"{x:.3f}" for x in random),
            " ".join(f"{x:.3f}" for x in bred),
            f"{seconds:.1f}",
            f"{ROWS * GENERATIONS / seconds:,.0f}",
            f"{reached:.3f}",
            f"{examples / seconds:,.0f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
