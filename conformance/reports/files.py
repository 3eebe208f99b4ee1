"""The reports that a command was asked for: prepared before the work, written after it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..output import OutputError, writable, write_or_explain
from ..text import printable
from .outcome import Outcome

STDOUT = "-"


@dataclass(frozen=True)
class Wanted:
    """One report to be written: its ``kind``, how to ``render`` it, the file as ``named``, and its absolute ``path``.

    Without a path it goes to standard output.
    """

    kind: str
    named: str
    path: Path | None
    render: Callable[[Outcome], bytes]

    def write(self, outcome: Outcome) -> str:
        """Write the report; returns a sentence about it. Raises OutputError."""
        content = self.render(outcome)
        if self.path is None:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
            return ""
        write_or_explain(self.path, content, self.named, self.kind)
        return f"{self.kind}: {printable(self.named)}"


def wanted(**files: str | None) -> list[Wanted]:
    """The reports asked for, by kind: ``html``, ``junit``, ``markdown``. ``-`` is standard output.

    Raises ValueError, with a sentence, where a file cannot be written, two reports go to one place, or what a kind
    needs is not installed.

    >>> [w.kind for w in wanted(junit="-", markdown=None)]
    ['JUnit report']
    """
    found: list[Wanted] = []
    for name, file in files.items():
        if file is not None:
            kind, render = _KINDS[name]()
            path = None if file == STDOUT else writable(file, kind)
            if any(path == other.path for other in found):
                raise OutputError(f"Two reports cannot both be written to '{file}'.")
            found.append(Wanted(kind, file, path, render))
    return found


def _html() -> tuple[str, Callable[[Outcome], bytes]]:
    from .page.html import environment, html

    environment()
    return "HTML report", html


def _junit() -> tuple[str, Callable[[Outcome], bytes]]:
    from .junit import junit

    return "JUnit report", junit


def _markdown() -> tuple[str, Callable[[Outcome], bytes]]:
    from .markdown import markdown

    return "Markdown report", lambda outcome: markdown(outcome).encode()


_KINDS = {"html": _html, "junit": _junit, "markdown": _markdown}
