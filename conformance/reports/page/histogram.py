"""Signed errors as a picture: one bar for each bin, its height by the logarithm of its count."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ...document import ErrorRecord
from ...spread import EDGES
from ...terminal.matrix import short_name
from ..digest import in_order
from ..safe import line

WIDTH, HEIGHT, BASE, LEFT, TOP = 320, 112, 90, 4, 6
"""Of the picture: its size, where the bars stand, and the margins left and above."""

PICTURES, DISTINCT = 240, 3
"""How many histograms a page shows, and how many of one subject and dtype."""

FARTHEST = 4096.0
"""Where the axis ends, in ULPs: what lies beyond is drawn there."""

TICKS = (-4096.0, -256.0, -16.0, -1.0, 0.0, 1.0, 16.0, 256.0, 4096.0)


@dataclass(frozen=True)
class Picture:
    """A histogram: ``bars`` is one SVG path; ``labels`` are places and texts below it; ``zero`` is where 0 lies."""

    title: str
    text: str
    theorem: str
    dtype: str
    bars: str
    zero: float
    labels: list[tuple[float, str, str]]
    quantiles: list[tuple[str, str]]
    width: int = WIDTH
    height: int = HEIGHT
    base: int = BASE


def pictures_of(
    records: Iterable[ErrorRecord], subjects: Sequence[str], declarations: Sequence[str]
) -> list[tuple[str, list[Picture]]]:
    """For each subject and dtype the first few distributions that differ, in the order of the declarations.

    Theorems about the same numbers have the same distribution, which is drawn once. Subjects without one are left out.
    """
    order = {name: place for place, name in enumerate(declarations)}
    mine: dict[str, dict[str, list[ErrorRecord]]] = {subject: {} for subject in subjects}
    for record in sorted(records, key=lambda r: order.get(r.declaration, len(order))):
        if record.subject in mine and record.counts:
            held = mine[record.subject].setdefault(record.dtype, [])
            if len(held) < DISTINCT and all(record.counts != other.counts for other in held):
                held.append(record)
    found, room = [], PICTURES
    for subject, by_dtype in mine.items():
        drawn = [p for dtype in in_order(set(by_dtype)) for p in map(picture, by_dtype[dtype]) if p is not None][:room]
        room -= len(drawn)
        if drawn:
            found.append((line(subject), drawn))
    return found


def picture(record: ErrorRecord) -> Picture | None:
    """The picture of one record; None where its bins have no numbers for names.

    >>> record = ErrorRecord(subject="s", declaration="d", dtype="float32", entries=3, unusable=0, rows=1,
    ...                      effective_rows=1.0, least=0.0, largest=0.5, counts={"0": 2, "0.5": 1}, quantiles={})
    >>> picture(record).text
    '3 entries of 1 row, from 0 to 0.5 ULP; 2 exact'
    """
    try:
        counts = [(float(edge), count) for edge, count in record.counts.items() if count]
    except ValueError:
        return None
    if not counts or any(math.isnan(edge) for edge, _ in counts):
        return None
    bars: dict[tuple[float, float], int] = {}
    for edge, count in counts:
        span = _bin(edge)
        bars[span] = bars.get(span, 0) + count
    low, high = min(-1.0, *(min(span) for span in bars)), max(1.0, *(max(span) for span in bars))

    def place(ulps: float) -> float:
        return LEFT + (WIDTH - 2 * LEFT) * (_scaled(ulps) - _scaled(low)) / (_scaled(high) - _scaled(low))

    tallest = max(math.log10(1 + count) for count in bars.values())
    path = []
    for (start, end), count in sorted(bars.items()):
        height = max(2.0, (BASE - TOP) * math.log10(1 + count) / tallest)
        x, width = (place(start), place(end) - place(start)) if start != end else (place(start) - 1.0, 2.0)
        path.append(f"M{x:.1f} {BASE}v{-height:.1f}h{max(1.0, width - 0.3):.1f}V{BASE}z")
    rows = f"{record.rows:,} row{'' if record.rows == 1 else 's'}"
    text = f"{record.entries:,} entries of {rows}, from {_short(record.least)} to {_short(record.largest)} ULP"
    text += f"; {record.counts.get('0', 0):,} exact"
    text += f"; {record.unusable:,} not finite" if record.unusable else ""
    return Picture(
        title=line(f"Errors of {record.subject} on {short_name(record.declaration)} in {record.dtype}"),
        text=text,
        theorem=line(short_name(record.declaration)),
        dtype=line(record.dtype),
        bars="".join(path),
        zero=round(place(0.0), 1),
        labels=[(round(place(tick), 1), _anchor(place(tick)), f"{tick:g}") for tick in TICKS if low <= tick <= high],
        quantiles=[(line(name, 8), _short(value)) for name, value in _in_order(record.quantiles)],
    )


def _in_order(quantiles: dict[str, float]) -> list[tuple[str, float]]:
    """The quantiles from the smallest percentage to the largest; at most nine."""
    try:
        return sorted(quantiles.items(), key=lambda pair: float(pair[0]))[:9]
    except ValueError:
        return []


def _bin(edge: float) -> tuple[float, float]:
    """From where to where the bin reaches that is named by its edge farther from 0."""
    size = min(abs(edge), FARTHEST)
    inner = float(EDGES[max(0, int(np.searchsorted(EDGES, size)) - 1)])
    return (inner, size) if edge > 0.0 else (-size, -inner) if edge < 0.0 else (0.0, 0.0)


def _scaled(ulps: float) -> float:
    """The place on an axis that is even near 0 and logarithmic far from it."""
    return math.copysign(math.log2(1.0 + abs(ulps)), ulps)


def _anchor(x: float) -> str:
    return "start" if x < LEFT + 12 else "end" if x > WIDTH - LEFT - 12 else "middle"


def _short(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"
