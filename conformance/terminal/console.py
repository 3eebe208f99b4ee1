"""The consoles that commands print to."""

from __future__ import annotations

import sys

from rich.console import Console

WIDTH = 140
"""Columns where the output is no terminal, so that a file does not depend on the window."""


def output() -> Console:
    """Standard output. Text is printed as it is: an id or a reason may have brackets, which are no markup."""
    return Console(markup=False) if sys.stdout.isatty() else Console(width=WIDTH, markup=False)


def errors() -> Console:
    """Standard error, for progress."""
    return Console(stderr=True, markup=False)
