"""Run every relation on every subject, dtype and length."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from ...adapters.registry import resolve, versions
from ...adapters.subject import Method, Subject
from ...spec.formats import DTYPES
from ...spec.oracle.referee import engine_name
from .. import __version__
from ..environment import environment
from ..finding import combine
from .algebra import laws
from .asked import Asked
from .compare import compared
from .record import SCHEMA, Comparison, Record
from .rows import build

MOST = 1 << 26
"""Entries of one batch at most: a run holds some ten float64 arrays of that size."""

NOT_SHOWN = (
    "A subject's answers were compared with each other. A fault that keeps all of these relations, such as a wrong "
    "temperature, is not seen: 'hardmask certify' compares with the true values.",
    "Rows that allow no key, and rows with NaN or infinity at an allowed score, were not asked for.",
    "Rows were sampled; the seed reproduces them.",
)


@dataclass(frozen=True)
class Request:
    """What to run: targets, lengths of the rows, rows per batch, dtypes and seed.

    Raises ValueError, with a sentence, for a value that is not one of those offered.
    """

    targets: tuple[str, ...]
    keys: tuple[int, ...] = (65536,)
    rows: int = 32
    dtypes: tuple[str, ...] = DTYPES
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.targets:
            raise ValueError(
                "Nothing to run: name an adapter, a subject or a file. 'hardmask list' shows what there is."
            )
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise ValueError(f"There is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
        for name, value in (("rows", self.rows), *(("keys", k) for k in self.keys)):
            if value < 1:
                raise ValueError(f"The number of {name} is {value}; give 1 or more.")
        if self.seed < 0:
            raise ValueError(f"A seed is a whole number from 0; {self.seed} is negative.")
        largest = max(self.keys, default=1) * self.rows
        if largest > MOST:
            raise ValueError(
                f"{self.rows} rows of {max(self.keys):,} keys take more memory than this run may use. Ask for at most "
                f"{max(1, MOST // max(self.keys)):,} rows (--rows)."
            )


@dataclass(frozen=True)
class Report:
    """A record with the exit code that it calls for, and the sentence behind it."""

    record: Record
    exit_code: int
    reason: str


def metamorphic(
    request: Request,
    *,
    listen: Callable[[str], None] = lambda what: None,
    subjects: Sequence[Subject] | None = None,
) -> Report:
    """Compare the answers of each subject with each other and return the report.

    ``listen`` hears what is asked next. ``subjects``: values to judge instead of the request's targets. An interruption
    (Ctrl-C) ends the run early; the report holds what was compared until then.

    Raises ValueError (of which ``TargetError`` is one) when the request cannot be carried out.

    >>> report = metamorphic(Request(("numpy.softmax-where",), keys=(100,), rows=8, dtypes=("float32",)))
    >>> report.exit_code, {c.verdict for c in report.record.comparisons}
    (0, {'pass'})
    """
    started = time.time()
    chosen = list(subjects) if subjects is not None else resolve(list(request.targets))
    found: list[Comparison] = []
    complete = True
    try:
        for dtype in request.dtypes:
            for keys in request.keys:
                rows = None
                for subject in chosen:
                    if dtype not in subject.dtypes:
                        found.append(_left_out(subject, dtype, keys, "forward", dtype))
                        continue
                    listen(f"{subject.id} {dtype} {keys}")
                    rows = rows or build(dtype, request.rows, keys, request.seed)
                    asked = Asked(subject, rows)
                    found += [_custom(subject, c) for c in (*laws(asked), *compared(asked, request.seed))]
                    found += [_left_out(subject, dtype, keys, m, m) for m in ("vjp", "jvp") if m not in subject.methods]
    except KeyboardInterrupt:
        complete = False
    record = Record(
        schema=SCHEMA,
        hardmask=__version__,
        environment=environment(versions(chosen), engine_name()),
        seed=request.seed,
        rows=request.rows,
        keys=list(request.keys),
        dtypes=list(request.dtypes),
        complete=complete,
        comparisons=found,
        not_shown=list(NOT_SHOWN),
        seconds=round(time.time() - started, 3),
    )
    return Report(record, *_exit(record, [s.id for s in chosen]))


def _custom(subject: Subject, c: Comparison) -> Comparison:
    """What passes under a rounding model that admits more than the tier does is permitted, never a plain pass."""
    changes = subject.custom(cast(Method, c.method), c.dtype)
    if not changes or c.verdict != "pass" or c.identical == c.rows:
        return c
    return msgspec.structs.replace(c, verdict="permitted", diagnosis=f"within the bound of a custom model: {changes}")


def _left_out(subject: Subject, dtype: str, keys: int, method: str, key: str) -> Comparison:
    what = "the subject does not offer it"
    return Comparison(
        subject=subject.id,
        dtype=dtype,
        keys=keys,
        method=method,
        relation="",
        declaration="",
        verdict="unsupported",
        diagnosis=subject.unsupported.get(key, what),
    )


def _exit(record: Record, subjects: Sequence[str]) -> tuple[int, str]:
    """0 where all answers agree, 1 where some do not; the reason names the first thing in the way."""
    if not record.complete:
        return 1, "The run was interrupted: it shows what was compared until then, and no more."
    verdicts = {s: combine(c.verdict for c in record.comparisons if c.subject == s) for s in subjects}
    bad = [s for s in subjects if any(c.subject == s and c.verdict == "fail" for c in record.comparisons)]
    if bad:
        return 1, f"The answers contradict each other: {', '.join(bad)}."
    odd = [s for s, verdict in verdicts.items() if verdict == "error"]
    if odd:
        return 1, f"Some calls gave no usable answer: {', '.join(odd)}."
    for c in record.comparisons:
        if c.verdict == "vacuous":
            return 1, f"The bound of {c.subject} says nothing about {c.relation} in {c.dtype} at {c.keys} keys."
    for s, verdict in verdicts.items():
        if verdict == "unsupported":
            return 1, f"The forward pass of {s} was never asked: it offers none of {', '.join(record.dtypes)}."
    return 0, "All answers agree with each other."
