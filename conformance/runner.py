"""Run the cases against the subjects and tell what happened, as a stream of events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Protocol, Self, TypeVar, cast
from uuid import uuid4

import numpy as np

from ..adapters.attention import Attention
from ..adapters.remote import Source
from ..adapters.subject import Method, Subject
from ..spec.batch import Batch
from ..spec.contracts import contract
from ..spec.oracle.audit import Audit
from .audit import audited
from .calls import Fault
from .cases import Case
from .cases.build import SHORT
from .checks import CHECKS, SERVED_BY, layouts
from .checks.facts import fact
from .checks.forward import VALUES
from .diagnosis import weights_fault
from .judgement import Outcome, Tally
from .measure import Measures, measured
from .tally import Tallies, count
from .truth import SIDES, Truth
from .view import View

DEAR = ("shapes", "poison", "empty")
"""Kinds of rows that a kernel which is seen through the identity is not put to where they are long: it multiplies each
row by a matrix, and the short rows and the tiles show the same."""

VAGUE = ("empty row", "not zero", "declaration stale")
"""Diagnoses of an empty row that name no policy: where the call should have raised, that is all there is to say."""

Results = dict[tuple[str, str], Tallies]
"""Keyed by subject id and dtype."""


@dataclass(frozen=True)
class Policy:
    """What the user asked for beyond the subjects' own declarations.

    ``contract`` replaces every subject's contract for the run. ``required``: promises asked of every subject.
    ``measure``: also find the strongest tier under which each declaration holds.
    """

    contract: str | None = None
    required: frozenset[str] = frozenset()
    measure: bool = True

    def contract_of(self, subject: Subject | Attention) -> str:
        """The contract under which a subject is judged."""
        return self.contract or subject.contract


class Named(Protocol):
    """A batch or a problem that a run consists of."""

    @property
    def key(self) -> str:
        """Names it; together with the seed it reproduces it."""
        ...


@dataclass(frozen=True)
class CaseStarted:
    """A batch is about to be judged; ``index`` counts from 0."""

    case: Named
    index: int
    total: int


@dataclass(frozen=True)
class CaseJudged:
    """A batch was judged for every subject, by a truth that was audited."""

    case: Named
    index: int
    total: int
    audit: Audit


Event = CaseStarted | CaseJudged


def wanted(case: Case, subjects: Sequence[Subject]) -> list[Subject]:
    """The subjects that a batch is for, with the accuracy that they declare along its axis: those that have its dtype,
    and take its axis and rank, or, for other lengths, nothing but rows."""
    if case.kind in DEAR and case.keys > SHORT:
        subjects = [s for s in subjects if not s.finite_scores]
    if case.kind == "lengths":
        return [s for s in subjects if case.dtype in s.dtypes and not s.takes_axis(case.dtype)]
    if case.layout is None:
        return [s for s in subjects if case.dtype in s.dtypes]
    last = case.layout.last
    return [s if last else s.along_other_axis() for s in subjects if s.takes_axis(case.dtype)]


def judge(case: Case, subjects: Sequence[Subject], policy: Policy, known: Measures | None = None) -> Results:
    """Judge one batch for every subject that it is for; ``known`` is what the run has measured so far.

    Raises SuiteFault when the oracle fails its audit.
    """
    if not wanted(case, subjects):
        return {}
    return _judge_all(case, subjects, policy, prepare(case, subjects), {} if known is None else known)


def prepare(case: Case, subjects: Sequence[Subject]) -> Truth:
    """Build a batch, compute all that the subjects' rounding models will ask of its truth, and audit it."""
    truth = Truth(case.build())
    mine = wanted(case, subjects)
    for rounding in {s.rounding_for(m, case.dtype) for s in mine for m in s.methods}:
        truth.budget(rounding)
    models = {s.rounding_for(m, case.dtype) for s in mine for m in s.methods if m != "forward"}
    derivatives = bool(models) and not truth.batch.forward_only
    for rounding in models if derivatives else ():
        for side in SIDES:
            truth.derivative(side)
            truth.derivative_budget(rounding, side)
    truth.audit = audited(truth, case.seed, derivatives)
    return truth


def _judge_all(case: Case, subjects: Sequence[Subject], policy: Policy, truth: Truth, known: Measures) -> Results:
    results: Results = {}
    for subject in wanted(case, subjects):
        results[subject.id, case.dtype] = judge_subject(case, subject, policy, truth, known)
    return results


def judge_subject(
    case: Case, subject: Subject, policy: Policy, truth: Truth, known: Measures, *, named: bool = True
) -> Tallies:
    """Judge one subject on a batch whose truth is known; ``named``: with the diagnosis of every failed row."""
    declared = contract(policy.contract_of(subject))
    tallies: Tallies = {}
    if declared.kind == "reject" and truth.batch.empty.any():
        _rejects(case, subject, truth, tallies)
        if truth.batch.empty.all() or case.layout is not None:  # a mask that rows share has no rows to replace
            return tallies
        truth = Truth(_without_empty(truth.batch))
    view = View(subject, declared, truth, policy.required)
    checks = CHECKS if case.layout is None else (layouts.check,)
    judged = [(check, outcome) for check in checks for outcome in check(view)]
    # The strongest tier is measured on plain rows, whose tier is the one that it is compared with.
    if subject.finite_scores:
        judged = [(check, _finite(view, outcome)) for check, outcome in judged]
    measuring = policy.measure and case.layout is None
    for outcome in measured(view, judged, known) if measuring else [outcome for _, outcome in judged]:
        count(outcome, truth.batch, tallies, named=named)
    count_faults(case, view, tallies)
    for family in truth.batch.families:
        for name in VALUES:
            tally = tallies.get((name, family))
            if tally is not None and tally.unmet and not tally.checked:
                tally.facts.append(fact(view, family))
    return tallies


def _finite(view: View, outcome: Outcome) -> Outcome:
    """The outcome without the rows that hold a blocked score which is not finite."""
    left_out = np.any(~view.batch.mask & ~np.isfinite(view.batch.scores64), axis=1)
    unmet = left_out & outcome.applies
    if not unmet.any():
        return outcome
    applies = outcome.applies & ~left_out
    earlier = unmet if outcome.unmet is None else unmet | outcome.unmet
    return replace(outcome, applies=applies, failed=outcome.failed & applies, unmet=earlier)


def count_faults(case: Case, view: View, tallies: Tallies) -> None:
    """Turn calls that gave no usable answer into errors of every declaration that they serve."""
    for method in view.subject.methods:
        if method == "forward":
            answers = [view.forward]
        elif view.batch.forward_only:
            continue
        else:
            answers = [view.derivative(method, side) for side in SIDES]
        faults = [a.sentence for a in answers if isinstance(a, Fault)]
        if not faults:
            continue
        if case.kind == "facts" and all(a.raised for a in answers if isinstance(a, Fault)):
            # Rows that no theorem speaks of may be refused; the other batches hold the rows that may not.
            for family, members in zip(view.batch.families, view.batch.members, strict=True):
                refused = Tally(tier=view.tier(method), unmet=len(members), facts=faults[:1])
                tallies.setdefault((VALUES[0], family), refused)
            continue
        family = f"batch {case.kind}" if case.layout is None else str(case.layout)
        for name, served in SERVED_BY.items():
            if case.layout is not None and name not in layouts.NAMES:
                continue
            if any(method in s.split("+") for s in served):
                tally = tallies.setdefault((name, family), Tally(tier=view.tier(method)))
                tally.errors += [f for f in faults[:1] if f not in tally.errors]
    for name, fault in view.faults_serving.items():
        tally = tallies.setdefault((name, f"batch {case.kind}"), Tally(tier=view.tier("forward")))
        tally.errors.append(fault.sentence)


def _rejects(case: Case, subject: Subject, truth: Truth, tallies: Tallies) -> None:
    """Under ``reject`` the call must raise when a row allows no key: empty rows alone, and among others."""
    batch = truth.batch
    view = View(subject, contract("reject"), truth, frozenset())
    answer = view.forward
    tally = Tally(tier=view.tier("forward"), checked=int(batch.empty.sum()))
    tally.elements = tally.checked * batch.shape[1]
    if isinstance(answer, Fault):
        tally.permitted = tally.checked
        if not answer.raised:
            tally.errors.append(answer.sentence)
    else:
        tally.failed = tally.checked
        for name in weights_fault(view, np.flatnonzero(batch.empty)).tolist():
            word = "not rejected" if name in VAGUE else name
            tally.diagnoses[word] = tally.diagnoses.get(word, 0) + 1
    family = "empty" if batch.empty.all() else "one empty row"
    tallies["empty_row", family if case.layout is None else str(case.layout)] = tally


def _without_empty(batch: Batch) -> Batch:
    """The batch with each empty row replaced by the first row that is not."""
    donor = int(np.flatnonzero(~batch.empty)[0])
    rows = np.where(batch.empty, donor, np.arange(batch.shape[0]))
    parts = {name: getattr(batch, name)[rows] for name in ("scores", "mask", "cotangents", "tangents", "family")}
    return replace(batch, relations={}, permutation=None, **parts)


class Merges(Protocol):
    """Counts of rows or of vectors."""

    def merge(self, other: Self, /) -> None:
        """Add other counts."""
        ...


Merging = TypeVar("Merging", bound=Merges)


def merge(
    into: dict[tuple[str, str], dict[tuple[str, str], Merging]],
    more: dict[tuple[str, str], dict[tuple[str, str], Merging]],
) -> None:
    """Add the tallies of one batch, or of one problem, to those of the run."""
    for key, tallies in more.items():
        mine = into.setdefault(key, {})
        for name, tally in tallies.items():
            if name in mine:
                mine[name].merge(tally)
            else:
                mine[name] = tally


def run(subjects: Sequence[Subject], cases: Sequence[Case], policy: Policy, results: Results) -> Iterator[Event]:
    """Judge every case in order, in this process, and add what comes out to ``results``.

    Subjects are called from the calling thread only; a second thread computes the truth of the next batch meanwhile.
    """
    mine = [c for c in cases if wanted(c, subjects)]
    if not mine:
        return
    known: Measures = {}
    with ThreadPoolExecutor(1) as ahead:
        following = ahead.submit(prepare, mine[0], subjects)
        for index, case in enumerate(mine):
            yield CaseStarted(case, index, len(mine))
            truth = following.result()
            if index + 1 < len(mine):
                following = ahead.submit(prepare, mine[index + 1], subjects)
            merge(results, _judge_all(case, subjects, policy, truth, known))
            yield CaseJudged(case, index, len(mine), truth.audit)


@cache
def resolved(source: Source) -> tuple[Subject, ...]:
    """The masked softmaxes of a run in another process, resolved once: what they compile is then compiled once too."""
    return tuple(s for s in source.subjects if isinstance(s, Subject))


@lru_cache(maxsize=4)
def _known(run: str) -> Measures:
    return {}


def judge_by_name(case: Case, source: Source, policy: Policy, run: str) -> tuple[Results, Audit]:
    """Judge one batch in another process: subjects hold functions and do not travel, their names do.

    ``run`` names the run, so that this process remembers what it has measured in it.
    """
    subjects = resolved(source)
    truth = prepare(case, subjects)
    return _judge_all(case, subjects, policy, truth, _known(run)), truth.audit


def run_on(
    executor: Executor, source: Source, cases: Sequence[Case], policy: Policy, results: Results
) -> Iterator[Event]:
    """Judge every case on an executor; the outcome does not depend on which worker takes which case."""
    token = uuid4().hex
    futures = [executor.submit(judge_by_name, case, source, policy, token) for case in cases]
    try:
        for index, (case, future) in enumerate(zip(cases, futures, strict=True)):
            yield CaseStarted(case, index, len(cases))
            found, audit = future.result()
            merge(results, found)
            yield CaseJudged(case, index, len(cases), audit)
    finally:
        for future in futures:
            future.cancel()


def methods_of(subject: Subject, name: str) -> tuple[Method, ...]:
    """The methods that decide a declaration and that the subject offers; empty when it offers too few."""
    for served in SERVED_BY[name]:
        needed = cast("tuple[Method, ...]", tuple(served.split("+")))
        if set(needed) <= set(subject.methods):
            return needed
    return ()
