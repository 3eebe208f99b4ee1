"""Certify subjects: from a request to a certificate and an exit code."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from ..adapters.attention import Attention
from ..adapters.registry import Anything
from ..adapters.remote import InProcess, Options, Source, source_of
from ..adapters.remote.options import CALL_TIMEOUT, SUBJECT_TIMEOUT, workers
from ..adapters.subject import Subject
from ..spec.contracts import contract
from ..spec.formats import DTYPES
from ..spec.oracle.audit import Audit
from .cases import EFFORTS, plan
from .checks import SERVED_BY
from .conclusion import conclusion
from .document import Certificate, ErrorRecord, Measured, OutputRecord, SweepRecord
from .exhaustive import Enumeration, PieceDone, Swept, run_sweeps, sweep_findings
from .finding import Finding
from .frameworks import Frameworks
from .gate.known import Gate
from .minimise import minimised
from .observed import observed
from .records import certificate_of
from .runner import CaseJudged, Event, Policy, Results, run, run_on, wanted
from .suite_fault import SuiteFault
from .verdicts import accuracies, findings

if TYPE_CHECKING:
    from .attention.runner import AnyCase, AttentionResults

NO_GATE = Gate()
REQUIREMENTS = ("zero", "complete", "isolation", "allowed-nan-visible")


@dataclass(frozen=True)
class Request:
    """What to certify and how; ``enumeration`` adds exhaustive sweeps, or asks for nothing but them.

    ``in_process``: call subjects in the processes that judge them, rather than in workers of their own. ``python``: the
    interpreter that the workers run, by default this one; the further fields are the limits of
    :class:`~hardmask.adapters.remote.Options`.

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
    in_process: bool = True
    python: str | None = None
    call_timeout: float = CALL_TIMEOUT
    subject_timeout: float = SUBJECT_TIMEOUT
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError(
                "Nothing to certify: name an adapter, a subject or a file. 'hardmask list' shows what there is. "
                "Or list 'targets' in hardmask.toml, or in [tool.hardmask] of pyproject.toml, here."
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
        self.workers  # noqa: B018  # says what is wrong with where the subjects are to run

    @property
    def sampled(self) -> bool:
        """Whether rows are sampled at all, rather than only enumerated."""
        return self.enumeration is None or not self.enumeration.alone

    @property
    def workers(self) -> Options | None:
        """How the workers run, None in process."""
        return workers(
            self.in_process, self.python, self.call_timeout, self.subject_timeout, memory_limit=self.memory_limit
        )

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
    subjects: Sequence[Anything] | None = None,
    minimise: bool = True,
    gate: Gate = NO_GATE,
) -> Report:
    """Judge what the request names and return the report.

    ``listen`` hears every event of the run. ``executor``: any :class:`concurrent.futures.Executor`; without one the
    batches are judged in this process. ``subjects``: values to judge instead of the request's targets. ``minimise``:
    shrink failing rows, in this process, to the smallest that still fail. ``gate``: the deviations that let failures
    pass.

    An interruption (Ctrl-C) ends the run early; the report holds what was judged until then.

    Raises ValueError (of which ``TargetError`` is one) when the request cannot be carried out, and SuiteFault when
    hardmask contradicts itself.

    >>> report = certify(Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",)))
    >>> report.exit_code, report.certificate.subjects[0].verdict
    (0, 'pass')
    """
    started = time.time()
    source: Source = InProcess(request.targets, request.specimens)
    if subjects is None:
        source = source_of(request.targets, specimens=request.specimens, options=request.workers)
    with closing(source):
        return _certified(request, source, listen, executor, subjects, minimise, gate, started)


def _certified(
    request: Request,
    source: Source,
    listen: Callable[[Event | PieceDone], None],
    executor: Executor | None,
    subjects: Sequence[Anything] | None,
    minimise: bool,
    gate: Gate,
    started: float,
) -> Report:
    given = list(source.subjects if subjects is None else subjects)
    frameworks = Frameworks.of(given, source)
    chosen = [s for s in given if isinstance(s, Subject)]
    attentions = [s for s in given if isinstance(s, Attention)]
    planned = plan(request.effort, request.seed, request.dtypes, request.rounds) if request.sampled else []
    cases = [c for c in planned if wanted(c, chosen)]
    results: Results = {}
    swept: Swept = {}
    if executor is None or subjects is not None:
        events = run(chosen, cases, request.policy, results)
    else:
        events = run_on(executor, source, cases, request.policy, results)
    attended: AttentionResults = {}
    problems = _problems(request, attentions)
    if problems:
        from .attention import runner as attention

        here = executor is None or subjects is not None
        more_events = (
            attention.run(attentions, problems, request.policy, attended)
            if here or executor is None
            else attention.run_on(executor, source, problems, request.policy, attended)
        )
        events = chain(events, more_events)
    if request.effort == "deep" and chosen:
        events = chain(events, _searches(request, chosen, results, executor if subjects is None else None, source))
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
                source=source,
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
    errors: list[ErrorRecord] = []
    outputs: list[OutputRecord] = []
    on_attention: list[Finding] = []
    more: list[Finding] = []
    sweeps: list[SweepRecord] = []
    try:
        if request.sampled:
            found.extend(findings(chosen, request.dtypes, results))
            accuracy.extend(accuracies(chosen, request.dtypes, results))
            errors, outputs = observed([s.id for s in chosen], request.dtypes, results, SERVED_BY)
        if problems:
            from .attention.checks import SERVED_BY as SERVED_BY_ATTENTION
            from .attention.verdicts import attention_accuracies, attention_findings

            on_attention.extend(attention_findings(attentions, request.dtypes, attended))
            accuracy.extend(attention_accuracies(attentions, request.dtypes, attended))
            further = observed([s.id for s in attentions], request.dtypes, attended, SERVED_BY_ATTENTION)
            errors, outputs = [*errors, *further[0]], [*outputs, *further[1]]
        if request.enumeration is not None:
            more, sweeps = sweep_findings(chosen, request.enumeration, request.policy, request.seed, swept)
    except KeyboardInterrupt:
        complete = False
    if minimise and complete:
        # An interruption from here on loses minimal rows only.
        with suppress(KeyboardInterrupt):
            found = minimised(found, chosen, results, request.policy, cases)
            if problems:
                from .attention.minimised import attention_minimised

                on_attention = attention_minimised(on_attention, attentions, attended, request.policy)
    certificate = certificate_of(
        request,
        given,
        [*found, *on_attention, *more],
        accuracy,
        errors,
        outputs,
        sweeps,
        audit,
        complete,
        started,
        frameworks,
    )
    if swept:
        certificate.times["sweeps"] = {name: round(progress.seconds, 3) for name, progress in swept.items()}
    if complete:
        certificate = gate.applied(certificate)
    code, reason = conclusion(request, certificate, broken or "The run was interrupted")
    return Report(certificate, code, reason)


def _problems(request: Request, subjects: Sequence[Attention]) -> list[AnyCase]:
    """The attention problems of a run; without attention nothing of it is loaded."""
    if not subjects or not request.sampled:
        return []
    from .attention.known import reported
    from .attention.plan import plan_attention
    from .attention.runner import wanted as taken

    planned: list[AnyCase] = [*plan_attention(request.effort, request.seed, request.dtypes, request.rounds)]
    if request.effort != "smoke":
        planned += [case for case in reported() if case.dtype in request.dtypes]
    return [case for case in planned if taken(case, subjects)]


def _searches(
    request: Request, subjects: Sequence[Subject], results: Results, executor: Executor | None, source: Source
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
        source=source,
    )


__all__ = ["Report", "Request", "SuiteFault", "certify"]
