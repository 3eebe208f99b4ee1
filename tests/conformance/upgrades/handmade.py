"""Certificates made by hand, to be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from hardmask.conformance.certificate import SCHEMA, sealed
from hardmask.conformance.document import AuditRecord, Certificate, ErrorRecord, Measured, OutputRecord, SubjectRecord
from hardmask.conformance.finding import Finding, Witness, combine, identity

ZERO, VALUES = "extension:empty-row", "Proofs.Autograd.HardMaskedSoftmax.spec_eq_weights"
DIGESTS = {False: "a" * 64, True: "b" * 64}


def finding(
    subject: str = "x.y",
    declaration: str = VALUES,
    dtype: str = "float32",
    family: str = "ties",
    verdict: Any = "pass",
    **fields: Any,
) -> Finding:
    """A finding with its id; what was judged has 64 rows."""
    judged = verdict not in ("unsupported", "hypothesis-unmet")
    fields = {"diagnosis": "", "checked": 64 if judged else 0, **fields}
    if verdict == "fail":
        row = Witness(
            batch="float32/shapes/64x2/0", row=3, keys=2, index=0, returned=["nan", "0x0.0p+0"], exact=["0.0", "0.0"]
        )
        fields = {"failed": 5, "witness": row, **fields}
    made = Finding(subject=subject, declaration=declaration, dtype=dtype, family=family, verdict=verdict, **fields)
    return msgspec.structs.replace(made, id=identity(made))


def subject(name: str = "x.y", findings: Sequence[Finding] = (), **fields: Any) -> SubjectRecord:
    """The record of a subject of the adapter that its id begins with."""
    usual: dict[str, Any] = {
        "adapter": name.partition(".")[0],
        "role": "entry-point",
        "path": "eager",
        "contract": "zero",
        "declared_contract": "zero",
        "convention": "allowed",
        "tier": {"forward:float32": "strict"},
        "custom": {},
        "methods": ["forward"],
        "dtypes": ["float32", "float16"],
        "promises": [],
        "any_axis": [],
        "tier_other_axis": {},
        "unsupported": {},
        "verdict": combine(f.verdict for f in findings if f.subject == name),
    }
    return SubjectRecord(id=name, **{**usual, **fields})


def output(changed: bool = False, name: str = "x.y", **fields: Any) -> OutputRecord:
    """An output record of one of two digests."""
    usual: dict[str, Any] = {
        "dtype": "float32",
        "quantity": "weights",
        "family": "ties",
        "batches": 1,
        "rows": 64,
        "declarations": [VALUES],
        "sha256": DIGESTS[changed],
    }
    return OutputRecord(subject=name, **{**usual, **fields})


def errors(counts: dict[str, int], name: str = "x.y", **fields: Any) -> ErrorRecord:
    """An error record with these bins, one entry per row."""
    total = sum(counts.values())
    keys = [float(key) for key in counts]
    usual: dict[str, Any] = {
        "declaration": VALUES,
        "dtype": "float32",
        "entries": total,
        "unusable": 0,
        "rows": total,
        "effective_rows": float(fields.get("rows", total)),
        "least": min(keys, default=None),
        "largest": max(keys, default=None),
        "counts": counts,
        "quantiles": {"50": 0.0, "99": 1.0},
    }
    return ErrorRecord(subject=name, **{**usual, **fields})


def certificate(
    findings: Sequence[Finding] = (),
    *,
    subjects: Sequence[SubjectRecord] | None = None,
    measured: Sequence[Measured] = (),
    errors: Sequence[ErrorRecord] = (),
    outputs: Sequence[OutputRecord] = (),
    request: dict[str, Any] | None = None,
    environment: dict[str, Any] | None = None,
    fingerprint: str = "one",
    **fields: Any,
) -> Certificate:
    """A sealed certificate of these records; the subjects are those of the findings unless they are given."""
    names = dict.fromkeys(f.subject for f in findings) or {"x.y": None}
    asked = {
        "targets": ["x"],
        "specimens": False,
        "effort": "smoke",
        "rounds": None,
        "dtypes": ["float32", "float16"],
        "contract": None,
        "require": [],
        "exhaustive": None,
    }
    usual: dict[str, Any] = {
        "schema": SCHEMA,
        "hardmask": "0.1.0",
        "seed": 0,
        "complete": True,
        "digest": "",
        "audit": AuditRecord(rows=1, entries=1, engine="mpmath", share=0.5),
        "not_shown": [],
        "times": {"started": 0.0, "seconds": 1.0},
        "deviations": [],
        "sweeps": [],
    }
    return sealed(
        Certificate(
            environment={"python": "3.11.7", "frameworks": {"x": "1.0"}} if environment is None else environment,
            request={**asked, **(request or {})},
            declarations={n: {"statement": n, "plain": n, "fingerprint": fingerprint} for n in (ZERO, VALUES)},
            subjects=[subject(n, findings) for n in names] if subjects is None else list(subjects),
            findings=list(findings),
            measured=list(measured),
            errors=list(errors),
            outputs=list(outputs),
            **{**usual, **fields},
        )
    )
