"""Turn the counts of sweeps into findings and records of the certificate.

A violating row is replayed through every ordinary check, with the answer that the sweep received. That names the fault
and the declarations, and the referee confirms it; if no check fails the row, hardmask is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from ...adapters.subject import Answer, Subject
from ...spec.batch import Array
from ...spec.contracts import contract
from ...spec.formats import FORMATS
from ...spec.rounding import TIERS
from ..checks import CHECKS
from ..document import SweepRecord
from ..finding import Finding
from ..judgement import Tally
from ..promises import declared
from ..runner import Policy
from ..suite_fault import SuiteFault
from ..tally import Tallies, count
from ..truth import Truth
from ..verdicts import CUSTOM, finding_of
from ..view import View, declared_tier
from .counts import Counts, Row
from .enumeration import Enumeration, Sample, sample
from .kinds import Kind
from .ordinary import Open, batch_of
from .run import Sweep, Swept, sweeps_of


def sweep_findings(
    subjects: Sequence[Subject], enumeration: Enumeration, policy: Policy, seed: int, swept: Swept
) -> tuple[list[Finding], list[SweepRecord]]:
    """The findings and the records of every sweep that was begun; what could not be swept is there with its reason.

    Raises SuiteFault when the ordinary checks do not fail a row that the sweep reports.
    """
    found: list[Finding] = list(_not_swept(subjects, enumeration))
    records: list[SweepRecord] = []
    samples = {dtype: sample(dtype, enumeration.fraction, seed) for dtype in enumeration.dtypes}
    for sweep in sweeps_of(subjects, enumeration):
        if sweep.name not in swept or not swept[sweep.name].pieces:
            continue
        counts = swept[sweep.name].counts
        mine = list(_findings(sweep, counts, policy, samples[sweep.dtype]))
        found += mine
        records.append(_record(sweep, counts, samples[sweep.dtype], mine))
    return found, records


def _not_swept(subjects: Sequence[Subject], enumeration: Enumeration) -> Iterator[Finding]:
    """Dtypes and methods that a subject does not have."""
    for subject in subjects:
        for dtype in enumeration.dtypes:
            for kind in enumeration.kinds:
                reason = ""
                if dtype not in subject.dtypes:
                    reason = subject.unsupported.get(dtype, f"the subject does not offer {dtype}")
                elif kind.method not in subject.methods:
                    reason = subject.unsupported.get(kind.method, f"the subject offers no {kind.method}")
                if reason:
                    for key in kind.declarations:
                        yield Finding(
                            subject=subject.id,
                            declaration=declared(key).name,
                            dtype=dtype,
                            family=family_of(kind),
                            verdict="unsupported",
                            diagnosis=reason,
                        )


def family_of(kind: Kind) -> str:
    """The family under which a sweep's findings stand."""
    return f"exhaustive {kind.key}"


def _findings(sweep: Sweep, counts: Counts, policy: Policy, taken: Sample) -> Iterator[Finding]:
    tier = declared_tier(sweep.subject, sweep.kind.method, sweep.dtype)
    failing = _replayed(sweep, counts, policy, taken) if counts.first else {}
    keys = [*sweep.kind.declarations, *(k for k in failing if k not in sweep.kind.declarations)]
    for key in keys:
        tally = failing.get(key, Tally(tier=tier))
        if key in sweep.kind.declarations:
            tally.checked, tally.elements, tally.permitted = counts.rows, counts.outputs, counts.permitted
            tally.errors = list(counts.errors)
            # A declaration that the replayed rows keep is not failed by the sweep.
            tally.failed = counts.violations if tally.failed else 0
            tally.blind = tally.tellable = 0
        finding = finding_of(sweep.subject.id, declared(key).name, sweep.dtype, family_of(sweep.kind), tally)
        if finding.verdict == "pass" and finding.tier not in TIERS:
            finding = msgspec.structs.replace(finding, verdict="permitted", diagnosis=CUSTOM)
        yield finding


def _replayed(sweep: Sweep, counts: Counts, policy: Policy, taken: Sample) -> dict[str, Tally]:
    """The tallies of the declarations that the first violating rows violate."""
    if counts.rejected is False:
        tier = declared_tier(sweep.subject, "forward", sweep.dtype)
        return {"empty_row": Tally(tier, failed=counts.violations, diagnoses={"not rejected": counts.violations})}
    dtype, kind, family = sweep.dtype, sweep.kind, family_of(sweep.kind)
    rows = Open(
        _decoded(counts.first, "scores", dtype),
        np.array([r.mask for r in counts.first]),
        _decoded(counts.first, "returned", dtype),
    )
    key = f"{dtype}/exhaustive/{kind.key}/seed {taken.seed}"
    batch = batch_of(rows, dtype, kind.cotangent, key, family)
    flags = [not empty if r.valid is None else r.valid for r, empty in zip(counts.first, batch.empty, strict=True)]
    flagged = any(r.valid is not None for r in counts.first)
    answer = Answer(rows.returned, np.array(flags)) if flagged else rows.returned
    replay: Subject = replace(
        sweep.subject,
        forward=(lambda *_: answer) if kind.cotangent is None else sweep.subject.forward,
        vjp=None if kind.cotangent is None else (lambda *_: rows.returned),
        jvp=None,
        promises=frozenset(),
    )
    view = View(replay, contract(policy.contract_of(sweep.subject)), Truth(batch), frozenset())
    tallies: Tallies = {}
    with np.errstate(invalid="ignore"):
        for check in CHECKS:
            for outcome in check(view):
                if kind.cotangent is None or outcome.quantity == "vjp":
                    count(outcome, batch, tallies)
    failing = {name: tally for (name, _), tally in tallies.items() if tally.failed}
    if not failing:
        raise SuiteFault(
            f"The sweep '{sweep.name}' reports a violation that no ordinary check finds in its row "
            f"{rows.scores[0].tolist()}. Please report this as a fault of hardmask."
        )
    return failing


def _decoded(rows: Sequence[Row], field: str, dtype: str) -> Array:
    codes = np.array([getattr(r, field) for r in rows], dtype=np.uint16)
    decoded: Array = codes.view(FORMATS[dtype].dtype)
    return decoded


def _record(sweep: Sweep, counts: Counts, taken: Sample, findings: Sequence[Finding]) -> SweepRecord:
    kind = sweep.kind
    witness = next((f.witness for f in findings if f.verdict == "fail" and f.witness is not None), None)
    outputs = counts.outputs
    share = None
    if counts.misrounded is not None and outputs:
        share = sum(counts.misrounded) / outputs
    whole = counts.firsts == len(taken.indices) and not counts.over
    return SweepRecord(
        subject=sweep.subject.id,
        dtype=sweep.dtype,
        kind=kind.key,
        method=kind.method,
        enumerated=kind.words,
        sample=taken.words,
        first_scores=counts.firsts,
        sampled=len(taken.indices),
        of=taken.of,
        sha256=taken.sha256,
        rows=counts.rows,
        outputs=outputs,
        complete=whole or bool(counts.rejected),
        note=_note(counts),
        tier=declared_tier(sweep.subject, kind.method, sweep.dtype),
        violations=counts.violations,
        permitted=counts.permitted,
        judged=counts.judged,
        not_correctly_rounded=counts.misrounded,
        share_not_correctly_rounded=share,
        largest_code_distance=counts.distance,
        witness=witness,
    )


def _note(counts: Counts) -> str:
    if counts.errors:
        return counts.errors[0]
    if counts.rejected is not None:
        return "One call with such rows, which has to raise."
    return "Ended early: there are too many violations to go on." if counts.stopped else ""
