"""Certify subjects: from a request to a certificate and an exit code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain

from ..adapters.registry import resolve, versions
from ..adapters.subject import Subject
from ..spec.contracts import contract
from ..spec.formats import DTYPES
from ..spec.oracle.audit import Audit
from ..spec.oracle.referee import engine_name
from . import __version__
from .cases import EFFORTS, plan
from .certificate import SCHEMA, sealed
from .checks import SERVED_BY
from .conclusion import conclusion
from .environment import environment
from .exhaustive import Enumeration, PieceDone, Swept, run_sweeps, sweep_findings
from .finding import (
    AuditRecord,
    Certificate,
    CustomModel,
    Finding,
    Measured,
    SubjectRecord,
    SweepRecord,
    combine,
)
from .minimise import minimised
from .promises import declared
from .runner import CaseJudged, Event, Policy, Results, run, run_on, wanted
from .suite_fault import SuiteFault
from .verdicts import accuracies, findings

REQUIREMENTS = ("zero", "complete", "isolation", "allowed-nan-visible")

ISOLATED = (
    "The isolated operation was judged on the rows listed here. That a whole model lets no information through by "
    "other ways is not shown."
)

SAMPLED = (
    "Floating-point rows{beyond} were sampled, not enumerated: agreement on them is evidence, and the seed reproduces "
    "it. The theorems themselves are proved by 'hardmask prove'.",
    "Other versions, devices, shapes and execution paths of the same framework were not run. Other axes, ranks and "
    "orders in memory were run for subjects that take any axis, and only those that the family of a finding names.",
)
"""What a run that samples rows does not show."""

ENUMERATED = (
    "Only what the sweeps name was enumerated: rows of one to three keys in a 16-bit format. Longer rows, other dtypes "
    "and forward-mode derivatives are judged on sampled rows, by a run without --exhaustive.",
    "Other versions, devices, execution paths, axes and ranks were not run.",
)
"""What a run that does nothing but enumerate rows does not show."""

NEVER = (
    "These declarations have proof legs only, and no floating-point check: numerator, denominator, weights, "
    "derivative, the causal-mask lemmas, the second derivative, and the declarations of attention.",
    "Shift, permutation, truncation and non-interference are compared on the weights; the derivatives of such rows are "
    "judged against their true values, and compared by 'hardmask metamorphic'.",
    "Masked attention, log-softmax and dropout are not judged.",
)
"""What no run shows."""


@dataclass(frozen=True)
class Request:
    """What to certify and how; ``enumeration`` adds exhaustive sweeps, or asks for nothing but them.

    Raises ValueError, with a sentence, for a value that is not one of those offered.
    """

    targets: tuple[str, ...]
    contract: str | None = None
    require: tuple[str, ...] = ()
    specimens: bool = False
    dtypes: tuple[str, ...] = DTYPES
    effort: str = "default"
    seed: int = 0
    rounds: int | None = None
    enumeration: Enumeration | None = None

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError(
                "Nothing to certify: name an adapter, a subject or a file. 'hardmask list' shows what there is."
            )
        if self.contract is not None:
            contract(self.contract)
        for name in self.require:
            if name not in REQUIREMENTS:
                raise ValueError(f"There is no requirement '{name}'. Choose from: {', '.join(REQUIREMENTS)}.")
        if "zero" in self.require and self.contract is not None and not contract(self.contract).zero:
            raise ValueError(
                f"'zero' is required and the contract '{self.contract}' is asked for: no run can do both. Drop one."
            )
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise ValueError(f"There is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
        if self.effort not in EFFORTS:
            raise ValueError(f"There is no effort '{self.effort}'. Choose from: {', '.join(EFFORTS)}.")
        if self.seed < 0:
            raise ValueError(f"A seed is a whole number from 0; {self.seed} is negative.")

    @property
    def sampled(self) -> bool:
        """Whether rows are sampled at all, rather than only enumerated."""
        return self.enumeration is None or not self.enumeration.alone

    @property
    def policy(self) -> Policy:
        """How the request changes the subjects' own declarations."""
        promised = frozenset(self.require) & {"isolation", "allowed-nan-visible"}
        return Policy("zero" if "zero" in self.require else self.contract, promised)


@dataclass(frozen=True)
class Report:
    """A certificate with the exit code that it calls for, and the sentence behind it."""

    certificate: Certificate
    exit_code: int
    reason: str


def certify(
    request: Request,
    *,
    listen: Callable[[Event | PieceDone], None] = lambda event: None,
    executor: Executor | None = None,
    subjects: Sequence[Subject] | None = None,
    minimise: bool = True,
) -> Report:
    """Judge what the request names and return the report.

    ``listen`` hears every event of the run. ``executor``: any :class:`concurrent.futures.Executor`; without one the
    batches are judged in this process. ``subjects``: values to judge instead of the request's targets. ``minimise``:
    shrink failing rows, in this process, to the smallest that still fail.

    An interruption (Ctrl-C) ends the run early; the report holds what was judged until then.

    Raises ValueError (of which ``TargetError`` is one) when the request cannot be carried out, and SuiteFault when
    hardmask contradicts itself.

    >>> report = certify(Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",)))
    >>> report.exit_code, report.certificate.subjects[0].verdict
    (0, 'pass')
    """
    started = time.time()
    chosen = list(subjects) if subjects is not None else resolve(list(request.targets), specimens=request.specimens)
    planned = plan(request.effort, request.seed, request.dtypes, request.rounds) if request.sampled else []
    cases = [c for c in planned if wanted(c, chosen)]
    results: Results = {}
    swept: Swept = {}
    if executor is None or subjects is not None:
        events = run(chosen, cases, request.policy, results)
    else:
        events = run_on(executor, request.targets, request.specimens, cases, request.policy, results)
    if request.effort == "deep":
        events = chain(events, _searches(request, chosen, results, executor if subjects is None else None))
    complete, broken, audit = True, "", Audit()
    try:
        for event in events:
            if isinstance(event, CaseJudged):
                audit += event.audit
            listen(event)
        if request.enumeration is not None:
            sweep_events = run_sweeps(
                chosen,
                request.enumeration,
                request.policy,
                request.seed,
                swept,
                targets=request.targets,
                specimens=request.specimens,
                given=subjects is not None,
            )
            with closing(sweep_events):  # an interruption writes the checkpoint now
                for done in sweep_events:
                    listen(done)
    except KeyboardInterrupt:
        complete = False
    except BrokenExecutor:
        complete = False
        broken = "A worker process died (a crash in a backend, or too little memory)"
    found: list[Finding] = []
    accuracy: list[Measured] = []
    more: list[Finding] = []
    sweeps: list[SweepRecord] = []
    try:
        if request.sampled:
            found.extend(findings(chosen, request.dtypes, results))
            accuracy.extend(accuracies(chosen, request.dtypes, results))
        if request.enumeration is not None:
            more, sweeps = sweep_findings(chosen, request.enumeration, request.policy, request.seed, swept)
    except KeyboardInterrupt:
        complete = False
    if minimise and complete:
        # An interruption from here on loses minimal rows only.
        with suppress(KeyboardInterrupt):
            found = minimised(found, chosen, results, request.policy, cases)
    certificate = _certificate(request, chosen, [*found, *more], accuracy, sweeps, audit, complete, started)
    if swept:
        certificate.times["sweeps"] = {name: round(progress.seconds, 3) for name, progress in swept.items()}
    code, reason = conclusion(request, certificate, broken or "The run was interrupted")
    return Report(certificate, code, reason)


def _searches(
    request: Request, subjects: Sequence[Subject], results: Results, executor: Executor | None
) -> Iterator[Event]:
    """The directed search of a deep run, which starts from what the run has found."""
    from .search import searches

    yield from searches(
        subjects,
        request.dtypes,
        request.seed,
        request.policy,
        results,
        executor=executor,
        targets=request.targets,
        specimens=request.specimens,
    )


def _certificate(
    request: Request,
    subjects: Sequence[Subject],
    found: list[Finding],
    accuracy: list[Measured],
    sweeps: list[SweepRecord],
    audit: Audit,
    complete: bool,
    started: float,
) -> Certificate:
    names = [declared(key) for key in SERVED_BY]
    return sealed(
        Certificate(
            schema=SCHEMA,
            hardmask=__version__,
            environment=environment(versions(subjects), engine_name()),
            seed=request.seed,
            request={
                "effort": request.effort if request.sampled else None,
                "rounds": request.rounds,
                "dtypes": list(request.dtypes),
                "contract": request.contract,
                "require": list(request.require),
                "exhaustive": None if request.enumeration is None else request.enumeration.record,
            },
            complete=complete,
            digest="",
            declarations={
                d.name: {"statement": d.statement, "plain": d.plain, "fingerprint": d.fingerprint} for d in names
            },
            subjects=[_record(request, s, found) for s in subjects],
            findings=found,
            sweeps=sweeps,
            audit=AuditRecord(rows=audit.rows, entries=audit.checked, engine=engine_name(), share=audit.share),
            measured=accuracy,
            not_shown=_not_shown(request),
            times={"started": round(started, 3), "seconds": round(time.time() - started, 3)},
        )
    )


def _not_shown(request: Request) -> list[str]:
    if not request.sampled:
        return [ISOLATED, *ENUMERATED, *NEVER]
    beyond = "" if request.enumeration is None else ", but for those that the sweeps name,"
    return [ISOLATED, SAMPLED[0].format(beyond=beyond), *SAMPLED[1:], *NEVER]


def _record(request: Request, subject: Subject, found: list[Finding]) -> SubjectRecord:
    return SubjectRecord(
        id=subject.id,
        adapter=subject.adapter,
        role=subject.role,
        path=subject.path,
        contract=request.policy.contract_of(subject),
        declared_contract=subject.contract,
        convention=subject.convention,
        tier={f"{m}:{d}": subject.tier_for(m, d) for d in subject.dtypes for m in subject.methods},
        custom=_custom(request, subject),
        methods=list(subject.methods),
        dtypes=list(subject.dtypes),
        promises=sorted(subject.promises),
        any_axis=[d for d in subject.dtypes if subject.takes_axis(d)],
        tier_other_axis=dict(subject.tier_other_axis),
        unsupported=dict(subject.unsupported),
        verdict=combine(f.verdict for f in found if f.subject == subject.id),
    )


def _custom(request: Request, subject: Subject) -> dict[str, CustomModel]:
    if not any(subject.custom(m, d) for d in subject.dtypes for m in subject.methods):
        return {}
    from .custom import custom_models  # with all the mutants: only where they are needed

    return custom_models(subject, request.seed)


__all__ = ["Report", "Request", "SuiteFault", "certify"]
