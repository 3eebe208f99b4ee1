"""Paths that disagree, on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..terminal.matrix import SHORT, used
from .record import Disagreement, Record

WORDS = {
    "NaN": "NaN, most a number",
    "no NaN": "a number, most NaN",
    "value": "another number",
    "raises": "raises",
}
"""The kinds of disagreement in a few words."""

SHOWN = 3
"""Families of masks that are named; the JSON names all."""

PATHS_HEAD = ("what", "in", "dtypes", "with masks")


def path_lines(record: Record, group: str) -> Iterator[tuple[str, ...]]:
    """One line per path and kind of disagreement."""
    for d in record.disagreements:
        if d.group == group:
            dtypes = " ".join(SHORT[t] for t in d.dtypes)
            more = f", … ({len(d.families)} in all)" if len(d.families) > SHOWN else ""
            yield d.subject, WORDS[d.kind], ", ".join(d.quantities), dtypes, ", ".join(d.families[:SHOWN]) + more


def smallest_line(d: Disagreement) -> str:
    """The smallest input that shows a disagreement, in a sentence."""
    names = {"Lq": "queries", "Lk": "keys", "d": "width", "H": "heads", "B": "batch"}
    sizes = ", ".join(f"{names[n]} {d.sizes[n]}" for n in ("B", "H", "Lq", "Lk", "d"))
    start = f"{d.pair[1]} against {d.pair[0]}, {d.dtype}, {sizes}"
    if d.kind == "raises":
        return f"{start}: {d.detail}"
    bound = "" if d.bound is None else f", where {d.bound:.2g} may lie between them"
    text = f"{start}: {d.quantity}{d.at} is {d.values[1]} against {d.values[0]}{bound}."
    if d.sizes["B"] * d.sizes["H"] * d.sizes["Lq"] * d.sizes["Lk"] * d.sizes["d"] <= 8:
        given = ", ".join(f"{name} {str(d.input[name]).replace(chr(39), '')}" for name in ("q", "k", "v", "mask"))
        text += f" {given}."
    return text


def agreement_line(record: Record, group: str) -> str:
    """How many arrays were compared, how many agree to the bit, and how far apart the others are."""
    mine = [p for p in record.paths if p.group == group]
    arrays, same = sum(p.arrays for p in mine), sum(p.identical for p in mine)
    bad, share = sum(p.disagreeing for p in mine), max(p.share for p in mine)
    return (
        f"{group}: {len({p.subject for p in mine})} paths, {arrays} arrays compared, {same} with the same bits, {bad} "
        f"that disagree; the others differ by at most {used(share)} of both budgets."
    )


def print_paths(record: Record, console: Console) -> None:
    for group in dict.fromkeys(p.group for p in record.paths):
        lines = list(path_lines(record, group))
        if lines:
            table = Table(box=None, pad_edge=False, header_style="bold")
            console.print("Paths that disagree", style="bold")
            table.add_column(group, overflow="fold")
            for name in PATHS_HEAD:
                table.add_column(name, overflow="fold")
            for line in lines:
                table.add_row(*(Text(cell) for cell in line))
            console.print(table)
        console.print(Text(agreement_line(record, group)), soft_wrap=True)
        for d in record.disagreements:
            if d.group == group:
                console.print(Text("  " + smallest_line(d)), soft_wrap=True)
        console.print()


def markdown_paths(record: Record) -> Iterator[str]:
    """The same as Markdown."""
    for group in dict.fromkeys(p.group for p in record.paths):
        yield ""
        yield agreement_line(record, group)
        lines = list(path_lines(record, group))
        if lines:
            yield ""
            yield f"| paths that disagree | {' | '.join(PATHS_HEAD)} |"
            yield "|---" * (1 + len(PATHS_HEAD)) + "|"
        for subject, *rest in lines:
            yield "| " + " | ".join([code(subject), *rest]) + " |"
        yield ""
        for d in record.disagreements:
            if d.group == group:
                yield f"- {smallest_line(d)}"


def code(name: str) -> str:
    """A name in a cell of a Markdown table."""
    return "`{}`".format(name.replace("|", "\\|")) if name else ""
