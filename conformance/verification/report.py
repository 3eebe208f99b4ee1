"""A verification in words, for the terminal, and as a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from ..output import json_bytes
from ..text import printable
from .verify import Verification

SHOWN = 20
"""Problems that are printed, at most; the record has all of them."""


def print_verification(found: Verification, name: str, signed: str, console: Console) -> None:
    """What was checked, what was recomputed, what could not be, what does not hold, and the conclusion."""

    def line(text: str) -> None:
        console.print(text, soft_wrap=True, highlight=False, markup=False)

    line(f"{printable(name)}, {found.digest[:23]}…, written by hardmask {printable(found.hardmask, 40)}")
    if signed:
        line(signed)
    _block(line, "agrees", found.checked)
    _block(line, f"recomputed, by {found.referee}", found.recomputed)
    _block(line, "could not be recomputed", found.open)
    if found.problems:
        line("does not hold")
        for problem in found.problems[:SHOWN]:
            line(f"  {problem.where}: {problem.sentence}")
        if len(found.problems) > SHOWN:
            line(f"  … and {len(found.problems) - SHOWN:,} more; --json has all of them")
    line(f"It says: {found.says}")
    line(conclusion(found))


def conclusion(found: Verification) -> str:
    """The last sentence."""
    if found.holds:
        return "Verified: nothing in it contradicts what it says."
    count = len(found.problems)
    return f"Not verified: {'one thing does' if count == 1 else f'{count:,} things do'} not hold."


def record(found: Verification, name: str, signed: str) -> bytes:
    """The verification as JSON."""
    made: dict[str, Any] = {
        "certificate": printable(name),
        "digest": found.digest,
        "hardmask": printable(found.hardmask, 40),
        "verifier": found.verifier,
        "referee": found.referee,
        "signed": signed or None,
        "verified": found.holds,
        "certified": found.certified,
        "says": found.says,
        "problems": [{"where": p.where, "sentence": p.sentence} for p in found.problems],
        "checked": found.checked,
        "recomputed": found.recomputed,
        "not_recomputed": found.open,
    }
    return json_bytes(made)


def _block(line: Any, title: str, counts: Mapping[str, int]) -> None:
    if not counts:
        return
    line(title)
    for what, count in counts.items():
        line(f"  {count:>9,}  {what}")
