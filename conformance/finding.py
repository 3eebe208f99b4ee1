"""The typed records of what was found: findings, their witnesses, and how verdicts combine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""How many: never negative, and small enough for every reader of JSON to hold exactly."""

Hex = Annotated[str, msgspec.Meta(pattern=r"^(-?0x[01]\.(0|[0-9a-f]{13})p[+-][0-9]{1,4}|-?inf|nan)$")]
"""A float64, exactly, as :meth:`float.hex` writes it."""

Verdict = Literal["pass", "fail", "permitted", "hypothesis-unmet", "vacuous", "unsupported", "error"]

SEVERITY: tuple[Verdict, ...] = ("error", "fail", "vacuous", "permitted", "pass", "unsupported", "hypothesis-unmet")
"""Of several verdicts the first in this order is the combined one."""

BEYOND = "beyond a limit: "
"""Begins the family of problems that an attention says it does not take."""

IN_COMPANY = "fails only inside its batch"
"""Note of a witness that does not fail in a call of its own."""


def combine(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts; an empty whole is ``hypothesis-unmet``: nothing was judged.

    >>> combine(["pass", "permitted", "unsupported"])
    'permitted'
    """
    found = set(verdicts)
    return next((v for v in SEVERITY if v in found), "hypothesis-unmet")


class Witness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The row on which a finding rests.

    ``batch`` and ``row`` reproduce it from the seed. Failures also carry the row itself as hexadecimal floats (exact),
    what was returned, the true value of every entry as the referee encloses it, and the offending ``index``. ``other``
    is what the returned row was compared with, where that is not the truth: another answer of the subject, or the
    weights that a derivative was given. Vectors are there where ``quantity`` needs them.

    A minimal row names the row that it was made from. It was judged in a call of its own; ``error``, ``budget`` and
    ``enclosure`` are what came of that.
    """

    batch: str
    row: Count
    keys: Count
    index: Count | None = None
    quantity: str = ""
    scores: list[Hex] | None = None
    mask: list[bool] | None = None
    cotangent: list[Hex] | None = None
    tangent: list[Hex] | None = None
    returned: list[Hex] | None = None
    other: list[Hex] | None = None
    exact: list[str] | None = None
    note: str = ""
    error: float | None = None
    budget: float | None = None
    enclosure: list[str] | None = None


class AttentionWitness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The attention problem on which a finding rests.

    ``problem`` reproduces it from the seed, ``sizes`` are ``(B, H, G, Lq, Lk, d, dv)``, ``index`` is the place in the
    ``quantity``, whose last entry is -1 where the vector as a whole is at fault. Failures also carry ``returned``, the
    enclosure of the ``exact`` value, and the arrays, flattened in C order, as hexadecimal floats (exact), where these
    are few enough to be read.
    """

    problem: str
    sizes: list[Count]
    quantity: str = ""
    index: list[int] = []
    returned: Hex | None = None
    exact: list[str] | None = None
    error: float | None = None
    budget: float | None = None
    scale: Hex | None = None
    mask: list[bool] | None = None
    q: list[Hex] | None = None
    k: list[Hex] | None = None
    v: list[Hex] | None = None
    cotangent: list[Hex] | None = None
    tangents: list[list[Hex]] | None = None
    note: str = ""


class Deviation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a failure is known and let pass for now: the recorded ``reason``, a ``link`` and the day it ``expires``
    (ISO 8601), empty where none was given."""

    reason: str
    link: str = ""
    expires: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one declaration came to for one subject, dtype and case family.

    ``id`` names it: it is the same in every run (:func:`identity`). ``deviation``: the record that lets a failure pass.
    ``checked``, ``failed``, ``unmet``: rows that met the hypotheses, those of them that failed, and rows that did not
    meet them. ``elements``: entries of the checked rows. ``ratio`` is the largest ``error / budget``, null where the
    budget is 0 or the error is not a number; ``error`` and ``budget`` belong to the witness. ``enclosure``: bounds of
    the true value at the witness, as decimal strings. ``minimal``: the smallest row found that fails in the same way;
    at most one for each subject and declaration. For attention, ``attention`` and ``smallest`` hold the problem and the
    smallest problem in their place, and ``checked``, ``failed``, ``unmet`` count vectors: queries, or keys.
    """

    subject: str
    declaration: str
    dtype: str
    family: str
    verdict: Verdict
    diagnosis: str
    id: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{12})?$")] = ""
    checked: Count = 0
    failed: Count = 0
    unmet: Count = 0
    elements: Count = 0
    tier: str = ""
    ratio: float | None = None
    error: float | None = None
    budget: float | None = None
    enclosure: list[str] | None = None
    witness: Witness | None = None
    minimal: Witness | None = None
    attention: AttentionWitness | None = None
    smallest: AttentionWitness | None = None
    deviation: Deviation | None = None


def identity(finding: Finding) -> str:
    """The stable name of a finding: twelve hexadecimal digits of SHA-256 over what it is about, not what came of it.

    >>> identity(Finding(subject="x.y", declaration="d", dtype="float32", family="ties", verdict="pass", diagnosis=""))
    'cbfe6775d9bd'
    """
    about = "\n".join((finding.subject, finding.declaration, finding.dtype, finding.family))
    return hashlib.sha256(about.encode()).hexdigest()[:12]
