"""Which finding of a certificate is meant, and which subject it speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache

from ...adapters.attention import Attention
from ...adapters.errors import TargetError
from ...adapters.registry import Anything
from ...adapters.remote import Options, source_of
from ..document import Certificate
from ..finding import Finding
from ..text import printable

NAMED = 5
"""Findings that a message names, at most."""


def failing(certificate: Certificate) -> list[Finding]:
    """The findings that failed or raised, in the certificate's order."""
    return [f for f in certificate.findings if f.verdict in ("fail", "error")]


def chosen(certificate: Certificate, prefix: str) -> Finding:
    """The one finding whose id begins with ``prefix``.

    Raises ValueError, with a sentence, where there is none, or more than one.
    """
    wanted = prefix.strip().lower()
    found = [f for f in certificate.findings if wanted and f.id.startswith(wanted)]
    if not found:
        raise ValueError(
            f"No finding of the certificate has an id that begins with '{printable(prefix, 40)}'. "
            "Run 'hardmask replay CERTIFICATE' to see the ids of what failed."
        )
    if len({f.id for f in found}) > 1:
        names = ", ".join(f.id for f in found[:NAMED]) + (", …" if len(found) > NAMED else "")
        raise ValueError(
            f"'{printable(prefix, 40)}' begins the ids of {len(found)} findings: {names}. Write more of it."
        )
    return found[0]


def subject_of(
    certificate: Certificate, finding: Finding, targets: Sequence[str], workers: Options | None = None
) -> Anything:
    """The subject that a finding speaks of: by its id, or as one of the user's own ``targets``; in a worker if there
    are options for workers, else in this process.

    Raises ValueError, with the mend, where it cannot be found here.
    """
    found = _here(certificate, [finding.subject], targets, workers).get(finding.subject)
    if found is not None:
        return found
    try:
        return source_of([finding.subject], specimens=True, options=workers).subjects[0]
    except TargetError as problem:
        own = ", ".join(printable(t, 60) for t in [t for t in targets if ":" in t][:NAMED])
        raise ValueError(
            f"The finding speaks of '{printable(finding.subject)}', which is not here: {problem}"
            + (f" Its targets were {own}." if own else "")
        ) from None


def company(
    certificate: Certificate, subject: Attention, targets: Sequence[str], workers: Options | None = None
) -> list[Attention]:
    """The subject, and the judged paths of its group, as far as they can be loaded here."""
    ids = [s.id for s in certificate.subjects if s.group and s.group == subject.group and s.id != subject.id]
    found = _here(certificate, ids, targets, workers)
    return [subject, *(s for s in map(found.get, ids) if isinstance(s, Attention))]


def _here(
    certificate: Certificate, wanted: Sequence[str], targets: Sequence[str], workers: Options | None
) -> dict[str, Anything]:
    """Those of the wanted subjects that can be had, by id: of the user's own targets, and of adapters."""
    found: dict[str, Anything] = {}
    for target in (t for t in targets if ":" in t):
        found.update({s.id: s for s in source_of([target], specimens=True, options=workers).subjects})
    judged = [s.id for s in certificate.subjects if s.adapter != "user" and s.id not in found]
    names = [name for name in wanted if name in judged]
    if names:
        found.update(_of_adapters(tuple(judged), tuple(names), workers))
    return {name: found[name] for name in wanted if name in found}


@lru_cache(maxsize=64)
def _of_adapters(judged: tuple[str, ...], wanted: tuple[str, ...], workers: Options | None) -> dict[str, Anything]:
    """The subjects of adapters: all that were judged, so that a framework is loaded once for all findings; where one of
    them is not here any more, those that are wanted and are here."""
    try:
        return {s.id: s for s in source_of(judged, specimens=True, options=workers).subjects}
    except TargetError:
        found: dict[str, Anything] = {}
        for name in wanted:
            with suppress(TargetError):
                found.update({s.id: s for s in source_of([name], specimens=True, options=workers).subjects})
        return found
