"""A certificate as a badge: the JSON that an endpoint badge of shields.io reads."""

from __future__ import annotations

from typing import Any

from ..gate.known import known_count
from .digest import Digest
from .outcome import Outcome
from .safe import line


def badge(outcome: Outcome, label: str = "hardmask") -> dict[str, Any]:
    """The badge of a certificate: what it came to, in a few words and a colour.

    The colour never says more than the words: ``certified`` alone is bright green, a certificate with known deviations
    or a custom rounding model is a paler one, an incomplete run is grey.
    """
    message, color = _said(outcome)
    return {"schemaVersion": 1, "label": line(label, 60), "message": message, "color": color}


def _said(outcome: Outcome) -> tuple[str, str]:
    certificate = outcome.certificate
    digest = Digest(certificate)
    used = known_count(certificate.deviations)
    if not certificate.complete:
        return "incomplete", "lightgrey"
    if outcome.certified:
        remarks = [_many(used, "known deviation")] if used else []
        remarks += ["custom model"] if any(s.custom for s in certificate.subjects) else []
        remarks += [] if certificate.request.get("effort") else ["enumerated rows only"]
        return ", ".join(["certified", *remarks]), "yellowgreen" if remarks else "brightgreen"
    failing = len({group[0].subject for group in digest.groups})
    if failing:
        return f"{failing} of {_many(len(certificate.subjects), 'subject')} fail{'' if failing > 1 else 's'}", "red"
    if digest.faults:
        return _many(len(digest.faults), "stale deviation"), "red"
    return "not certified", "red"


def _many(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")
