"""What was observed beside the verdicts: the distribution of the errors, and digests of the outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .document import ErrorRecord, OutputRecord
from .judgement import Counts, finite
from .promises import declared
from .spread import Spread

CountsBy = Mapping[tuple[str, str], Counts]
"""Keyed by declaration and family."""

METHOD = {
    "weights": "forward",
    "output": "forward",
    "vjp": "vjp",
    "dq": "vjp",
    "dk": "vjp",
    "dv": "vjp",
    "jvp": "jvp",
    "tangent": "jvp",
}
"""The method that returns each quantity."""


def errors_of(subject: str, dtype: str, counts: CountsBy, served: Sequence[str]) -> Iterator[ErrorRecord]:
    """The distribution of the errors of one subject in one dtype, for each declaration that compared entries."""
    merged: dict[str, Spread] = {}
    for (key, _), tally in counts.items():
        if tally.spread.entries:
            merged.setdefault(key, Spread()).merge(tally.spread)
    for key in served:
        spread = merged.get(key)
        if spread is not None:
            yield ErrorRecord(
                subject=subject,
                declaration=declared(key).name,
                dtype=dtype,
                entries=spread.entries,
                unusable=spread.unusable,
                rows=spread.rows,
                effective_rows=spread.effective_rows,
                least=finite(spread.least),
                largest=finite(spread.largest),
                counts=spread.by_edge,
                quantiles=spread.quantiles,
            )


def outputs_of(
    subject: str, dtype: str, counts: CountsBy, served: Mapping[str, Sequence[str]]
) -> Iterator[OutputRecord]:
    """The digests of what one subject returned in one dtype, by quantity and family."""
    judged = {name for name, tally in counts.items() if tally.checked}
    for (_, family), tally in sorted(counts.items()):
        for quantity, bits in sorted(tally.outputs.items()):
            method = METHOD[quantity]
            decided = [
                key
                for key, methods in served.items()
                if (key, family) in judged and any(method in m.split("+") for m in methods)
            ]
            yield OutputRecord(
                subject=subject,
                dtype=dtype,
                quantity=quantity,
                family=family,
                batches=bits.batches,
                rows=bits.rows,
                declarations=[declared(key).name for key in decided],
                sha256=bits.hexadecimal,
            )


def observed(
    ids: Sequence[str],
    dtypes: Sequence[str],
    results: Mapping[tuple[str, str], CountsBy],
    served: Mapping[str, Sequence[str]],
) -> tuple[list[ErrorRecord], list[OutputRecord]]:
    """Both, for all subjects of a run."""
    errors: list[ErrorRecord] = []
    outputs: list[OutputRecord] = []
    for subject in ids:
        for dtype in dtypes:
            counts = results.get((subject, dtype), {})
            errors += errors_of(subject, dtype, counts, list(served))
            outputs += outputs_of(subject, dtype, counts, served)
    return errors, outputs
