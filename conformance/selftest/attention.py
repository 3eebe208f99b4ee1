"""Judge attention mutants and variants, problem by problem, here or in worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...adapters.attention import Attention
from ...spec.contracts import contract
from ...spec.oracle.audit import Audit
from ..attention.calls import limit_of, takes
from ..attention.checks import CHECKS, promises, relations
from ..attention.judgement import AttentionTallies, count
from ..attention.known import reported
from ..attention.mutants import attention_mutants, attention_variants
from ..attention.plan import plan_attention
from ..attention.runner import AnyCase, count_faults, prepare, wanted
from ..attention.view import AttentionView, Known
from ..runner import CaseJudged, CaseStarted, Event
from .cell import attention_cell_of
from .work import Cells, dealt, merge_cells


def attention_cases(effort: str, seed: int, dtypes: Sequence[str]) -> list[AnyCase]:
    """The problems of a run of that effort."""
    cases: list[AnyCase] = [*plan_attention(effort, seed, dtypes)]
    return cases if effort == "smoke" else [*cases, *(c for c in reported() if c.dtype in dtypes)]


def judge_problem(case: AnyCase, subjects: Sequence[Attention]) -> tuple[Cells, Audit]:
    """Judge every subject that takes a problem; all of them share its truth, which is audited.

    Raises SuiteFault when the oracle fails its audit.
    """
    mine = wanted(case, subjects)
    if not mine:
        return {}, Audit()
    known = prepare(case, mine)
    cells = {
        (s.id, case.dtype): attention_cell_of(_tallies(s, case, known))
        for s in mine
        if takes(s, known.problem) and not limit_of(s, known.problem)
    }
    return cells, known.audit


def _tallies(subject: Attention, case: AnyCase, known: Known) -> AttentionTallies:
    view = AttentionView(subject, contract(subject.contract), known, frozenset())
    tallies: AttentionTallies = {}
    for check in CHECKS:
        if check is not promises.check or subject.promises:
            count(check(view), known.problem, tallies)
    if case.related:
        count(relations.check(view), known.problem, tallies)
    count_faults(view, tallies)
    return tallies


def judge_problem_by_name(case: AnyCase, names: frozenset[str]) -> tuple[Cells, Audit]:
    """:func:`judge_problem` for another process: subjects hold functions and do not travel, their ids do."""
    made = [*(m.subject for m in attention_mutants()), *(v.subject for v in attention_variants())]
    return judge_problem(case, [s for s in made if s.id in names])


def run_attention(
    cases: Sequence[AnyCase], subjects: Sequence[Attention], jobs: int, cells: Cells, *, by_name: bool
) -> Iterator[Event]:
    """Judge every problem, with ``by_name`` in ``jobs`` processes, and add what comes out to ``cells``."""
    names = frozenset(s.id for s in subjects)
    if jobs == 1 or not by_name:
        for index, case in enumerate(cases):
            yield CaseStarted(case, index, len(cases))
            more, audit = judge_problem(case, subjects)
            merge_cells(cells, more)
            yield CaseJudged(case, index, len(cases), audit)
        return
    yield from dealt(cases, judge_problem_by_name, names, jobs, cells)
