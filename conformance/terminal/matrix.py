"""The table of declarations and subjects: verdict and budget used in each cell."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.table import Table
from rich.text import Text

from ...spec.attention.tiers import ladder as attention_ladder
from ...spec.rounding import ladder
from ..document import Certificate, Measured, SubjectRecord
from ..finding import Finding, Verdict, combine
from ..measure import NONE

STYLES: dict[Verdict, str] = {
    "pass": "green",
    "fail": "bold red",
    "error": "bold red",
    "vacuous": "bold yellow",
    "permitted": "yellow",
    "unsupported": "dim",
    "hypothesis-unmet": "dim",
}

KNOWN = "yellow"
"""The style of failures that a recorded deviation lets pass."""

FAILED = ("fail", "error")

SHORT: dict[str, str] = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}

COLUMNS = 5
"""Subjects side by side in one table, at most."""

NAMES, CELL = 42, 16
"""Widths of the column of names and of a subject's column, in characters."""


def short_name(declaration: str) -> str:
    """The last component of a Lean name; an extension keeps its label.

    >>> short_name("Proofs.Autograd.HardMaskedSoftmax.inner_derivative")
    'inner_derivative'
    >>> short_name("extension:row-sum")
    'extension:row-sum'
    """
    return declaration if declaration.startswith("extension:") else declaration.rpartition(".")[2]


def cell(findings: Sequence[Finding]) -> Text:
    """The combined verdict of some findings, the dtypes that are worse than the others, and the budget used.

    The budget used is the largest ``error / budget`` of any judged row; failures show how far beyond it they are.
    Failures that are all recorded as deviations are ``known``.
    """
    verdict = combine(f.verdict for f in findings)
    if verdict in ("hypothesis-unmet", "unsupported"):
        return Text("–", style=STYLES[verdict])
    at_fault = [f for f in findings if f.verdict == verdict]
    ratios = [f.ratio for f in (at_fault if verdict == "fail" else findings) if f.ratio is not None]
    known = verdict in FAILED and all(f.deviation is not None for f in at_fault)
    text = verdict.upper() if verdict in FAILED else verdict
    text = f"known {verdict}" if known else text
    if verdict != "pass":
        dtypes = {f.dtype for f in at_fault}
        judged = {f.dtype for f in findings if f.checked or f.verdict == "error"}
        if dtypes != judged:
            text += " " + ",".join(SHORT[d] for d in SHORT if d in dtypes)
    if ratios and verdict in ("pass", "permitted", "fail", "vacuous"):
        text += f" {used(max(ratios))}"
    return Text(text, style=KNOWN if known else STYLES[verdict])


def _verdict(subject: SubjectRecord, open_failures: set[str]) -> Text:
    """The verdict of a subject, and whether all its failures are known."""
    if subject.verdict in FAILED and subject.id not in open_failures:
        return Text(f"known {subject.verdict}", style=KNOWN)
    return Text(subject.verdict.upper(), style=STYLES[subject.verdict])


def kept(certificate: Certificate, subject: str) -> str:
    """The strongest tier under which all declarations hold, dtype by dtype where they differ."""
    weakest = weakest_by_dtype(certificate, subject)
    usual = {"strict", "mixed"}
    rest: dict[str, list[str]] = {}
    for dtype, m in weakest.items():
        if m.strongest not in usual:
            rest.setdefault(m.strongest or "none", []).append(SHORT[dtype])
    found = (
        [next(t for t in ("strict", "mixed") if t in {m.strongest for m in weakest.values()})]
        if any(m.strongest in usual for m in weakest.values())
        else []
    )
    return "; ".join([*found, *(f"{tier} {','.join(dtypes)}" for tier, dtypes in rest.items())]) or "–"


def weakest_by_dtype(certificate: Certificate, subject: str) -> dict[str, Measured]:
    """For each dtype the declaration that holds under the weakest tier only, or under none; of equals the one with the
    largest error."""
    weakest: dict[str, Measured] = {}
    for m in certificate.measured:
        if m.subject == subject and (m.dtype not in weakest or _weakness(m) > _weakness(weakest[m.dtype])):
            weakest[m.dtype] = m
    return weakest


def _weakness(m: Measured) -> tuple[float, float]:
    # The tiers of attention that have no namesake among those of rows are weaker than those that have.
    steps = list(dict.fromkeys((*ladder(m.dtype), *attention_ladder(m.dtype))))
    if m.strongest in steps:
        return steps.index(m.strongest), max(m.growth.values(), default=0.0)
    return len(steps) + (m.strongest == NONE), max(m.growth.values(), default=0.0)


def used(ratio: float) -> str:
    """A share of the budget in a few characters.

    A share below the whole is rounded down: only what exceeds its budget reads 1.00 or more.

    >>> used(0.9989), used(3.2e5), used(3.2e7), used(0.0)
    ('.99', '3e+05', '>1e+06', '0')
    """
    if ratio == 0.0:
        return "0"
    if ratio < 1.0:
        return f"{math.floor(100.0 * ratio) / 100.0:.2f}"[1:] if ratio >= 0.01 else "<.01"
    if ratio < 100.0:
        return f"{ratio:.2f}"
    return f"{ratio:.0e}" if ratio <= 1e6 else ">1e+06"


def tables(certificate: Certificate, width: int = NAMES + COLUMNS * CELL) -> Iterator[Table]:
    """One table for every few subjects of an adapter, as many as fit: declarations down, subjects across."""
    columns = max(1, min(COLUMNS, (width - NAMES) // CELL))
    by_cell: dict[tuple[str, str], list[Finding]] = {}
    for f in certificate.findings:
        by_cell.setdefault((f.declaration, f.subject), []).append(f)
    open_failures = {f.subject for f in certificate.findings if f.verdict in FAILED and f.deviation is None}
    for adapter, operation in dict.fromkeys((s.adapter, s.operation) for s in certificate.subjects):
        mine = [s for s in certificate.subjects if (s.adapter, s.operation) == (adapter, operation)]
        named = {name for name, subject in by_cell if subject in {s.id for s in mine}}
        for start in range(0, len(mine), columns):
            part = mine[start : start + columns]
            table = Table(title=None, show_lines=False, pad_edge=False, box=None, header_style="bold")
            table.add_column(adapter if operation == "masked-softmax" else f"{adapter}, attention", no_wrap=True)
            for s in part:
                # As text: rich would take the brackets of a path for markup and drop them.
                table.add_column(Text(s.id.removeprefix(adapter + ".")), overflow="fold")
            table.add_row("contract", *(Text(s.contract, style="cyan") for s in part))
            for name in (n for n in certificate.declarations if n in named):
                table.add_row(short_name(name), *(cell(by_cell.get((name, s.id), [])) for s in part))
            table.add_section()
            table.add_row("strongest tier that holds", *(Text(kept(certificate, s.id)) for s in part))
            table.add_row("verdict", *(_verdict(s, open_failures) for s in part))
            yield table
