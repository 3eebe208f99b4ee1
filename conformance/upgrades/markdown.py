"""A comparison as a Markdown page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .record import LEVELS, Comparison, Level
from .wording import HEADINGS, amount, details, side_lines, title, verdict

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#+!|~&$])")


def markdown(comparison: Comparison, fail_on: Level) -> str:
    """The whole page, in the order of the terminal."""
    return "\n".join(_lines(comparison, fail_on)) + "\n"


def _lines(comparison: Comparison, fail_on: Level) -> Iterator[str]:
    yield "## What the upgrade changed"
    yield ""
    yield f"**{escaped(verdict(comparison, fail_on))}**"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for label, text in side_lines(comparison):
        yield f"| {label} | {escaped(text)} |"
    for level in LEVELS:
        mine = [change for change in comparison.changes if change.level == level]
        if not mine:
            continue
        yield ""
        yield f"### {HEADINGS[level]}"
        for change in mine:
            word = "known" if change.known else change.direction
            yield ""
            yield f"- **{word}**: {escaped(title(change))} ({escaped(amount(change))})"
            for label, text in details(change):
                yield f"  - {label}: {escaped(text)}" if label else f"    {escaped(text)}"


def escaped(text: str) -> str:
    """Text in which nothing is markup.

    >>> escaped("a_b [c] <b>")
    'a\\\\_b \\\\[c\\\\] \\\\<b\\\\>'
    """
    return SPECIAL.sub(r"\\\1", text)
