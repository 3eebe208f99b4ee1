"""Text that somebody else wrote, made safe to print."""

from __future__ import annotations

LONGEST = 300


def printable(text: str, longest: int = LONGEST) -> str:
    """One line of printable characters, cut after ``longest``: for what comes from files, and goes to a terminal.

    >>> printable("too \\x1b[31mred\\n")
    'too [31mred'
    """
    safe = "".join(c for c in text[: 4 * longest] if c.isprintable())
    return safe if len(safe) <= longest else safe[: longest - 1] + "…"
