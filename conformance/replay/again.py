"""Run the case of one finding again, and say what has become of it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ...adapters.remote import Options
from ...adapters.subject import Subject
from ..attention.checks import SERVED_BY as SERVED_BY_ATTENTION
from ..checks import SERVED_BY
from ..document import Certificate
from ..finding import Finding, identity
from ..text import printable
from ..verification.asked import Asked, asked_of
from ..verification.claims import key_of
from .choice import subject_of
from .compared import Status, compared
from .problems import again_problem
from .rows import again_rows


@dataclass(frozen=True)
class Again:
    """What came of one case when it was run again.

    ``status``: ``passes`` (it passed, and does), ``fixed`` (it failed, and does not), ``still failing`` (with the
    same diagnosis and the same returned bits, where these are recorded), or ``different``. ``changed`` says what is.
    ``now``: the finding of today, with its witness. ``put``: what was put to the subject, in words.
    """

    status: Status
    changed: str
    now: Finding
    put: str

    @property
    def exit_code(self) -> int:
        """0 where nothing is wrong any more."""
        return 0 if self.status in ("passes", "fixed") else 1


def replay(certificate: Certificate, finding: Finding, workers: Options | None = None) -> Again:
    """Put the case of a finding to its subject once more, and to the check that judged it.

    ``workers``: how the worker is run that calls the subject; without it this process calls it.

    The smallest row or problem of the finding comes first, then the witness' own, then the whole batch or problem that
    the seed gives: a finding is ``fixed`` only if none of them fails.

    Raises ValueError, one sentence, for a finding that has no case, or whose case or subject cannot be had here.
    """
    found = asked_of(certificate)
    if found is None:
        raise ValueError("The certificate's request is none that this version can have carried out.")
    asked, request = found
    _replayable(finding, asked)
    subject = subject_of(certificate, finding, asked.targets, workers)
    key = key_of(finding.declaration)
    if isinstance(subject, Subject):
        if key not in SERVED_BY:
            raise ValueError(f"{_speaks(finding)}, a declaration of attention; '{subject.id}' is a masked softmax.")
        now, put = again_rows(subject, finding, key, request.policy, certificate.seed, asked)
    else:
        if key not in SERVED_BY_ATTENTION:
            raise ValueError(f"{_speaks(finding)}, a declaration of rows; '{subject.id}' is an attention.")
        now, put = again_problem(certificate, subject, finding, key, request.policy, asked, workers)
    now = msgspec.structs.replace(now, id=identity(now), family=finding.family)
    status, changed = compared(finding, now)
    return Again(status, changed, now, put)


def _speaks(finding: Finding) -> str:
    return f"Finding {finding.id} speaks of {printable(finding.declaration)}"


def _replayable(finding: Finding, asked: Asked) -> None:
    if finding.verdict in ("unsupported", "hypothesis-unmet"):
        raise ValueError(
            f"Finding {finding.id} is '{finding.verdict}': nothing was judged, so there is nothing to run again. "
            f"{printable(finding.diagnosis)}"
        )
    if finding.witness is None and finding.attention is None and finding.verdict != "error":
        raise ValueError(f"Finding {finding.id} names no row and no problem, so there is nothing to run again.")
    if not key_of(finding.declaration):
        raise ValueError(f"{_speaks(finding)}, which this version does not check.")
    if finding.dtype not in asked.dtypes and asked.exhaustive is None:
        raise ValueError(f"Finding {finding.id} is of {printable(finding.dtype)}, which the run was not asked for.")
