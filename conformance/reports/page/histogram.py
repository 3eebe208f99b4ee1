"""Signed errors as a picture: one bar for each bin, its height by the logarithm of its count."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ...document import ErrorRecord
from ...terminal.matrix import short_name
from ..safe import line

WIDTH, HEIGHT, BASE, LEFT, TOP = 320, 112, 90, 4, 6
"""Of the picture: its size, where the bars stand, and the margins left and above."""

PICTURES = 200
"""How many histograms a page shows, at most."""


@dataclass(frozen=True)
class Picture:
    """A histogram: ``bars`` is one SVG path; ``labels`` are places and texts below it; ``zero`` is where 0 lies."""

    title: str
    text: str
    theorem: str
    dtype: str
    bars: str
    zero: float | None
    labels: list[tuple[float, str, str]]
    quantiles: list[tuple[str, str]]
    width: int = WIDTH
    height: int = HEIGHT
    base: int = BASE


def worst_of_each(records: Iterable[ErrorRecord], subjects: list[str]) -> list[tuple[str, list[Picture]]]:
    """For each subject the picture of the record with the widest errors in each dtype; subjects without one are left
    out."""
    widest: dict[str, dict[str, ErrorRecord]] = {subject: {} for subject in subjects}
    for record in records:
        mine = widest.get(record.subject)
        if mine is not None and record.counts:
            held = mine.get(record.dtype)
            if held is None or _width(record) > _width(held):
                mine[record.dtype] = record
    found, room = [], PICTURES
    for subject, mine in widest.items():
        pictures = [p for p in map(picture, list(mine.values())[:room]) if p is not None]
        room -= len(pictures)
        if pictures:
            found.append((line(subject), pictures))
    return found


def _width(record: ErrorRecord) -> tuple[float, int]:
    return max(abs(record.least or 0.0), abs(record.largest or 0.0)), record.entries


def picture(record: ErrorRecord) -> Picture | None:
    """The picture of one record; None where its bins have no numbers for names.

    >>> record = ErrorRecord(subject="s", declaration="d", dtype="float32", entries=3, unusable=0, rows=1,
    ...                      effective_rows=1.0, least=0.0, largest=0.5, counts={"0": 2, "0.5": 1}, quantiles={})
    >>> picture(record).text
    '3 entries of 1 row, from 0 to 0.5 ULP; 2 exact'
    """
    try:
        edges = sorted((float(edge), edge) for edge in record.counts if record.counts[edge])
    except ValueError:
        return None
    if not edges or any(math.isnan(value) for value, _ in edges):
        return None
    step = (WIDTH - 2 * LEFT) / len(edges)
    tallest = max(math.log10(1 + record.counts[edge]) for _, edge in edges)
    bars, zero = [], None
    for place, (value, edge) in enumerate(edges):
        height = max(2.0, (BASE - TOP) * math.log10(1 + record.counts[edge]) / tallest)
        x = LEFT + place * step
        bars.append(f"M{x + 0.5:.1f} {BASE}v{-height:.1f}h{max(1.0, step - 1):.1f}V{BASE}z")
        if value == 0.0:
            zero = round(x + step / 2, 1)
    rows = f"{record.rows:,} row{'' if record.rows == 1 else 's'}"
    text = f"{record.entries:,} entries of {rows}, from {_short(record.least)} to {_short(record.largest)} ULP"
    text += f"; {record.counts.get('0', 0):,} exact"
    text += f"; {record.unusable:,} not finite" if record.unusable else ""
    return Picture(
        title=line(f"Errors of {record.subject} on {short_name(record.declaration)} in {record.dtype}"),
        text=text,
        theorem=line(short_name(record.declaration)),
        dtype=line(record.dtype),
        bars="".join(bars),
        zero=zero,
        labels=[(LEFT, "start", line(edges[0][1], 12))]
        + ([(zero, "middle", "0")] if zero is not None and 60 < zero < WIDTH - 60 else [])
        + ([(WIDTH - LEFT, "end", line(edges[-1][1], 12))] if len(edges) > 1 else []),
        quantiles=[(line(name, 8), _short(value)) for name, value in list(record.quantiles.items())[:9]],
    )


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
