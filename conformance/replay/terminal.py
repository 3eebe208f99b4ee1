"""What ``hardmask replay`` prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from ...adapters.errors import TargetError
from ...adapters.remote import Options
from ..document import Certificate
from ..finding import Finding
from ..terminal.matrix import short_name
from ..terminal.witness import failures, text
from ..text import printable
from .again import Again, replay
from .choice import failing


def print_list(certificate: Certificate, path: str, console: Console) -> None:
    """The failing findings: of each subject and diagnosis the clearest, with its id."""
    groups = failures(certificate)
    if not groups:
        _line(console, "Nothing failed in this certificate. A finding that passed can be run again by its id.")
        return
    for group in groups:
        f, more = group[0], len(group) - 1
        also = f"  (+{more} alike)" if more else ""
        _line(
            console, f"{f.id}  {f.subject} · {short_name(f.declaration)} · {f.dtype} · {f.family}: {f.diagnosis}{also}"
        )
    _line(console, "")
    total = len(failing(certificate))
    _line(console, f"{total} findings failed, in {len(groups)} groups. Run: hardmask replay {path} {groups[0][0].id}")


def print_again(again: Again, then: Finding, certificate: Certificate, console: Console) -> None:
    """The status, what was put to the subject, and the witness block of what fails now."""
    _line(console, f"{then.id}: {again.status}. {again.changed}".rstrip())
    _line(console, f"  put to it  {again.put}")
    if again.exit_code:
        for line in text([again.now], certificate.declarations).split("\n"):
            _line(console, line)


def print_several(
    certificate: Certificate, findings: Sequence[Finding], console: Console, workers: Options | None
) -> int:
    """One line for each finding; returns the exit code."""
    code = 0
    for f in findings:
        about = f"{f.subject} · {short_name(f.declaration)} · {f.dtype} · {f.family}"
        try:
            again = replay(certificate, f, workers)
        except (TargetError, ValueError) as problem:
            code = max(code, 2)
            _line(console, f"{f.id}  not run again  {about}: {problem}")
            continue
        code = max(code, again.exit_code)
        _line(console, f"{f.id}  {again.status:<13}  {about}{': ' if again.changed else ''}{again.changed}")
    return code


def _line(console: Console, line: str) -> None:
    console.print(printable(line, 1000), markup=False, highlight=False, soft_wrap=True)
