"""Print a whole report."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..certification import Report
from ..finding import BEYOND, Finding
from .accuracy import generosity, losses, searched
from .known import known_deviations
from .matrix import tables, used
from .sweeps import sweep_notes, sweep_table
from .witness import block, grouped

BLOCKS = 6
"""Failures shown in full per subject; the certificate holds the others."""


def print_report(report: Report, console: Console) -> None:
    """The tables, the failures, what was not judged, and the verdict with its seed."""
    certificate = report.certificate
    sampled = certificate.request["effort"] is not None
    for table in tables(certificate, console.width) if sampled else ():
        console.print(table)
        console.print()
    if certificate.sweeps:
        console.print(sweep_table(certificate))
        for note in sweep_notes(certificate):
            console.print(Text(note), soft_wrap=True)
        console.print()
    shown: dict[str, int] = {}
    hidden = 0
    for group in grouped(f for f in certificate.findings if f.deviation is None):
        subject = group[0].subject
        shown[subject] = shown.get(subject, 0) + 1
        if shown[subject] > BLOCKS:
            hidden += 1
            continue
        console.print(Text(block(group, certificate)), soft_wrap=True)
        console.print()
    if hidden:
        console.print(f"{hidden} more kinds of failure are in the certificate (--out FILE).\n")
    if certificate.deviations:
        for line in known_deviations(certificate):
            console.print(Text(line), soft_wrap=True)
        console.print()
    for text in (*losses(certificate), *searched(certificate), *generosity(certificate)):
        console.print(Text(text), soft_wrap=True)
        console.print()
    unsupported = _unsupported(certificate.findings)
    if unsupported:
        console.print(Text("Not judged: " + "; ".join(unsupported) + "."), soft_wrap=True)
    for line in _limited(certificate.findings):
        console.print(Text(line), soft_wrap=True)
    counts = sum(f.elements for f in certificate.findings)
    seconds = certificate.times["seconds"]
    if sampled:
        console.print(
            "Cells show the verdict and the largest share of the error budget that was used. "
            f"Seed {certificate.seed}, effort {certificate.request['effort']}, {counts:,} judged entries, "
            f"{seconds:.1f} s.",
            soft_wrap=True,
        )
        audit = certificate.audit
        console.print(
            f"Oracle audited on {audit.rows:,} rows ({audit.entries:,} entries) by {audit.engine}: "
            f"at most {used(audit.share)} of its stated error was used.",
            soft_wrap=True,
        )
    else:
        rows = sum(s.rows for s in certificate.sweeps)
        console.print(f"Seed {certificate.seed}, {rows:,} rows enumerated, {seconds:.1f} s.", soft_wrap=True)
    style = "bold green" if report.exit_code == 0 else "bold red"
    console.print(Text(report.reason, style=style), soft_wrap=True)


def _unsupported(findings: Sequence[Finding]) -> list[str]:
    """What was not judged: for each group of subjects with the same reasons, the reasons."""
    reasons: dict[str, list[str]] = {}
    for f in findings:
        limited = f.family.startswith(BEYOND)
        if f.verdict == "unsupported" and not limited and f.diagnosis not in reasons.setdefault(f.subject, []):
            reasons[f.subject].append(f.diagnosis)
    groups: dict[tuple[str, ...], list[str]] = {}
    for subject, mine in reasons.items():
        groups.setdefault(tuple(reason.rstrip(".") for reason in mine), []).append(subject)
    return [f"{', '.join(subjects)} ({'; '.join(mine)})" for mine, subjects in groups.items()]


def _limited(findings: Sequence[Finding]) -> list[str]:
    """What attentions do not take, for each group of subjects with the same limits; the reasons are long."""
    limits: dict[str, list[str]] = {}
    for f in findings:
        if f.family.startswith(BEYOND):
            mine = limits.setdefault(f.subject, [])
            mine += [name for name in (f.family.removeprefix(BEYOND),) if name not in mine]
    groups: dict[tuple[str, ...], list[str]] = {}
    for subject, mine in limits.items():
        groups.setdefault(tuple(sorted(mine)), []).append(subject)
    return [
        f"Not taken by {', '.join(subjects)}: {', '.join(mine)} (the certificate holds the reasons)."
        for mine, subjects in groups.items()
    ]
