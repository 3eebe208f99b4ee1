"""The recorded deviations on a terminal: what is let pass, why, and until when; and what the gate fails on."""

from __future__ import annotations

from collections.abc import Iterator

from ..document import Certificate, DeviationRecord
from ..gate.known import stale


def known_deviations(certificate: Certificate) -> Iterator[str]:
    """Lines on every recorded deviation, those with the same reason together."""
    used: dict[tuple[str, str, str, str], list[DeviationRecord]] = {}
    for r in certificate.deviations:
        if r.status == "used":
            used.setdefault((r.subject, r.reason, r.link, r.expires), []).append(r)
    if used:
        yield "Known deviations:"
    for (subject, reason, link, expires), records in used.items():
        count = sum(r.findings for r in records)
        names = ", ".join(dict.fromkeys(r.declaration for r in records))
        yield f"  {subject} · {count} finding{'s' * (count != 1)} until {expires} · {names}"
        yield f"    {reason}" + (f" ({link})" if link else "")
    yield from stale(certificate.deviations)
