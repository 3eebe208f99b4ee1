"""What a verification found: what does not hold, what was checked and recomputed, what could not be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..text import printable


@dataclass(frozen=True)
class Problem:
    """Something that does not hold; ``where`` names the finding or the part of the certificate."""

    where: str
    sentence: str


@dataclass(eq=False)
class Ledger:
    """Filled in the course of a verification; every text in it is printable.

    ``checked``: facts that agree with each other. ``recomputed``: numbers that were computed again. ``open``: what
    could not be recomputed, by the reason.
    """

    problems: list[Problem] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    recomputed: Counter[str] = field(default_factory=Counter)
    open: Counter[str] = field(default_factory=Counter)

    @property
    def notes(self) -> int:
        """How many times something did not hold, or could not be recomputed."""
        return len(self.problems) + self.open.total()

    def wrong(self, where: str, sentence: str) -> None:
        """Something does not hold."""
        self.problems.append(Problem(printable(where), printable(sentence, 600)))

    def expect(self, holds: bool, where: str, sentence: str) -> bool:
        """Note a problem unless something holds."""
        if not holds:
            self.wrong(where, sentence)
        return holds
