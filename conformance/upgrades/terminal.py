"""A comparison on a terminal, in eighty columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from .record import LEVELS, Comparison, Direction, Level
from .wording import HEADINGS, amount, details, side_lines, title, verdict

COLUMNS = 80
LABEL = 13
"""The column in which what a label names begins."""

STYLES: dict[Direction, str] = {"worse": "bold red", "changed": "bold yellow", "better": "green", "noted": "dim"}


def print_comparison(comparison: Comparison, console: Console, *, fail_on: Level, code: int) -> None:
    """Print the sides, the changes by level, and the last sentence."""
    for line, style in lines(comparison, fail_on, code):
        console.print(Text(line, style=style), soft_wrap=True)


def lines(comparison: Comparison, fail_on: Level, code: int) -> Iterator[tuple[str, str]]:
    """All lines with their styles. Long names are not broken: a line may be longer than the terminal is wide."""
    for label, text in side_lines(comparison):
        yield from ((line, "") for line in labelled(label, text, 0))
    for level in LEVELS:
        mine = [change for change in comparison.changes if change.level == level]
        if not mine:
            continue
        yield "", ""
        yield HEADINGS[level].upper(), "bold"
        for change in mine:
            word = "known" if change.known else change.direction
            style = "dim" if change.known else STYLES[change.direction]
            for line in wrapped(f"{title(change)} ({amount(change)})", f"{word:<8} ", " " * 9):
                yield line, style
            for label, text in details(change):
                yield from ((line, "") for line in labelled(label, text, 2))
    yield "", ""
    for line in wrapped(verdict(comparison, fail_on), "", ""):
        yield line, "bold green" if code == 0 else "bold red"


def labelled(label: str, text: str, indent: int) -> list[str]:
    """A label and a text beside it, wrapped."""
    return wrapped(text, " " * indent + f"{label:<{LABEL - indent}}", " " * LABEL)


def wrapped(text: str, first: str, rest: str) -> list[str]:
    """A text in lines of at most eighty columns, but for words that are longer."""
    return textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
