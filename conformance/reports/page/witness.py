"""The row or the problem of a failure: numbers for a table, and a drawing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...finding import IN_COMPANY, AttentionWitness, Finding, Witness
from ..safe import line

SHOWN, NUMBERS = 16, 48
"""Keys of a row, and numbers of an array, that are shown."""

STEP, LABELS = 44, 84
"""Width of the column of a key, and of the column of labels."""

SCORES, WEIGHTS, FOOT = (48, 106), (126, 206), 214
"""Heights between which scores are drawn, and weights, and where the drawing ends."""


@dataclass(frozen=True)
class Number:
    """A number: in decimal digits, and exactly, as a hexadecimal float."""

    decimal: str
    exact: str


@dataclass(frozen=True)
class Bar:
    """A bar, or in its place a ``text`` where the value is not finite."""

    x: float
    y: float
    height: float
    text: str = ""


@dataclass(frozen=True)
class Column:
    """One key in the drawing."""

    x: float
    key: int
    allowed: bool
    at_fault: bool
    score: Bar
    returned: Bar | None
    true: Bar | None


@dataclass(frozen=True)
class Row:
    """A row of scores: a table with a line for each key, and the drawing of it."""

    heads: list[str]
    lines: list[tuple[int, bool, bool, list[Number]]]
    columns: list[Column]
    width: int
    zero: float
    quantity: str
    note: str
    description: str
    height: int = FOOT
    labels: int = LABELS


@dataclass(frozen=True)
class Problem:
    """A problem of attention: its arrays, and the place at fault."""

    sizes: str
    arrays: list[tuple[str, str, list[Number], int]]
    mask: list[str]
    place: str
    returned: Number | None
    true: str
    note: str


def number(hexadecimal: str) -> Number:
    """A number of a witness.

    >>> number("0x1.0000000000000p-1")
    Number(decimal='0.5', exact='0x1.0000000000000p-1')
    """
    return Number(f"{float.fromhex(hexadecimal):.8g}".replace("-", "−"), hexadecimal)


def true_value(enclosure: str) -> Number:
    """A true value, which is known to within the stated error: its digits, and the whole of it."""
    return Number(f"{float(enclosure.partition(' ')[0]):.8g}".replace("-", "−"), line(enclosure, 60))


def row_of(f: Finding) -> Row | None:
    """The row of a failure; None where it has none, or one that contradicts itself."""
    w = f.minimal or f.witness
    if w is None or w.scores is None or w.mask is None:
        return None
    try:
        return _row(w, minimal=f.minimal is not None)
    except (ArithmeticError, IndexError, ValueError):
        return None


def _row(w: Witness, *, minimal: bool) -> Row:
    assert w.scores is not None
    assert w.mask is not None
    mask = w.mask
    if len(w.scores) != w.keys or len(mask) != w.keys:
        raise ValueError("the row is not as long as it says")
    order = sorted(range(w.keys), key=lambda i: (i != w.index, not mask[i], i))[:SHOWN]
    shown = sorted(order)
    table: dict[str, list[Number]] = {"score": [number(w.scores[i]) for i in shown]}
    for name, values in (
        ("cotangent", w.cotangent),
        ("tangent", w.tangent),
        ("returned", w.returned),
        ("other", w.other),
    ):
        if values is not None and len(values) == w.keys:
            table[name] = [number(values[i]) for i in shown]
    if w.exact is not None and len(w.exact) == w.keys:
        table["true"] = [true_value(w.exact[i]) for i in shown]
    returned, true = _floats(table.get("returned")), _floats(table.get("true"))
    span = _span([*(returned or ()), *(true or ())])
    scores = _floats(table["score"]) or []
    low, high = _range(scores)
    columns = [
        Column(
            x=LABELS + STEP * place + STEP / 2,
            key=i,
            allowed=mask[i],
            at_fault=i == w.index,
            score=_dot(LABELS + STEP * place + STEP / 2, scores[place], low, high),
            returned=_bar(LABELS + STEP * place + 6, returned[place], span) if returned else None,
            true=_bar(LABELS + STEP * place + STEP / 2 + 2, true[place], span) if true else None,
        )
        for place, i in enumerate(shown)
    ]
    place = f"batch {w.batch}, row {w.row}"
    notes = [f"{len(shown)} of {w.keys} keys shown"] if len(shown) < w.keys else []
    notes.append(f"The smallest row found, from {place}" if minimal else place[0].upper() + place[1:])
    notes += [IN_COMPANY] if IN_COMPANY in w.note else []
    lines = [(i, mask[i], i == w.index, [values[place] for values in table.values()]) for place, i in enumerate(shown)]
    allowed = sum(mask)
    quantity = line(w.quantity) or "weights"
    return Row(
        heads=list(table),
        lines=lines,
        columns=columns,
        width=LABELS + STEP * len(shown) + 8,
        zero=_height(0.0, span, WEIGHTS),
        quantity=quantity,
        note=line("; ".join(notes) + "."),
        description=f"A row of {w.keys} key{'' if w.keys == 1 else 's'}, {allowed} of them allowed: mask, scores, and "
        f"the {quantity} returned beside the true ones. The table below has the numbers.",
    )


def _floats(values: Sequence[Number] | None) -> list[float] | None:
    if values is None:
        return None
    return [float.fromhex(v.exact) if "x" in v.exact else float(v.exact.partition(" ")[0]) for v in values]


def _span(values: list[float]) -> tuple[float, float]:
    """What the bars have to reach: 0, and every finite value."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    return (low, high) if high > low else (0.0, 1.0)


def _range(values: list[float]) -> tuple[float, float]:
    finite = [v for v in values if math.isfinite(v)]
    return (min(finite), max(finite)) if finite else (0.0, 0.0)


def _height(value: float, span: tuple[float, float], band: tuple[int, int]) -> float:
    low, high = span
    # Halves first: the difference of two finite numbers may be infinite.
    share = (value / 2 - low / 2) / (high / 2 - low / 2) if high / 2 > low / 2 else 0.5
    return round(band[1] - (band[1] - band[0]) * min(1.0, max(0.0, share)), 1)


def _dot(x: float, value: float, low: float, high: float) -> Bar:
    if not math.isfinite(value):
        return Bar(x, (SCORES[0] + SCORES[1]) / 2, 0.0, _word(value))
    return Bar(x, _height(value, (low, high), SCORES), 0.0)


def _bar(x: float, value: float, span: tuple[float, float]) -> Bar:
    zero = _height(0.0, span, WEIGHTS)
    if not math.isfinite(value):
        return Bar(x, zero, 0.0, _word(value))
    top = _height(value, span, WEIGHTS)
    return Bar(x, min(top, zero), max(1.0, round(abs(top - zero), 1)))


def _word(value: float) -> str:
    return "nan" if math.isnan(value) else "+inf" if value > 0 else "−inf"


def problem_of(f: Finding) -> Problem | None:
    """The problem of a failure of attention; None where it has none, or one that contradicts itself."""
    w = f.smallest or f.attention
    if w is None:
        return None
    try:
        return _problem(w, smallest=f.smallest is not None)
    except (ArithmeticError, IndexError, ValueError):
        return None


def _problem(w: AttentionWitness, *, smallest: bool) -> Problem:
    batch, heads, groups, queries, keys, width, value_width = w.sizes
    sizes = (
        f"batch {batch}, heads {heads}, groups {groups}, queries {queries}, keys {keys}, width {width}, "
        f"width of values {value_width}"
    )
    sizes += "" if w.scale is None else f", scale {number(w.scale).decimal}"
    shapes = {
        "queries": f"({batch}, {heads}, {queries}, {width})",
        "keys": f"({batch}, {groups}, {keys}, {width})",
        "values": f"({batch}, {groups}, {keys}, {value_width})",
        "cotangent": f"({batch}, {heads}, {queries}, {value_width})",
    }
    arrays = [
        (name, shapes[name], [number(x) for x in values[:NUMBERS]], max(0, len(values) - NUMBERS))
        for name, values in (("queries", w.q), ("keys", w.k), ("values", w.v), ("cotangent", w.cotangent))
        if values is not None
    ]
    mask = []
    if w.mask is not None and 0 < keys <= 64 and len(w.mask) <= 1024:
        rows = [w.mask[i : i + keys] for i in range(0, len(w.mask), keys)]
        mask = [" ".join("✓" if allowed else "×" for allowed in row) for row in rows]
    place = ""
    if w.index:
        whole = w.index[-1] < 0
        numbers = ", ".join(map(str, w.index[:-1] if whole else w.index))
        place = line(f"{w.quantity or 'output'}[{numbers}]") + (", as a whole" if whole else "")
    note = f"The smallest problem found, from {w.problem}" if smallest else f"Problem {w.problem}"
    return Problem(
        sizes,
        arrays,
        mask,
        place,
        None if w.returned is None else number(w.returned),
        line(" to ".join(w.exact), 200) if w.exact else "",
        line(f"{note}. {w.note}".strip()),
    )
