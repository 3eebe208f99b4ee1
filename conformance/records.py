"""The records of a run: subjects, what was asked for, what is not shown; put together and sealed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..adapters.attention import Attention
from ..adapters.errors import said
from ..adapters.registry import Anything
from ..adapters.subject import Subject
from ..spec.oracle.audit import Audit
from ..spec.oracle.referee import engine_name
from . import __version__
from .certificate import SCHEMA, sealed
from .checks import SERVED_BY
from .document import (
    AuditRecord,
    Certificate,
    CustomModel,
    ErrorRecord,
    Measured,
    OutputRecord,
    SubjectRecord,
    SweepRecord,
)
from .environment import environment
from .finding import Finding, combine, identity
from .frameworks import Frameworks
from .promises import declared

if TYPE_CHECKING:
    from .certification import Request

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
    "derivative, the causal-mask lemmas, and the second derivative.",
    "Shift, permutation, truncation and non-interference are compared on the weights; the derivatives of such rows are "
    "judged against their true values, and compared by 'hardmask metamorphic'.",
    "Log-softmax and dropout are not judged.",
)
"""What no run shows."""


ATTENTION = (
    "Attention was judged on the shapes, masks and layouts that the families name, not on all. dot_backward_comm has "
    "proof legs only.",
    "Which kernel ran was seen on a small problem, where it could be forced or seen at all; a framework may choose "
    "another one for other sizes.",
)
"""What a run on attention does not show."""


def certificate_of(
    request: Request,
    subjects: Sequence[Anything],
    found: list[Finding],
    accuracy: list[Measured],
    errors: list[ErrorRecord],
    outputs: list[OutputRecord],
    sweeps: list[SweepRecord],
    audit: Audit,
    complete: bool,
    started: float,
    frameworks: Frameworks,
) -> Certificate:
    """The certificate of a run, sealed."""
    served = dict(SERVED_BY) if any(isinstance(s, Subject) for s in subjects) else {}
    if any(isinstance(s, Attention) for s in subjects):
        from .attention.checks import SERVED_BY as FURTHER

        served.update(FURTHER)
    names = [declared(key) for key in served]
    return sealed(
        Certificate(
            schema=SCHEMA,
            hardmask=__version__,
            environment={**environment(frameworks.versions, engine_name()), **frameworks.record},
            seed=request.seed,
            request={
                "targets": list(request.targets),
                "specimens": request.specimens,
                "effort": request.effort if request.sampled else None,
                "rounds": request.rounds,
                "dtypes": list(request.dtypes),
                "contract": request.contract,
                "require": list(request.require),
                "exhaustive": None if request.enumeration is None else request.enumeration.record,
                "in_process": frameworks.in_process,
            },
            complete=complete,
            digest="",
            declarations={
                d.name: {"statement": d.statement, "plain": d.plain, "fingerprint": d.fingerprint} for d in names
            },
            subjects=[_record(request, s, found) for s in subjects],
            findings=[msgspec.structs.replace(f, id=identity(f)) for f in found],
            sweeps=sweeps,
            audit=AuditRecord(rows=audit.rows, entries=audit.checked, engine=engine_name(), share=audit.share),
            measured=accuracy,
            errors=errors,
            outputs=outputs,
            deviations=[],
            not_shown=_not_shown(request, subjects),
            times={"started": round(started, 3), "seconds": round(time.time() - started, 3)},
        )
    )


def _not_shown(request: Request, subjects: Sequence[Anything]) -> list[str]:
    if any(isinstance(s, Attention) for s in subjects) and request.sampled:
        return [*_not_shown(request, ()), *ATTENTION]
    if not request.sampled:
        return [ISOLATED, *ENUMERATED, *NEVER]
    beyond = "" if request.enumeration is None else ", but for those that the sweeps name,"
    return [ISOLATED, SAMPLED[0].format(beyond=beyond), *SAMPLED[1:], *NEVER]


def _record(request: Request, subject: Anything, found: list[Finding]) -> SubjectRecord:
    return SubjectRecord(
        id=subject.id,
        adapter=subject.adapter,
        role=subject.role,
        path=subject.path,
        contract=request.policy.contract_of(subject),
        declared_contract=subject.contract,
        convention=subject.convention,
        tier={f"{m}:{d}": subject.tier_for(m, d) for d in subject.dtypes for m in subject.methods},
        methods=list(subject.methods),
        dtypes=list(subject.dtypes),
        promises=sorted(subject.promises),
        unsupported=dict(subject.unsupported),
        verdict=combine(f.verdict for f in found if f.subject == subject.id),
        **(_of_rows(request, subject) if isinstance(subject, Subject) else _of_attention(subject)),
    )


def _of_rows(request: Request, subject: Subject) -> dict[str, Any]:
    """What a masked softmax alone declares."""
    return {
        "custom": _custom(request, subject),
        "any_axis": [d for d in subject.dtypes if subject.takes_axis(d)],
        "tier_other_axis": dict(subject.tier_other_axis),
    }


def _of_attention(subject: Attention) -> dict[str, Any]:
    """What an attention alone declares."""
    return {
        "custom": {},
        "any_axis": [],
        "tier_other_axis": {},
        "operation": subject.operation,
        "encoding": subject.encoding,
        "causal": subject.causal or "",
        "group": subject.group,
        "limits": dict(subject.limits),
        "kernel": subject.kernel,
        "ran": _ran(subject.ran),
    }


def _ran(ran: Callable[[], str] | None) -> str:
    """What the subject says about the kernel that computed a small problem."""
    if ran is None:
        return ""
    try:
        return str(ran())
    except Exception as problem:
        return f"could not be seen: {said(problem)}"


def _custom(request: Request, subject: Subject) -> dict[str, CustomModel]:
    if not any(subject.custom(m, d) for d in subject.dtypes for m in subject.methods):
        return {}
    from .custom import custom_models  # with all the mutants: only where they are needed

    return custom_models(subject, request.seed)
