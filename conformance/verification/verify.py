"""Verify a certificate without the framework: everything that mathematics and the seed can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...spec.oracle.referee import engine_name
from .. import __version__
from ..certification import Request
from ..conclusion import conclusion
from ..document import Certificate
from ..environment import environment
from ..text import printable
from .asked import asked_of
from .attention import recompute_attention
from .claims import attention_claims, row_claims
from .consistency import check_consistency
from .histograms import check_histograms
from .ledger import Ledger, Problem
from .rebuilt import rebuild
from .rows import recompute_rows


@dataclass(frozen=True)
class Verification:
    """What came of a verification.

    ``says``: what the certificate comes to, in the sentence of its run, worked out again from its findings.
    ``problems``: what does not hold. ``checked``, ``recomputed``, ``open``: what agrees, what was computed again, what
    could not be, with counts.
    """

    digest: str
    hardmask: str
    verifier: str
    referee: str
    certified: bool
    says: str
    problems: list[Problem]
    checked: dict[str, int]
    recomputed: dict[str, int]
    open: dict[str, int]

    @property
    def holds(self) -> bool:
        """Whether nothing was found that does not hold."""
        return not self.problems


def verify(certificate: Certificate) -> Verification:
    """Check a certificate against itself, against the mathematics and against its seed.

    Nothing is called but hardmask's own oracle: no framework is imported. The certificate is one that
    :func:`hardmask.conformance.certificate.read` has read, which checks schema and digest.

    >>> from ..certification import Request, certify
    >>> report = certify(Request(("numpy.softmax-where",), effort="smoke", dtypes=("float32",)))
    >>> found = verify(report.certificate)
    >>> found.holds, found.says
    (True, 'Certified: every subject keeps what it declares.')
    """
    ledger = Ledger()
    rows, problems = list(row_claims(certificate)), list(attention_claims(certificate))
    same = _same_releases(certificate)
    # Whoever edited a certificate may have put numbers into it that overflow on the way.
    with np.errstate(all="ignore"):
        asked, request = asked_of(certificate) or (None, None)
        ledger.expect(asked is not None, "request", "No run can have been asked for this.")
        check_consistency(certificate, asked, ledger)
        check_histograms(certificate, ledger)
        recompute_rows((r for r in rows if r.full or r.part != "witness"), ledger)
        rebuild(certificate, asked, rows, ledger, same=same)
        recompute_attention(certificate, asked, problems, ledger, same=same)
        certified, says = _conclusion(certificate, request)
    _unwitnessed(certificate, ledger)
    return Verification(
        digest=certificate.digest,
        hardmask=certificate.hardmask,
        verifier=__version__,
        referee=engine_name(),
        certified=certified,
        says=says,
        problems=ledger.problems,
        checked=dict(+ledger.checked),
        recomputed=dict(+ledger.recomputed),
        open=dict(+ledger.open),
    )


def _same_releases(certificate: Certificate) -> bool:
    """Whether rows were drawn by the releases that are here, on such a machine: then they are the same to the bit."""
    here = environment({}, "")
    there = certificate.environment
    libraries = there.get("libraries")
    numpy = libraries.get("numpy") if isinstance(libraries, Mapping) else None
    alike = all(there.get(name) == here.get(name) for name in ("machine", "byteorder", "cpu"))
    return alike and certificate.hardmask == __version__ and numpy == here["libraries"].get("numpy")


def _conclusion(certificate: Certificate, request: Request | None) -> tuple[bool, str]:
    """What the run came to, from the findings and from what was asked for."""
    unknown = False, "It cannot be told what the run came to."
    if request is None:
        return unknown
    try:
        code, says = conclusion(request, certificate, "The run was cut short")
    except StopIteration:
        return unknown
    return code == 0, printable(says, 4000)


def _unwitnessed(certificate: Certificate, ledger: Ledger) -> None:
    """What was judged and left no numbers to recompute, by the reason."""
    for f in certificate.findings:
        row, problem = f.witness, f.attention
        if f.verdict == "error":
            ledger.open["calls that raised or returned nothing usable: that takes the framework"] += 1
        elif f.verdict == "fail" and row is None and problem is None:
            ledger.open["calls that returned where they had to raise: nothing is recorded of them"] += 1
        elif f.verdict in ("pass", "permitted", "vacuous"):
            full = (row is not None and row.scores is not None) or (
                problem is not None and problem.returned is not None
            )
            if not full:
                ledger.open["passes: what was returned is not recorded, so repeating them takes the framework"] += 1
        elif f.verdict == "hypothesis-unmet" and f.diagnosis:
            ledger.open["facts about rows that no theorem speaks of: that takes the framework"] += 1
    ledger.open["digests of outputs: repeating them takes the framework"] += len(certificate.outputs)
    ledger.open["histograms of errors: their entries are not recorded"] += len(certificate.errors)
