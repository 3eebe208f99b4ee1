"""Which finding of a certificate is meant, and which subject it speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TypeVar

from ...adapters.attention import Attention
from ...adapters.errors import TargetError
from ...adapters.registry import Anything
from ...adapters.remote import Options, source_of
from ..document import Certificate
from ..finding import Finding
from ..text import printable

NAMED = 5
"""Findings that a message names, at most."""

Kind = TypeVar("Kind", bound=Anything)


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
    own = [t for t in targets if ":" in t]
    for target in own:
        for subject in source_of([target], specimens=True, options=workers).subjects:
            if subject.id == finding.subject:
                return subject
    together = [s.id for s in certificate.subjects if not own or s.adapter != "user"]
    with suppress(TargetError):  # one of the others may not be here any more
        for subject in source_of(together, specimens=True, options=workers).subjects:
            if subject.id == finding.subject:
                return subject
    try:
        named = source_of([finding.subject], specimens=True, options=workers).subjects
    except TargetError as problem:
        where = f" Its targets were {', '.join(printable(t, 60) for t in targets[:NAMED])}." if own else ""
        raise ValueError(
            f"The finding speaks of '{printable(finding.subject)}', which is not here: {problem}{where}"
        ) from None
    return named[0]


def company(certificate: Certificate, subject: Attention, workers: Options | None) -> list[Attention]:
    """The subject, and the judged paths of its group, as far as they can be loaded here."""
    ids = [s.id for s in certificate.subjects if s.group and s.group == subject.group and s.id != subject.id]
    found = [subject]
    for name in ids:
        try:
            beside = source_of([name], specimens=True, options=workers).subjects
            found += [s for s in beside if isinstance(s, Attention)]
        except TargetError:
            continue
    return found
