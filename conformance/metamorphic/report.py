"""What a metamorphic run looks like on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..finding import combine
from ..terminal.matrix import SHORT, STYLES, used
from .record import Comparison
from .request import Report

BLOCKS = 6
"""Failures shown in full per subject; the JSON holds the others."""


def print_report(report: Report, console: Console) -> None:
    """A table for each subject, the failures, what was not asked, and the verdict with its seed."""
    record = report.record
    for subject in dict.fromkeys(c.subject for c in record.comparisons):
        mine = [c for c in record.comparisons if c.subject == subject]
        judged = [c for c in mine if c.verdict != "unsupported"]
        if judged:
            console.print(_table(subject, judged))
            console.print()
        groups = list(_failures(judged))
        for group in groups[:BLOCKS]:
            console.print(Text(_block(group)), soft_wrap=True)
            console.print()
        if len(groups) > BLOCKS:
            console.print(f"{len(groups) - BLOCKS} more kinds of failure are in the record (--json FILE).\n")
        reasons = dict.fromkeys(c.diagnosis.rstrip(".") for c in mine if c.verdict == "unsupported")
        if reasons:
            console.print(Text(f"Not asked of {subject}: {'; '.join(reasons)}."), soft_wrap=True)
    pairs = sum(c.rows for c in record.comparisons if c.verdict != "error")
    lengths = ", ".join(map(str, record.keys))
    console.print(
        f"Cells show the verdict and the largest share of the bound that was used; '=' where all bits agree. Seed "
        f"{record.seed}, {record.rows} rows of {lengths} keys, {pairs:,} rows compared, {record.seconds:.1f} s.",
        soft_wrap=True,
        highlight=False,
    )
    style = "bold green" if report.exit_code == 0 else "bold red"
    console.print(Text(report.reason, style=style), soft_wrap=True)


def _table(subject: str, mine: Sequence[Comparison]) -> Table:
    columns = list(dict.fromkeys((c.dtype, c.keys) for c in mine))
    several = len({keys for _, keys in columns}) > 1
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(Text(subject), no_wrap=True)
    for dtype, keys in columns:
        table.add_column(SHORT[dtype] + (f" × {keys}" if several else ""), no_wrap=True)
    for relation in dict.fromkeys(c.relation for c in mine):
        row = [[c for c in mine if c.relation == relation and (c.dtype, c.keys) == column] for column in columns]
        table.add_row(Text(relation), *(_cell(cell) for cell in row))
    return table


def _cell(cell: Sequence[Comparison]) -> Text:
    if not cell:
        return Text("–", style="dim")
    verdict = combine(c.verdict for c in cell)
    at_fault = [c for c in cell if c.verdict == verdict]
    text = verdict.upper() if verdict in ("fail", "error") else verdict
    if verdict != "pass":
        methods = dict.fromkeys(c.method for c in at_fault)
        if len(methods) < len({c.method for c in cell}):
            text += " " + ",".join(methods)
    shares = [c.share for c in at_fault if c.share is not None]
    if all(c.identical and c.identical == c.rows for c in cell):
        text += " ="
    elif shares:
        text += f" {used(max(shares))}"
    return Text(text, style=STYLES[verdict])


def _failures(mine: Sequence[Comparison]) -> Iterator[list[Comparison]]:
    groups: dict[tuple[str, str, str], list[Comparison]] = {}
    for c in mine:
        if c.verdict in ("fail", "error"):
            relation = "" if c.verdict == "error" else c.relation
            groups.setdefault((c.method, relation, c.diagnosis), []).append(c)
    yield from groups.values()


def _block(group: Sequence[Comparison]) -> str:
    c = group[0]
    what = f"{c.relation} ({c.variant})" if c.variant else c.relation
    lines = [f"{c.subject} · {c.method} · {what} · {c.dtype} · {c.keys} keys", f"  diagnosis  {c.diagnosis}"]
    if c.verdict == "fail":
        lines.append(f"  from       {c.declaration}")
        place = f"row {c.row}" + ("" if c.key is None else f", key {c.key}")
        values = [v for v in (c.first, c.second) if v is not None]
        lines.append(f"  at         {place}: " + " and ".join(f"{float.fromhex(v):.9g} ({v})" for v in values))
        lines.append(f"  apart      {_amount(c)}")
        lines.append(f"  rows       {c.failed} of {c.rows} failed")
    dtypes = [SHORT[d] for d in SHORT if d in {g.dtype for g in group}]
    names = dict.fromkeys(g.variant for g in group if g.variant)
    lines.append(f"  seen in    {', '.join(dtypes)}" + (f": {', '.join(names)}" if names else ""))
    return "\n".join(lines)


def _amount(c: Comparison) -> str:
    if c.difference is None:
        return "not a number"
    if not c.bound:
        return f"{c.difference:.3g}, where not a bit may differ"
    return f"{c.difference:.3g}, {used(c.difference / c.bound)} times the bound of {c.bound:.3g}"
