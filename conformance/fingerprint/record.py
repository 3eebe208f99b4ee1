"""The typed records of a fingerprint."""

from __future__ import annotations

from typing import Any

import msgspec

SCHEMA = "hardmask-fingerprint/1"


class EmptyRow(msgspec.Struct, frozen=True, kw_only=True):
    """What a row without an allowed key gives.

    ``forward`` names the weights, or the output of an attention; ``weights`` those that an attention returns beside it.
    ``vjp`` and ``jvp``: ``zero``, ``NaN``, ``other``, ``error``, or ``-`` where the derivative is not offered.
    ``valid``: whether a flag marks the row. ``spreads``: the quantities of *other* rows, and shared gradients, that are
    not finite beside an empty row whose own cotangent is zero.
    """

    forward: str
    weights: str = ""
    vjp: str = "-"
    jvp: str = "-"
    valid: bool = False
    spreads: list[str] = []


class Isolation(msgspec.Struct, frozen=True, kw_only=True):
    """Whether something that nobody may read reaches an answer.

    ``place``: what was spoilt, with ``poison``, against a zero in its place. ``verdict``: ``kept`` (all bits agree),
    ``reached``, ``error``, or ``not reproducible`` (the same call twice gives other bits). ``detail`` says where; the
    smallest ``input`` that shows it holds the arguments, numbers as text.
    """

    place: str
    poison: str
    method: str
    verdict: str
    detail: str = ""
    input: dict[str, Any] = {}


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """What one subject does in one dtype, read from its answers alone.

    ``declared_mask`` is the entry point's own convention, as the adapter declares it; ``mask`` is how the subject read
    a mask in which True means allowed; one that reads it as ``blocked`` is probed further with the mask turned round.
    ``blocked_weight``: the largest weight of a blocked key (null: none was read). ``leaks_from``: the smallest blocked
    score, above allowed scores of 0, that carries weight. ``infinite_row``: a row whose allowed scores are all −∞.
    ``reading``: what a finite constant amounts to. ``allowed_nan``: by place, whether a genuine NaN is ``visible`` or
    ``hidden``. ``derivatives``: by method, ``yes`` or the reason. ``errors``: what failed, in sentences.
    """

    subject: str
    adapter: str
    operation: str
    path: str
    role: str
    dtype: str
    encoding: str = ""
    group: str = ""
    kernel: str = ""
    ran: str = ""
    declared_contract: str
    declared_mask: str
    mask: str = ""
    causal: str = ""
    empty_row: EmptyRow
    infinite_row: str = ""
    blocked_weight: float | None = None
    leaks_from: float | None = None
    reading: str = ""
    isolation: list[Isolation] = []
    allowed_nan: dict[str, str] = {}
    derivatives: dict[str, str] = {}
    errors: list[str] = []


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A subject and dtype that were not probed, and why."""

    subject: str
    dtype: str
    reason: str


class PathRecord(msgspec.Struct, frozen=True, kw_only=True):
    """How far one path of a group agrees with the others in one dtype.

    ``arrays``: outputs, gradients and tangents compared with those of the largest camp; ``identical``: of them, those
    with the same bits; ``disagreeing``: those beyond the budgets, or with a NaN of one side. ``share``: the largest
    difference as a part of both budgets, over those that agree.
    """

    group: str
    subject: str
    dtype: str
    arrays: int = 0
    identical: int = 0
    disagreeing: int = 0
    share: float = 0.0


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """One way in which a path disagrees with most paths of its group, over all problems.

    ``kind``: ``NaN`` (where the others have a number), ``no NaN`` (where they have one), ``value`` (beyond the sum of
    both budgets) or ``raises``. ``against``, ``dtypes``, ``quantities``, ``families``: wherever it was seen, in
    ``arrays`` arrays. The rest is the smallest problem found that shows it: the ``pair``, the ``method`` and
    ``quantity``, the entry ``at`` which their ``values`` disagree and the ``bound``, its ``sizes`` and its ``input``.
    """

    group: str
    subject: str
    against: list[str]
    kind: str
    dtypes: list[str]
    quantities: list[str]
    families: list[str]
    arrays: int
    pair: list[str]
    method: str
    quantity: str
    dtype: str
    at: list[int] = []
    values: list[str] = []
    bound: float | None = None
    sizes: dict[str, int] = {}
    input: dict[str, Any] = {}
    detail: str = ""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The document of ``hardmask fingerprint``."""

    schema: str
    hardmask: str
    environment: dict[str, Any]
    dtypes: list[str]
    complete: bool
    fingerprints: list[Fingerprint]
    skipped: list[Skipped]
    paths: list[PathRecord]
    disagreements: list[Disagreement]
    seconds: float
