"""The kill table, on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .letters import legend, letters
from .result import MutantRecord, SelfTest, VariantRecord

ABSENT, SURVIVOR = "", "–"


def mark(record: MutantRecord, dtype: str) -> str:
    """What a cell of the kill table shows: the letters of the theorems, a dash for a survivor, nothing if not run."""
    cell = record.cells.get(dtype)
    if cell is None:
        return ABSENT
    return letters(cell.theorems) if cell.status == "caught" else SURVIVOR


def share(record: VariantRecord, dtype: str) -> str:
    """The tier and the largest share of a budget that a variant used, or that it failed."""
    cell = record.cells.get(dtype)
    if cell is None:
        return ABSENT
    return f"{cell.tier} {cell.share:.2f}" if cell.status == "passed" else f"{cell.tier} FAILED"


def survivors(result: SelfTest) -> list[tuple[str, str, str]]:
    """Mutant, dtypes and reason of every survivor; dtypes with the same reason stand together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for record in result.mutants:
        for dtype, cell in record.cells.items():
            if cell.status == "survived":
                groups.setdefault((record.name, cell.reason or "NOT LISTED"), []).append(dtype)
    return [(name, ", ".join(dtypes), reason) for (name, reason), dtypes in groups.items()]


def print_selftest(result: SelfTest, console: Console) -> None:
    """The kill table, its legend, the survivors, the variants, and what is amiss."""
    if result.mutants:
        table = Table(title="Mutants: the theorems that caught them", title_justify="left")
        table.add_column("mutant")
        for dtype in result.dtypes:
            table.add_column(dtype)
        for record in result.mutants:
            table.add_row(record.name, *(mark(record, dtype) for dtype in result.dtypes))
        console.print(table)
        used = {key for record in result.mutants for cell in record.cells.values() for key in cell.theorems}
        for letter, names in legend([key for key in result.legend if key in used]):
            console.print(Text(f"  {letter}  {', '.join(names)}"), soft_wrap=True)
    for name, dtypes, reason in survivors(result):
        console.print(Text(f"survivor {name} ({dtypes}): {reason}"), soft_wrap=True)
    if result.variants:
        table = Table(title="Correct variants: tier, and the largest share of a budget", title_justify="left")
        table.add_column("variant")
        for dtype in result.dtypes:
            table.add_column(dtype)
        for variant in result.variants:
            table.add_row(variant.name, *(share(variant, dtype) for dtype in result.dtypes))
        console.print(table)
    for remark in result.remarks:
        console.print(Text(remark), soft_wrap=True)
    for fault in result.faults:
        console.print(Text(fault, style="bold red"), soft_wrap=True)
    console.print(
        Text(f"Seed {result.seed}, effort {result.effort}, {result.seconds:.1f} s. {result.summary}"), soft_wrap=True
    )


def markdown(result: SelfTest) -> str:
    """The tables as Markdown, without anything that changes from run to run of one seed."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: SelfTest) -> Iterator[str]:
    head = f"| {' | '.join(result.dtypes)} |"
    rule = "|---" * (1 + len(result.dtypes)) + "|"
    yield result.summary
    yield ""
    yield "| letter | theorems |"
    yield "|---|---|"
    for letter, names in legend(result.legend):
        yield f"| {letter} | {', '.join(names)} |"
    for kind in dict.fromkeys(record.kind for record in result.mutants):
        yield f"\n### Mutants: {kind}\n"
        yield f"| mutant {head}"
        yield rule
        for record in result.mutants:
            if record.kind == kind:
                cells = " | ".join(mark(record, dtype) for dtype in result.dtypes)
                yield f"| **{record.name}**: {record.story} | {cells} |"
    if result.mutants:
        yield "\n### Survivors\n"
        for name, dtypes, reason in survivors(result):
            yield f"- **{name}** ({dtypes})"
            yield f"  — {reason}."
        if not survivors(result):
            yield "None."
    if result.variants:
        yield "\n### Correct variants\n"
        yield f"| variant {head}"
        yield rule
        for variant in result.variants:
            cells = " | ".join(share(variant, dtype) for dtype in result.dtypes)
            yield f"| **{variant.name}**: {variant.story} | {cells} |"
    for fault in result.faults:
        yield f"\n**Fault:** {fault}"
