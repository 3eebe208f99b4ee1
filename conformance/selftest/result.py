"""The record of a self-test: what caught each mutant, what each variant used of its budget, and what is amiss."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA = "hardmask-selftest/1"

Status = Literal["caught", "survived", "passed", "failed"]


class MutantCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One mutant in one dtype.

    ``theorems``: keys of the declarations that caught it. ``reason``: why it is expected to survive; empty for one
    that must be caught. ``witness``: ``batch`` and ``row`` of a failed row, and what the referee says about it.
    """

    status: Status
    theorems: list[str] = []
    reason: str = ""
    witness: str = ""


class MutantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One mutant, by dtype; ``kind`` in words."""

    name: str
    kind: str
    story: str
    numeric: bool
    cells: dict[str, MutantCell]


class VariantCell(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One correct variant in one dtype: the tier of its forward pass, and the largest share of a budget it used.

    ``theorems``: keys of the declarations under which it failed, and ``why`` in words.
    """

    status: Status
    tier: str
    share: float
    theorems: list[str] = []
    why: str = ""


class VariantRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One correct variant, by dtype."""

    name: str
    story: str
    contract: str
    cells: dict[str, VariantCell]


class SelfTest(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a self-test. ``faults``: sentences that say what is wrong with hardmask; none if all is well.

    ``remarks``: what would be a fault at default effort, to which the list of survivors belongs.
    """

    schema: str
    hardmask: str
    effort: str
    seed: int
    dtypes: list[str]
    legend: dict[str, str]
    mutants: list[MutantRecord]
    variants: list[VariantRecord]
    faults: list[str]
    remarks: list[str]
    seconds: float

    @property
    def exit_code(self) -> int:
        """3 if there is a fault, otherwise 0."""
        return 3 if self.faults else 0

    @property
    def summary(self) -> str:
        """One sentence: how many were caught, how many survive, how many variants passed."""
        cells = [c for m in self.mutants for c in m.cells.values()]
        caught = sum(c.status == "caught" for c in cells)
        left = len(cells) - caught
        good = [c for v in self.variants for c in v.cells.values()]
        passed = sum(c.status == "passed" for c in good)
        sentence = (
            f"{caught} of {len(cells)} wrong implementations were caught ({len(self.mutants)} mutants in up to "
            f"{len(self.dtypes)} dtypes), {left} survived"
        )
        if good:
            sentence += f"; {passed} of {len(good)} correct ones passed ({len(self.variants)} variants)"
        return f"{sentence}."
