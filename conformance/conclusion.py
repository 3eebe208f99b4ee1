"""What a run comes to: the exit code, and the sentence behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .document import Certificate
from .finding import Finding
from .gate.known import known_count, stale

if TYPE_CHECKING:
    from .certification import Request


def conclusion(request: Request, certificate: Certificate, cut: str) -> tuple[int, str]:
    """0 conforms, 1 does not. The reason names the first thing in the way; ``cut`` says why a run ended early."""
    if not certificate.complete:
        reason = f"{cut}: the certificate holds what was judged until then and certifies nothing."
        if request.enumeration is not None:
            reason = f"Incomplete. {reason}"
            if request.enumeration.checkpoint is not None:
                reason += " The same command goes on from the checkpoint."
        return 1, reason
    open_failures = {f.subject for f in certificate.findings if f.verdict in ("error", "fail") and f.deviation is None}
    bad = [s.id for s in certificate.subjects if s.id in open_failures]
    sentences = stale(certificate.deviations)
    if bad:
        return 1, " ".join([f"Not certified: {', '.join(bad)}.", *sentences])
    if sentences:
        return 1, " ".join(["Not certified.", *sentences])
    by_cell: dict[tuple[str, str, str], list[Finding]] = {}
    for f in certificate.findings:
        by_cell.setdefault((f.subject, f.declaration, f.dtype), []).append(f)
    for (subject, name, dtype), cell in by_cell.items():
        judged = [f for f in cell if f.checked]
        if judged and all(f.verdict == "vacuous" for f in judged):
            return 1, f"Not certified: the budget of {subject} says nothing about {name} in {dtype}."
    reached = {f.subject for f in certificate.findings if f.checked or f.deviation is not None}
    for s in certificate.subjects:
        if s.id not in reached:
            offered = ", ".join(s.dtypes) or "no dtype"
            return 1, f"Not certified: the forward pass of {s.id} was never judged; it offers {offered}."
    if request.enumeration is not None:
        enumerated = {(sweep.subject, sweep.dtype) for sweep in certificate.sweeps if sweep.rows}
        for s in (s for s in certificate.subjects if s.operation == "masked-softmax"):
            for dtype in request.enumeration.dtypes:
                if (s.id, dtype) not in enumerated:
                    return 1, f"Not certified: no row of {s.id} was enumerated in {dtype}; name subjects that offer it."
    if "complete" in request.require:
        for f in certificate.findings:
            if f.verdict == "unsupported" and f.dtype in _offered(certificate, f.subject):
                why = f.diagnosis.rstrip(".")
                return 1, f"Not complete: {f.subject} was not judged on {f.declaration} in {f.dtype}: {why}."
    known = known_count(certificate.deviations)
    beyond = f", with {known} known deviation{'s' * (known > 1)}" if known else ""
    custom = [s.id for s in certificate.subjects if s.custom]
    if custom:
        return 0, f"Certified{beyond}, but under rounding models beyond the tiers: {', '.join(custom)}."
    if not request.sampled:
        return 0, f"Certified{beyond}, on the rows that were enumerated alone: every subject keeps what it declares."
    if known:
        return 0, f"Certified{beyond}: beyond {'them' if known > 1 else 'it'} every subject keeps what it declares."
    return 0, "Certified: every subject keeps what it declares."


def _offered(certificate: Certificate, subject: str) -> list[str]:
    return next(s.dtypes for s in certificate.subjects if s.id == subject)
