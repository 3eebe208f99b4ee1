"""The typed records of a run: findings, their witnesses, and how verdicts combine."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

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


class Witness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The row on which a finding rests.

    ``batch`` and ``row`` reproduce it from the seed. Failures also carry the row itself as hexadecimal floats (exact),
    what was returned, the true value of every entry as the referee encloses it, and the offending ``index``. ``other``
    is what the returned row was compared with, where that is not the truth: another answer of the subject, or the
    weights that a derivative was given. Vectors are there where ``quantity`` needs them.

    A minimal row names the row that it was made from. It was judged in a call of its own; ``error``, ``budget`` and
    ``enclosure`` are what came of that.
    """

    batch: str
    row: int
    keys: int
    index: int | None = None
    quantity: str = ""
    scores: list[str] | None = None
    mask: list[bool] | None = None
    cotangent: list[str] | None = None
    tangent: list[str] | None = None
    returned: list[str] | None = None
    other: list[str] | None = None
    exact: list[str] | None = None
    note: str = ""
    error: float | None = None
    budget: float | None = None
    enclosure: list[str] | None = None


class AttentionWitness(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The attention problem on which a finding rests.

    ``problem`` reproduces it from the seed, ``sizes`` are ``(B, H, G, Lq, Lk, d, dv)``, ``index`` is the place in the
    ``quantity``, whose last entry is -1 where the vector as a whole is at fault. Failures also carry ``returned``, the
    enclosure of the ``exact`` value, and the arrays, flattened in C order, as hexadecimal floats (exact), where these
    are few enough to be read.
    """

    problem: str
    sizes: list[int]
    quantity: str = ""
    index: list[int] = []
    returned: str | None = None
    exact: list[str] | None = None
    error: float | None = None
    budget: float | None = None
    scale: str | None = None
    mask: list[bool] | None = None
    q: list[str] | None = None
    k: list[str] | None = None
    v: list[str] | None = None
    cotangent: list[str] | None = None
    tangents: list[list[str]] | None = None
    note: str = ""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What one declaration came to for one subject, dtype and case family.

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
    checked: int = 0
    failed: int = 0
    unmet: int = 0
    elements: int = 0
    tier: str = ""
    ratio: float | None = None
    error: float | None = None
    budget: float | None = None
    enclosure: list[str] | None = None
    witness: Witness | None = None
    minimal: Witness | None = None
    attention: AttentionWitness | None = None
    smallest: AttentionWitness | None = None


class Measured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How accurate a subject was found to be on one declaration in one dtype, whatever it declares.

    ``strongest``: the strongest tier that no row exceeded, empty where there is none. Where that is not the strongest
    of all: ``growth``, the largest error in budgets of the strongest tier by the size of the scores, keyed by what the
    largest score lies below; and the ``witness`` with the largest such error, its ``error``, and the ``budget`` that
    it exceeds.
    """

    subject: str
    declaration: str
    dtype: str
    declared: str
    strongest: str
    growth: dict[str, float] = {}
    error: float | None = None
    budget: float | None = None
    witness: Witness | None = None


class SweepRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One exhaustive sweep: exactly what was enumerated for one subject and dtype, and what came of it.

    ``enumerated`` says in words which rows; ``sample`` which of the scores that come first: ``first_scores`` were
    enumerated of the ``sampled`` out of all ``of``; ``sha256`` is the digest of the sample. ``complete``: the whole
    sample was enumerated; if not, ``note`` says why. ``judged``: rows that the tables of thresholds left open, and the
    ordinary check decided. ``not_correctly_rounded`` and ``largest_code_distance`` (of a finite output to the correctly
    rounded one) have one entry per key, and are null where the rows have several masks or the contract decides.
    """

    subject: str
    dtype: str
    kind: str
    method: str
    enumerated: str
    sample: str
    first_scores: int
    sampled: int
    of: int
    sha256: str
    rows: int
    outputs: int
    complete: bool
    note: str
    tier: str
    violations: int
    permitted: int
    judged: int
    not_correctly_rounded: list[int] | None
    share_not_correctly_rounded: float | None
    largest_code_distance: list[int] | None
    witness: Witness | None


class CustomModel(msgspec.Struct, frozen=True, kw_only=True):
    """A rounding model beyond the tiers: what was changed, in words, and which wrong softmaxes it would let through."""

    changes: str
    lets_through: list[str]


class SubjectRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A judged subject as the certificate names it.

    ``custom``: the model of each ``method:dtype`` that is judged by one which admits more than its tier.
    ``any_axis``: the dtypes in which it was judged along other axes too, with ``tier_other_axis`` added to ``tier``.
    For attention: the ``encoding`` of the mask, the declared ``causal`` alignment, the ``group`` of paths that should
    agree, the ``limits`` with their reasons, how the path is forced (``kernel``), and which kernel ``ran``.
    """

    id: str
    adapter: str
    role: str
    path: str
    contract: str
    declared_contract: str
    convention: str
    tier: dict[str, str]
    custom: dict[str, CustomModel]
    methods: list[str]
    dtypes: list[str]
    promises: list[str]
    any_axis: list[str]
    tier_other_axis: dict[str, str]
    unsupported: dict[str, str]
    verdict: Verdict
    operation: str = "masked-softmax"
    encoding: str = ""
    causal: str = ""
    group: str = ""
    limits: dict[str, str] = {}
    kernel: str = ""
    ran: str = ""


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The audit of the oracle: random rows of every batch, recomputed by the referee.

    ``rows``, ``entries``: how many were recomputed; the entries are those of weights and derivatives. ``engine``: the
    library that the referee computed with. ``share``: the largest part of its stated error that the oracle used. An
    entry beyond that error ends a run with exit code 3.
    """

    rows: int
    entries: int
    engine: str
    share: float


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """The document of a run. ``digest`` covers everything but itself and ``times``.

    ``request`` holds what was asked for beyond the subjects: effort, rounds, dtypes, contract and requirements.
    ``sweeps`` is empty unless an exhaustive sweep was asked for.
    """

    schema: str
    hardmask: str
    environment: dict[str, Any]
    seed: int
    request: dict[str, Any]
    complete: bool
    digest: str
    declarations: dict[str, dict[str, str]]
    subjects: list[SubjectRecord]
    findings: list[Finding]
    measured: list[Measured]
    sweeps: list[SweepRecord]
    audit: AuditRecord
    not_shown: list[str]
    times: dict[str, Any]
