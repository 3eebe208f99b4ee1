"""The typed records of a certificate beside its findings: subjects, errors, outputs, and the document itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from .finding import Count, Finding, Verdict, Witness

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
"""A digest by SHA-256, in hexadecimal digits."""


class Measured(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
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


class SweepRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
    first_scores: Count
    sampled: Count
    of: Count
    sha256: Sha256
    rows: Count
    outputs: Count
    complete: bool
    note: str
    tier: str
    violations: Count
    permitted: Count
    judged: Count
    not_correctly_rounded: list[Count] | None
    share_not_correctly_rounded: float | None
    largest_code_distance: list[Count] | None
    witness: Witness | None


class CustomModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rounding model beyond the tiers: what was changed, in words, and which wrong softmaxes it would let through."""

    changes: str
    lets_through: list[str]


class SubjectRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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


class ErrorRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The signed errors of one subject on one declaration in one dtype, in ULPs, over all entries that may be rounded.

    A ULP is the distance of neighbouring numbers of the dtype at the true value. ``entries``: how many were compared,
    ``unusable``: those of them that were no finite number. ``rows``: rows (of attention: vectors) that they came from.
    ``least`` and ``largest`` are the extreme errors. ``counts``: entries by bin, keyed by the edge of the bin that lies
    farther from 0: ``"0.125"`` counts errors in (0.0625, 0.125], ``"-0.125"`` those in [-0.125, -0.0625), ``"0"`` those
    that are exactly 0. ``effective_rows``: how many rows with one number of entries tell as much, by Kish's
    formula ``(sum n)^2 / sum n^2``: errors within a row depend on each other. ``quantiles``: keyed by percentage,
    linear within a bin.
    """

    subject: str
    declaration: str
    dtype: str
    entries: Count
    unusable: Count
    rows: Count
    effective_rows: float
    least: float | None
    largest: float | None
    counts: dict[str, Count]
    quantiles: dict[str, float]


class OutputRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one method of a subject returned on one family of one dtype, as a digest of its bits.

    ``quantity``: what the method returned (weights, vjp, jvp; output, dq, dk, dv, tangent). ``batches``, ``rows``: how
    many answers the digest covers, and their rows. ``declarations``: those that these outputs decide in this family.
    ``sha256``: the sum modulo 2^256 of the SHA-256 digests of the answers, each over the names of its batch and family,
    its dtype, its shape and its bytes (:class:`~hardmask.conformance.bits.Bits`): equal digests are equal answers, bit
    for bit.
    """

    subject: str
    dtype: str
    quantity: str
    family: str
    batches: Count
    rows: Count
    declarations: list[str]
    sha256: Sha256


class DeviationRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recorded deviation and what became of it in this run.

    ``status``: ``used`` where it lets ``findings`` failures pass; else why the gate fails on it: ``expired``,
    ``unmatched`` (it names nothing that was judged), ``fixed`` (what it names does not fail any more). Names may be
    globs; an empty ``dtype`` or ``family`` means every one. A failure is counted under one deviation.
    """

    subject: str
    declaration: str
    dtype: str
    family: str
    reason: str
    link: str
    expires: str
    status: Literal["used", "expired", "unmatched", "fixed"]
    findings: Count


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The audit of the oracle: random rows of every batch, recomputed by the referee.

    ``rows``, ``entries``: how many were recomputed; the entries are those of weights and derivatives. ``engine``: the
    library that the referee computed with. ``share``: the largest part of its stated error that the oracle used. An
    entry beyond that error ends a run with exit code 3.
    """

    rows: Count
    entries: Count
    engine: str
    share: float


class Certificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The document of a run. ``digest`` covers everything but itself and ``times``.

    ``request`` holds what was asked for beyond the subjects: targets, effort, rounds, dtypes, contract, requirements.
    ``sweeps`` is empty unless an exhaustive sweep was asked for, ``deviations`` unless some are recorded.
    """

    schema: str
    hardmask: str
    environment: dict[str, Any]
    seed: Annotated[int, msgspec.Meta(ge=0)]
    request: dict[str, Any]
    complete: bool
    digest: Annotated[str, msgspec.Meta(pattern="^sha256:[0-9a-f]{64}$")]
    declarations: dict[str, dict[str, str]]
    subjects: list[SubjectRecord]
    findings: list[Finding]
    measured: list[Measured]
    errors: list[ErrorRecord]
    outputs: list[OutputRecord]
    deviations: list[DeviationRecord]
    sweeps: list[SweepRecord]
    audit: AuditRecord
    not_shown: list[str]
    times: dict[str, Any]
