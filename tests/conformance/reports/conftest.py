"""Certificates to report on: one that fails, one that passes, one with known deviations, one full of hostile text."""

from __future__ import annotations

import msgspec
import pytest

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.document import Certificate, DeviationRecord, ErrorRecord
from hardmask.conformance.finding import Deviation
from hardmask.conformance.reports import Outcome

replace = msgspec.structs.replace

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "a|b`c``d*e_f[g](javascript:alert(3))",
    "nul\x00 esc\x1b[31m bell\x07",
    "\u202eright to left\u2066",
    "lone \ud800 surrogate \ufffe",
    "]]> --> </style></svg></details>",
    "line\nfeed\r\n## heading\n- list",
    "{{ 7 * 7 }} {% raw %}",
    "@everyone :bomb: https://evil.example www.evil.example",
    "long " * 4000,
)
"""Texts that a subject or a file may bring along."""


def outcome(*targets: str, dtypes: tuple[str, ...] = ("float32", "bfloat16")) -> Outcome:
    report = certify(Request(targets, dtypes=dtypes, effort="smoke"))
    return Outcome(report.certificate, report.exit_code, report.reason)


@pytest.fixture(scope="session")
def failing() -> Outcome:
    """Three subjects: one passes, one is permitted to depart from the theorems, one fails."""
    found = outcome("numpy.softmax-where", "numpy.fill-inf", "numpy.replace-min", "numpy.attention[-inf]")
    errors = [histogram(s.id, "extension:row-sum") for s in found.certificate.subjects]
    return replace_certificate(found, errors=errors)


@pytest.fixture(scope="session")
def passing() -> Outcome:
    return outcome("numpy.softmax-where", dtypes=("float32",))


@pytest.fixture(scope="session")
def deviating(failing: Outcome) -> Outcome:
    """The failing certificate, with every failure recorded as a known deviation."""
    known = Deviation(reason="fixed upstream", link="https://example.org/1?a=b&c=d", expires="2027-01-31")
    findings = [
        replace(f, deviation=known) if f.verdict in ("fail", "error") else f for f in failing.certificate.findings
    ]
    record = deviation("used", findings=sum(f.deviation is not None for f in findings))
    reason = "Certified, with 1 known deviation."
    return Outcome(replace(failing.certificate, findings=findings, deviations=[record]), 0, reason)


@pytest.fixture(scope="session")
def hostile(failing: Outcome) -> Outcome:
    """The failing certificate, with hostile text wherever a certificate can hold text."""
    return poisoned(failing)


def poisoned(found: Outcome) -> Outcome:
    certificate = found.certificate
    names = {s.id: HOSTILE[i % len(HOSTILE)] + str(i) for i, s in enumerate(certificate.subjects)}
    texts = iter(HOSTILE * (len(certificate.findings) // len(HOSTILE) + 1))
    link = "javascript:alert(4)"
    findings = [
        replace(f, subject=names[f.subject], diagnosis=f"{next(texts)}", family=HOSTILE[i % 7], tier=HOSTILE[0])
        for i, f in enumerate(certificate.findings)
    ]
    findings[0] = replace(
        findings[0], verdict="fail", deviation=Deviation(reason=HOSTILE[0], link=link, expires=HOSTILE[1])
    )
    changed = replace(
        certificate,
        findings=findings,
        subjects=[
            replace(s, id=names[s.id], adapter=HOSTILE[0], path=HOSTILE[2], contract=HOSTILE[3], kernel=HOSTILE[4])
            for s in certificate.subjects
        ],
        measured=[replace(m, subject=names[m.subject], strongest=HOSTILE[2]) for m in certificate.measured],
        errors=[replace(e, subject=names[e.subject], dtype=HOSTILE[0]) for e in certificate.errors],
        deviations=[
            DeviationRecord(
                subject=text,
                declaration=text,
                dtype=text,
                family=text,
                reason=text,
                link=link,
                expires=text,
                status=s,
                findings=1,
            )
            for text, s in zip(HOSTILE, ("used", "expired", "unmatched", "fixed") * 3, strict=False)
        ],
        declarations={
            name: {"statement": HOSTILE[i % len(HOSTILE)], "plain": HOSTILE[0], "fingerprint": ""}
            for i, name in enumerate(certificate.declarations)
        },
        environment={"frameworks": {text: text for text in HOSTILE}, "settings": {"A": HOSTILE[0]}, "system": 3},
        request={**certificate.request, "targets": list(HOSTILE)},
        not_shown=list(HOSTILE),
        times={"started": "soon", "seconds": None},
    )
    return Outcome(changed, 1, f"Not certified: {HOSTILE[0]}.", HOSTILE[1])


def deviation(status: str, findings: int = 0) -> DeviationRecord:
    record = {
        "subject": "numpy.replace-min",
        "declaration": "*",
        "dtype": "",
        "family": "",
        "reason": "fixed upstream",
        "link": "https://example.org/1?a=b&c=d",
        "expires": "2027-01-31",
        "status": status,
        "findings": findings,
    }
    return msgspec.convert(record, DeviationRecord)


def histogram(subject: str, declaration: str) -> ErrorRecord:
    return ErrorRecord(
        subject=subject,
        declaration=declaration,
        dtype="float32",
        entries=1111,
        unusable=1,
        rows=70,
        effective_rows=70.0,
        least=-0.4,
        largest=1.7,
        counts={"-0.5": 10, "-0.25": 100, "0": 600, "0.25": 300, "0.5": 90, "2": 10},
        quantiles={"1": -0.3, "50": 0.0, "99": 0.5},
    )


def replace_certificate(found: Outcome, **changes: object) -> Outcome:
    certificate: Certificate = replace(found.certificate, **changes)
    return Outcome(certificate, found.exit_code, found.reason, found.name)
