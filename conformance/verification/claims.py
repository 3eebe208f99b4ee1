"""The rows of a certificate as claims: what is said about which row, by which rounding model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from ...spec.batch import Floats
from ...spec.declaration import Declaration
from ...spec.formats import DTYPES, FORMATS
from ...spec.rounding import ladder
from ..document import Certificate, SubjectRecord
from ..finding import AttentionWitness, Finding, Verdict, Witness
from ..promises import PROMISES

CLOSE = 1e-6
"""Relative difference up to which a recorded error or budget counts as the recomputed one: they are evaluated in
float64, on another machine, and an error is rounded outwards by nothing."""


A_FEW = 8.0
"""Units in the last place by which a drawn number may differ on another processor."""


@dataclass(frozen=True, eq=False)
class RowClaim:
    """A row with what is claimed of it; ``exceeds``: that its error is beyond the budget (None: neither)."""

    where: str
    subject: SubjectRecord
    declaration: str
    dtype: str
    family: str
    verdict: Verdict
    diagnosis: str
    tier: str
    witness: Witness
    error: float | None
    budget: float | None
    enclosure: list[str] | None
    part: str

    @property
    def full(self) -> bool:
        """Whether the row itself is in the certificate."""
        return self.witness.scores is not None


@dataclass(frozen=True, eq=False)
class AttentionClaim:
    """A problem with what is claimed of it."""

    where: str
    subject: SubjectRecord
    finding: Finding
    witness: AttentionWitness
    part: str


@cache
def by_name() -> dict[str, Declaration]:
    """Every declaration and promise by its name."""
    from ...spec.catalogue import declarations

    return {d.name: d for d in (*declarations().values(), *PROMISES.values())}


def key_of(name: str) -> str:
    """The key of a declaration; empty for a name that hardmask does not know."""
    found = by_name().get(name)
    return "" if found is None else found.key


def named(f: Finding) -> str:
    """A finding as the report names it."""
    return f"{f.id or '(no id)'} ({f.subject} · {f.declaration} · {f.dtype} · {f.family})"


def row_claims(certificate: Certificate) -> Iterator[RowClaim]:
    """Every row that a certificate names: witnesses, minimal rows, and those beside the measured tiers."""
    subjects = {s.id: s for s in certificate.subjects}
    for f in certificate.findings:
        subject = subjects.get(f.subject)
        if subject is None or f.dtype not in DTYPES:
            continue
        about = f.declaration, f.dtype, f.family, f.verdict, f.diagnosis, f.tier
        if f.witness is not None:
            yield RowClaim(named(f), subject, *about, f.witness, f.error, f.budget, f.enclosure, "witness")
        if f.minimal is not None:
            w = f.minimal
            yield RowClaim(f"{named(f)}, minimal row", subject, *about, w, w.error, w.budget, w.enclosure, "minimal")
    for m in certificate.measured:
        subject = subjects.get(m.subject)
        if subject is None or m.witness is None or m.dtype not in DTYPES:
            continue
        strongest = ladder(m.dtype)[0]
        where = f"measured ({m.subject} · {m.declaration} · {m.dtype})"
        about = m.declaration, m.dtype, "", "fail", "", strongest
        yield RowClaim(where, subject, *about, m.witness, m.error, m.budget, None, "measured")


def attention_claims(certificate: Certificate) -> Iterator[AttentionClaim]:
    """Every problem of attention that a certificate names."""
    subjects = {s.id: s for s in certificate.subjects}
    for f in certificate.findings:
        subject = subjects.get(f.subject)
        if subject is None or f.dtype not in DTYPES:
            continue
        if f.attention is not None:
            yield AttentionClaim(named(f), subject, f, f.attention, "witness")
        if f.smallest is not None:
            yield AttentionClaim(f"{named(f)}, smallest problem", subject, f, f.smallest, "smallest")


def numbers(texts: list[str]) -> Floats:
    """Hexadecimal floats as an array. Raises ValueError, or OverflowError, for a text that is none."""
    return np.array([float.fromhex(t) for t in texts], np.float64)


def close(a: float, b: float, beside: float = 0.0) -> bool:
    """Whether two numbers agree, relative to the larger of them and of what stands beside them.

    >>> close(1.0, 1.0 + 1e-9), close(0.0, 1e-300)
    (True, False)
    """
    return a == b or abs(a - b) <= CLOSE * max(abs(a), abs(b), beside)


def near(a: Floats, b: Floats, dtype: str) -> bool:
    """Whether numbers differ by a few units in the last place of a format at most: logarithms depend on the processor.

    >>> one = np.array([1.0, np.nan])
    >>> near(one, one + 2.0**-23, "float32"), near(one, one + 2.0**-10, "float32")
    (True, False)
    """
    form = FORMATS[dtype]
    with np.errstate(invalid="ignore"):
        size = np.where(np.isfinite(a) & np.isfinite(b), np.maximum(np.abs(a), np.abs(b)), 0.0)
        step = np.ldexp(1.0, np.maximum(np.frexp(size)[1] - 1, form.emin) - form.precision + 1)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= A_FEW * step)
    return bool(same.all())


def finite(x: float | None) -> bool:
    """Whether there is a number."""
    return x is not None and math.isfinite(x)
