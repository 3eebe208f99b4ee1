"""A comparison in words: what the terminal and the Markdown page both say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..finding import AttentionWitness, Witness
from ..terminal.matrix import SHORT, short_name
from ..text import printable
from .compare import regressions, unanswered
from .record import Change, Comparison, Drift, Level, Side, Spread

HEADINGS: dict[Level, str] = {
    "verdict": "Verdicts",
    "policy": "Policies",
    "distribution": "Distributions of errors",
    "bits": "Bits",
}

UNITS: dict[Level, str] = {
    "verdict": "finding",
    "policy": "record",
    "distribution": "distribution",
    "bits": "output",
}
"""What is counted at each level."""

SHOWN = 4
"""Names of one kind shown; the record (JSON) holds the others."""

LONG = 160
"""Characters of one side of a change shown, at most."""

TOLD = 6
"""Settings that differ shown; the record holds the others."""


def title(change: Change) -> str:
    """What changed, in one line."""
    after = printable(change.after, LONG)
    what = f"{printable(change.before, LONG)} → {after}" if change.before else after
    return what if change.kind == "verdict" else f"{printable(change.kind)}: {what}"


def amount(change: Change) -> str:
    """How many records changed, and of how many, in words."""
    unit = UNITS[change.level] if change.kind != "subject" else "subject"
    if change.level == "policy" and any(place.id for place in change.places):
        unit = "finding"
    if change.of:
        return f"{change.count:,} of {change.of:,} {unit}s"
    return f"{change.count:,} {unit}{'s' if change.count != 1 else ''}"


def some(names: Sequence[str], shown: int = SHOWN) -> str:
    """The first names, and how many more there are."""
    rest = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(printable(name) for name in names[:shown]) + rest


def dtypes(names: Sequence[str]) -> str:
    """Dtypes in short, in the order of their size."""
    return ", ".join([SHORT[d] for d in SHORT if d in names] + [printable(d) for d in names if d not in SHORT])


def details(change: Change) -> Iterator[tuple[str, str]]:
    """What a change is about, as pairs of a label and a text."""
    yield ("subjects" if len(change.subjects) > 1 else "subject"), some(change.subjects)
    if change.declarations:
        label = "theorems" if len(change.declarations) > 1 else "theorem"
        yield label, some([short_name(name) for name in change.declarations])
    if change.quantities:
        yield "outputs", some(change.quantities)
    if change.dtypes:
        yield ("dtypes" if len(change.dtypes) > 1 else "dtype"), dtypes(change.dtypes)
    if change.families:
        yield ("families" if len(change.families) > 1 else "family"), some(change.families)
    if change.note:
        yield "note", printable(change.note)
    if change.known and change.deviation is not None:
        yield "known", _known(change)
    if change.drift is not None:
        yield from drifted(change.drift)
    if change.example is not None and (change.count > 1 or change.example.place.id):
        yield from _example(change)


def _known(change: Change) -> str:
    assert change.deviation is not None
    until = f" (until {printable(change.deviation.expires, 40)})" if change.deviation.expires else ""
    return printable(change.deviation.reason) + until


def _example(change: Change) -> Iterator[tuple[str, str]]:
    assert change.example is not None
    place = change.example.place
    parts = [place.id, place.subject, *map(short_name, place.declarations[:1]), place.quantity]
    parts += [SHORT.get(place.dtype, place.dtype), place.family]
    yield "example", " · ".join(printable(part) for part in parts if part)
    if change.example.witness is not None:
        yield "", _row(change.example.witness)
    elif change.example.attention is not None:
        yield "", _problem(change.example.attention)


def _row(w: Witness) -> str:
    place = f"batch {printable(w.batch)}, row {w.row}, {w.keys} key{'s' if w.keys != 1 else ''}"
    if w.index is None or not w.returned or not 0 <= w.index < len(w.returned):
        return place
    text = f"{place}: key {w.index} got {number(w.returned[w.index])}"
    if w.exact and w.index < len(w.exact):
        text += f", true {printable(w.exact[w.index].partition(' ')[0], 24)}"
    return text


def _problem(w: AttentionWitness) -> str:
    if w.returned is None or not w.index:
        return printable(w.problem)
    true = f", true {printable(w.exact[0], 24)}" if w.exact else ""
    where = ",".join(map(str, w.index))
    return f"{printable(w.problem)}: {printable(w.quantity)}[{where}] = {number(w.returned)}{true}"


def number(hexadecimal: str) -> str:
    """A hexadecimal float in decimal; what is none is quoted.

    >>> number("0x1.8p+0"), number("nan"), number("zero")
    ('1.5', 'nan', "'zero'")
    """
    try:
        return f"{float.fromhex(hexadecimal):.8g}"
    except (ValueError, OverflowError):
        return f"'{printable(hexadecimal, 24)}'"


def drifted(drift: Drift) -> Iterator[tuple[str, str]]:
    """The numbers of a drift."""
    yield "old", spread(drift.old)
    yield "new", spread(drift.new)
    parts = []
    for share, edge, word in (
        (drift.grown, drift.grown_beyond, "more"),
        (drift.shrunk, drift.shrunk_beyond, "fewer"),
    ):
        if share > drift.noise:
            parts.append(f"{percent(share)} {word} lie beyond {edge:g} ULP")
    if not parts:
        parts.append(f"the shares below an edge differ by {percent(drift.distance)}")
    chance = f"chance gives at most {percent(drift.noise)}" if drift.noise < 1.0 else "too few rows to tell from chance"
    yield "apart", f"{', '.join(parts)}; {chance}"


def spread(side: Spread) -> str:
    """One distribution in a line: the extremes, the middle, the signs."""
    known = [(float(key), value) for key, value in side.quantiles.items()]
    middle = [f"{key:g} % ≤ {value:.3g}" for key, value in sorted(known) if key in (50.0, 99.0)]
    extremes = f"{_ulps(side.least)} to {_ulps(side.largest)} ULP"
    signs = f"{percent(side.above)} above 0, {percent(side.below)} below"
    unusable = [f"{side.unusable:,} no finite number"] if side.unusable else []
    return "; ".join([extremes, *middle, signs, *unusable, f"{side.rows:,} rows"])


def _ulps(value: float | None) -> str:
    return "–" if value is None else f"{value:.3g}"


def percent(share: float) -> str:
    """A share in per cent, with two significant digits.

    >>> percent(0.1234), percent(0.5), percent(0.00012)
    ('12 %', '50 %', '0.012 %')
    """
    return f"{100.0 * share:.2g} %" if share < 0.995 else "100 %"


def side_lines(comparison: Comparison) -> Iterator[tuple[str, str]]:
    """The two certificates, what differs between them, and what was compared."""
    other = {**comparison.old.frameworks, **comparison.new.frameworks}
    moved = [n for n in other if comparison.old.frameworks.get(n) != comparison.new.frameworks.get(n)]
    for label, side in (("old", comparison.old), ("new", comparison.new)):
        yield label, _side(side, moved or list(other))
    if comparison.suite:
        yield "hardmask", some(comparison.suite, TOLD)
    told = [f"{d.what} {d.old or 'none'} → {d.new or 'none'}" for d in comparison.differences]
    if told:
        yield (
            "differs",
            "; ".join(printable(text, 200) for text in told[:TOLD])
            + (f"; and {len(told) - TOLD} more settings" if len(told) > TOLD else ""),
        )
    elif not comparison.identical:
        yield "differs", "neither the request nor the environment"
    counts = comparison.compared
    rows = "on the very same rows" if comparison.paired else "on other rows"
    yield (
        "compared",
        f"{counts['verdict']:,} findings, {counts['distribution']:,} distributions of errors, "
        f"{counts['bits']:,} outputs, {rows}",
    )
    for text in comparison.not_compared:
        yield "not compared", printable(text, 600)


def _side(side: Side, names: Sequence[str]) -> str:
    """One certificate; of the frameworks those that ``names`` has, which are the ones that moved, if any did."""
    ran_on = some([f"{name} {side.frameworks.get(name, 'absent')}" for name in names]) or "no framework"
    effort = f", effort {side.effort}" if side.effort else ""
    return printable(f"{ran_on}; Python {side.python}; seed {side.seed}{effort}; {side.digest[:19]}…", 400)


def verdict(comparison: Comparison, fail_on: Level) -> str:
    """The last sentence: whether the new certificate is a regression, and what that rests on."""
    bad = regressions(comparison, fail_on)
    if bad:
        counts = {level: sum(change.level == level for change in bad) for level in HEADINGS}
        told = ", ".join(f"{count} in {HEADINGS[level].lower()}" for level, count in counts.items() if count)
        return f"Regression: {len(bad)} cause{'s' if len(bad) > 1 else ''} ({told}) at --fail-on {fail_on}."
    blind = unanswered(comparison, fail_on)
    if blind:
        return (
            f"No answer: --fail-on {fail_on} asks for {' and '.join(HEADINGS[b].lower() for b in blind)}, which these "
            "two certificates do not let one compare."
        )
    if comparison.identical:
        return "Identical: the two certificates have one digest, and differ in their times at most."
    if not comparison.changes:
        return "No change: every verdict, policy, distribution and output that was compared is as it was."
    later = sum(change.regression for change in comparison.changes)
    return f"No regression at --fail-on {fail_on}" + (
        f"; {later} cause{'s' if later > 1 else ''} at the levels below it." if later else "."
    )
