"""Run attention problems against the subjects and tell what happened, as a stream of events."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache

import numpy as np

from ...adapters.attention import Attention
from ...adapters.remote import Source
from ...spec.attention.audit import audit
from ...spec.attention.tiers import model
from ...spec.contracts import contract
from ...spec.oracle.audit import Audit
from ..finding import BEYOND
from ..runner import CaseJudged, CaseStarted, Event, Policy, merge
from ..suite_fault import SuiteFault
from .agreement import agreement
from .calls import limit_of, takes
from .checks import CHECKS, SERVED_BY, relations
from .checks.values import ARRAYS
from .judgement import AttentionTallies, AttentionTally, Judged, count
from .known import Reported
from .plan import AttentionCase
from .rejects import rejects
from .view import REFEREED, AttentionView, Known

SAMPLE = 1
"""Entries of each quantity of a problem that the referee recomputes."""

AnyCase = AttentionCase | Reported

AttentionResults = dict[tuple[str, str], AttentionTallies]
"""Keyed by subject id and dtype."""

LIMITED = "scaledDotProductAttention"
"""The declaration under which such problems are listed."""


def wanted(case: AnyCase, subjects: Sequence[Attention]) -> list[Attention]:
    """The subjects that have the dtype of a problem, and take its shape lightly enough."""
    return [s for s in subjects if case.dtype in s.dtypes and (case.few or not s.few_shapes)]


def prepare(case: AnyCase, subjects: Sequence[Attention]) -> Known:
    """Build a problem, compute its truth and the budgets of the declared tiers, and audit it.

    Raises SuiteFault when the oracle fails its audit.
    """
    known = Known(case.build())
    for tier, method in {(s.tier_for(m, case.dtype), m) for s in wanted(case, subjects) for m in s.methods}:
        for quantity, its in ARRAYS:
            if its == method:
                known.exact(quantity)
                getattr(known.budget(model(tier, case.dtype)), REFEREED[quantity])
    rng = np.random.default_rng((case.seed, zlib.crc32(case.key.encode()), SAMPLE))
    found = audit(known.truth, SAMPLE, rng)
    known.audit = Audit(1, found.checked, found.outside, found.share)
    if found.outside:
        raise SuiteFault(
            f"The oracle states an error that it does not keep ({case.key}, {found.first}): the referee puts "
            f"{found.outside} of {found.checked} audited entries outside. Please report this as a fault of hardmask."
        )
    return known


def judge_all(case: AnyCase, subjects: Sequence[Attention], policy: Policy, known: Known) -> AttentionResults:
    """Judge one problem for every subject that takes it, and the paths of each group against each other."""
    results: AttentionResults = {}
    views: list[AttentionView] = []
    for subject in wanted(case, subjects):
        if not takes(subject, known.problem):
            continue
        tallies = results.setdefault((subject.id, case.dtype), {})
        limit = limit_of(subject, known.problem)
        if limit:
            tally = tallies.setdefault((LIMITED, BEYOND + limit), AttentionTally(tier=""))
            tally.facts = [subject.limits[limit]]
            continue
        declared = contract(policy.contract_of(subject))
        view = AttentionView(subject, declared, known, policy.required)
        if declared.kind == "reject" and known.problem.empty.any():
            count(rejects(view), known.problem, tallies)
            continue
        outcomes: list[Judged] = [o for check in CHECKS for o in check(view)]
        if case.related:
            outcomes += relations.check(view)
        count(outcomes, known.problem, tallies)
        count_faults(view, tallies)
        views.append(view)
    for subject, outcomes in agreement(views):
        count(outcomes, known.problem, results[subject.id, case.dtype])
    return results


def count_faults(view: AttentionView, tallies: AttentionTallies) -> None:
    """Turn calls that gave no usable answer into errors of every declaration that they serve."""
    family = view.problem.family
    for method, fault in view.faults.items():
        for name, served in SERVED_BY.items():
            if any(method in s.split("+") for s in served):
                tally = tallies.setdefault((name, family), AttentionTally(tier=view.tier(method)))
                tally.errors += [s for s in (fault.sentence,) if s not in tally.errors]
    for name, fault in view.related_faults.items():
        tally = tallies.setdefault((name, family), AttentionTally(tier=view.tier("forward")))
        tally.errors += [s for s in (fault.sentence,) if s not in tally.errors]


def run(
    subjects: Sequence[Attention], cases: Sequence[AnyCase], policy: Policy, results: AttentionResults
) -> Iterator[Event]:
    """Judge every problem in order, in this process, and add what comes out to ``results``.

    Subjects are called from the calling thread only; a second thread computes the truth of the next problem meanwhile.
    """
    mine = [c for c in cases if wanted(c, subjects)]
    if not mine:
        return
    with ThreadPoolExecutor(1) as ahead:
        following = ahead.submit(prepare, mine[0], subjects)
        for index, case in enumerate(mine):
            yield CaseStarted(case, index, len(mine))
            known = following.result()
            if index + 1 < len(mine):
                following = ahead.submit(prepare, mine[index + 1], subjects)
            merge(results, judge_all(case, subjects, policy, known))
            yield CaseJudged(case, index, len(mine), known.audit)


@cache
def resolved(source: Source) -> tuple[Attention, ...]:
    """The attentions of a run in another process, resolved once: what they compile is then compiled once too."""
    return tuple(s for s in source.subjects if isinstance(s, Attention))


def judge_by_name(case: AnyCase, source: Source, policy: Policy) -> tuple[AttentionResults, Audit]:
    """Judge one problem in another process: subjects hold functions and do not travel, their names do."""
    subjects = resolved(source)
    known = prepare(case, subjects)
    return judge_all(case, subjects, policy, known), known.audit


def run_on(
    executor: Executor,
    source: Source,
    cases: Sequence[AnyCase],
    policy: Policy,
    results: AttentionResults,
) -> Iterator[Event]:
    """Judge every problem on an executor; the outcome does not depend on which worker takes which."""
    futures = [executor.submit(judge_by_name, case, source, policy) for case in cases]
    try:
        for index, (case, future) in enumerate(zip(cases, futures, strict=True)):
            yield CaseStarted(case, index, len(cases))
            found, audit = future.result()
            merge(results, found)
            yield CaseJudged(case, index, len(cases), audit)
    finally:
        for future in futures:
            future.cancel()
