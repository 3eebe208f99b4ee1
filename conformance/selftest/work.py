"""Judge mutants and variants, batch by batch, here or in worker processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...adapters.subject import Subject
from ...spec.oracle.audit import Audit
from ..cases import Case
from ..cases.build import FORWARD_ONLY, SHORT
from ..mutants import mutants, variants
from ..mutants.jacobian import forward as right_forward
from ..runner import CaseJudged, CaseStarted, Event, Policy, judge_subject, prepare, wanted
from ..workers import Workers
from .cell import Cell, cell_of

Cells = dict[tuple[str, str], Cell]
"""Keyed by subject id and dtype."""

PLAIN = Policy(measure=False)
"""Every subject is judged by what it declares, and nothing is measured beyond that."""


def judge_case(case: Case, subjects: Sequence[Subject]) -> tuple[Cells, Audit]:
    """Judge every subject that a batch is for; all of them share its truth, which is audited.

    Where only weights are judged, the mutants of derivatives are left out: all have the same right forward pass.

    Raises SuiteFault when the oracle fails its audit.
    """
    mine = wanted(case, subjects)
    if case.kind in FORWARD_ONLY and case.keys > SHORT:
        mine = [s for s in mine if s.forward is not right_forward]
    if not mine:
        return {}, Audit()
    truth = prepare(case, mine)
    cells = {(s.id, case.dtype): cell_of(judge_subject(case, s, PLAIN, truth, {}, named=False)) for s in mine}
    return cells, truth.audit


def judge_case_by_name(case: Case, names: frozenset[str]) -> tuple[Cells, Audit]:
    """:func:`judge_case` for another process: subjects hold functions and do not travel, their ids do.

    They are made afresh for each batch: some keep a state, and the outcome must not depend on who takes which batch.
    """
    made = [*(m.subject for m in mutants()), *(v.subject for v in variants())]
    return judge_case(case, [s for s in made if s.id in names])


def run_here(cases: Sequence[Case], subjects: Sequence[Subject], cells: Cells) -> Iterator[Event]:
    """Judge every case in this process and add what comes out to ``cells``."""
    for index, case in enumerate(cases):
        yield CaseStarted(case, index, len(cases))
        more, audit = judge_case(case, subjects)
        merge_cells(cells, more)
        yield CaseJudged(case, index, len(cases), audit)


def run_by_name(cases: Sequence[Case], names: frozenset[str], jobs: int, cells: Cells) -> Iterator[Event]:
    """Judge every case in ``jobs`` processes, the largest first, and add what comes out to ``cells``."""
    if jobs == 1:
        for index, case in enumerate(cases):
            yield CaseStarted(case, index, len(cases))
            more, audit = judge_case_by_name(case, names)
            merge_cells(cells, more)
            yield CaseJudged(case, index, len(cases), audit)
        return
    ordered = sorted(cases, key=lambda c: c.rows * c.keys, reverse=True)
    yield from dealt(ordered, judge_case_by_name, names, jobs, cells)


def dealt(
    cases: Sequence[Any],
    judge: Callable[[Any, frozenset[str]], tuple[Cells, Audit]],
    names: frozenset[str],
    jobs: int,
    cells: Cells,
) -> Iterator[Event]:
    """Judge every case in one of ``jobs`` processes, in order, and add what comes out to ``cells``."""
    with Workers(jobs) as executor:
        futures = [executor.submit(judge, case, names) for case in cases]
        try:
            for index, (case, future) in enumerate(zip(cases, futures, strict=True)):
                yield CaseStarted(case, index, len(cases))
                more, audit = future.result()
                merge_cells(cells, more)
                yield CaseJudged(case, index, len(cases), audit)
        finally:
            for future in futures:
                future.cancel()


def merge_cells(into: Cells, more: Cells) -> None:
    """Add the cells of one batch or problem to those of the run."""
    for key, cell in more.items():
        into.setdefault(key, Cell()).merge(cell)
