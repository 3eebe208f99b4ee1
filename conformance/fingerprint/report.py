"""A fingerprint on a terminal and in Markdown: two tables for each adapter, and what failed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..terminal.matrix import SHORT
from .record import Fingerprint, Isolation, Record
from .report_paths import code, markdown_paths, print_paths

EMPTY_HEAD = ("dtypes", "empty row", "VJP", "JVP", "spreads to", "−∞ row")
BLOCKED_HEAD = ("dtypes", "True means", "blocked keys", "isolation", "NaN seen")

LEGEND = (
    "empty row: what a row without an allowed key gives (an attention: its output), and its derivatives. spreads to: "
    "what else is not finite beside it. −∞ row: all allowed scores are −∞. True means: in the entry point's own mask; "
    "where the subject reads it otherwise, how. blocked keys: their weight; ≥: from which blocked score on they have "
    "one, allowed scores being 0; what a finite constant amounts to. isolation: what a NaN, an infinity or an overflow "
    "at a blocked score, key or value (S, K, V), or a NaN in the cotangent of an empty row (g), reaches: forward, VJP, "
    "JVP (f, v, j). NaN seen: whether one at an allowed place shows."
)

LETTERS = {
    "blocked score": "S",
    "blocked key": "K",
    "blocked value": "V",
    "blocked cotangent": "b",
    "blocked tangent": "t",
    "cotangent of an empty row": "g",
}
METHODS = {"forward": "f", "vjp": "v", "jvp": "j"}


def empty_cells(f: Fingerprint) -> tuple[str, ...]:
    """The cells of the first table, without the dtypes."""
    empty = f.empty_row
    forward = empty.forward + (" +valid" if empty.valid else "")
    if empty.weights and empty.weights != empty.forward and (empty.forward, empty.weights) != ("mean of V", "uniform"):
        forward += f" (weights {empty.weights})"
    return forward, empty.vjp, empty.jvp, ", ".join(empty.spreads) or "–", f.infinite_row


def blocked_cells(f: Fingerprint) -> tuple[str, ...]:
    """The cells of the second table, without the dtypes."""
    return (mask_cell(f), blocked_cell(f), isolation_cell(f.isolation), nan_cell(f))


def mask_cell(f: Fingerprint) -> str:
    """What True means, or how the mask was read instead; the alignment of a causal flag."""
    if f.encoding == "causal":
        return f.causal
    own = f.encoding if f.encoding in ("lengths", "finite", "additive") else f.declared_mask
    return own if f.mask == "allowed" else "error" if f.mask == "error" else f"read as {f.mask}"


def blocked_cell(f: Fingerprint) -> str:
    """Exactly 0, or how large the weight is and from which blocked score on one appears."""
    if f.blocked_weight is None:
        return f.mask
    parts = ["0" if f.blocked_weight == 0.0 else f"{f.blocked_weight:.2g}"]
    if f.leaks_from is not None:
        size = round(math.log10(f.leaks_from)) if f.leaks_from >= 1000 else None
        parts.append(f"≥{f.leaks_from:g}" if size is None else f"≥1e{size}")
    if f.reading:
        parts.append(f.reading)
    return ", ".join(parts)


def isolation_cell(found: Sequence[Isolation]) -> str:
    """``kept``, or by place the methods that something reached."""
    parts = []
    for place, letter in LETTERS.items():
        here = [i for i in found if i.place == place]
        for verdict, sign in (("reached", ""), ("error", "!"), ("not reproducible", "~")):
            # A method that fails without a poison too is an error of its own, and shown elsewhere.
            hit = [i for i in here if i.verdict == verdict and (i.input or verdict != "error")]
            methods = dict.fromkeys(METHODS[i.method] for i in hit)
            if methods:
                parts.append(f"{sign}{letter}:{''.join(methods)}")
    if not parts and all(i.verdict == "error" for i in found):
        return "error" if found else "–"
    return " ".join(parts) or "kept"


def nan_cell(f: Fingerprint) -> str:
    """Whether a genuine NaN at an allowed place is seen."""
    kinds = set(f.allowed_nan.values())
    if len(kinds) == 1 and kinds <= {"visible", "error"}:
        return "yes" if kinds == {"visible"} else "error"
    return ", ".join(f"{place} {kind}" for place, kind in f.allowed_nan.items() if kind != "visible") or "–"


def rows(
    found: Iterable[Fingerprint],
    cells: Callable[[Fingerprint], tuple[str, ...]],
    prefix: str = "",
    nested: bool = False,
) -> Iterator[tuple[str, ...]]:
    """One line per subject and kind of answer; dtypes that answer alike share a line.

    ``nested``: the paths of one entry point, ``name[path]``, stand below its name.
    """
    by_subject: dict[str, list[Fingerprint]] = {}
    for f in found:
        by_subject.setdefault(f.subject, []).append(f)
    entries = Counter(subject.partition("[")[0] for subject in by_subject)
    above = ""
    for subject, mine in by_subject.items():
        groups: dict[tuple[str, ...], list[str]] = {}
        for f in mine:
            groups.setdefault(cells(f), []).append(SHORT[f.dtype])
        entry, bracket, path = subject.partition("[")
        name = subject.removeprefix(prefix)
        if nested and bracket and entries[entry] > 1:
            if above != entry:
                yield (entry.removeprefix(prefix),)
            name = f"  [{path.replace(',', ', ')}"  # so that it can be broken into lines
        above = entry
        for n, (line, dtypes) in enumerate(groups.items()):
            yield name if n == 0 else "", "all" if len(groups) == 1 and len(mine) > 1 else " ".join(dtypes), *line


def breach_lines(record: Record) -> Iterator[str]:
    """The smallest input that shows each breach of isolation, once for each subject, place and method."""
    seen = set()
    for f in record.fingerprints:
        for i in f.isolation:
            if i.verdict == "reached" and (key := (f.subject, i.place, i.method)) not in seen:
                seen.add(key)
                given = ", ".join(f"{name} {str(value).replace(chr(39), '')}" for name, value in i.input.items())
                yield f"{f.subject} · {i.method} · {f.dtype} · {i.poison} at a {i.place}: {i.detail}. With {given}."


def print_fingerprint(record: Record, console: Console) -> None:
    """The tables, the causal alignments, what failed and what was not probed."""
    for adapter in dict.fromkeys(f.adapter for f in record.fingerprints):
        mine = [f for f in record.fingerprints if f.adapter == adapter]
        for head, cells in ((EMPTY_HEAD, empty_cells), (BLOCKED_HEAD, blocked_cells)):
            table = Table(box=None, pad_edge=False, header_style="bold")
            table.add_column(Text(adapter), overflow="fold", min_width=20)
            for name in head:
                table.add_column(name, overflow="fold", no_wrap=name == "isolation")
            for row in rows(mine, cells, adapter + ".", nested=True):
                table.add_row(*(Text(cell) for cell in row))
            console.print(table)
            console.print()
    breaches = list(breach_lines(record))
    if len({f.subject for f in record.fingerprints}) <= DETAILED:
        for line in breaches:
            console.print(Text(line), soft_wrap=True)
        if breaches:
            console.print()
    if record.paths:
        print_paths(record, console)
    for sentence in _sentences(record):
        console.print(Text(sentence), soft_wrap=True)
    for line in _skipped(record):
        console.print(Text(line), soft_wrap=True)
    if not record.complete:
        console.print("Interrupted: this shows what was probed until then.")
    console.print(Text(LEGEND, style="dim"), soft_wrap=not console.is_terminal)
    total = len(record.fingerprints)
    console.print(f"{total} subjects and dtypes in {record.seconds:.1f} s. Nothing is judged here.", highlight=False)


DETAILED = 3
"""Subjects at most of which the breaches of isolation are spelt out; the JSON has all."""


def _sentences(record: Record) -> list[str]:
    """What failed, each once: sentences that differ in the dtype alone are one."""
    found: dict[str, str] = {}
    for f in record.fingerprints:
        for sentence in f.errors:
            found.setdefault(sentence.replace(f.dtype, ""), sentence)
    return list(found.values())


def _skipped(record: Record) -> Iterator[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for s in record.skipped:
        groups.setdefault((s.dtype, s.reason), []).append(s.subject)
    for (dtype, reason), ids in groups.items():
        yield f"Not probed in {dtype}: {', '.join(ids)}. {reason}"


def markdown(record: Record) -> str:
    """The tables as Markdown, without anything that changes from run to run."""
    return "\n".join(_markdown(record)) + "\n"


def _markdown(record: Record) -> Iterator[str]:
    frameworks = ", ".join(f"{name} {version}" for name, version in record.environment["frameworks"].items())
    yield f"Measured with hardmask {record.hardmask}: {frameworks}; Python {record.environment['python']}."
    for adapter in dict.fromkeys(f.adapter for f in record.fingerprints):
        mine = [f for f in record.fingerprints if f.adapter == adapter]
        for head, cells in ((EMPTY_HEAD, empty_cells), (BLOCKED_HEAD, blocked_cells)):
            yield ""
            yield f"| {adapter} | {' | '.join(head)} |"
            yield "|---" * (1 + len(head)) + "|"
            for name, *line in rows(mine, cells, adapter + "."):
                yield "| " + " | ".join([code(name), *line]) + " |"
    yield from markdown_paths(record)
    yield ""
    for sentence in (*_sentences(record), *_skipped(record)):
        yield f"- {sentence}"
    yield ""
    yield LEGEND
