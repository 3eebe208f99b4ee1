"""What the checks say about one subject in one dtype, small enough to travel between processes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ..attention.judgement import AttentionTallies, WorstVector
from ..judgement import Counts, Worst
from ..tally import Tallies

Shown = Worst | WorstVector
"""What the referee is asked about."""


@dataclass(eq=False)
class Cell:
    """The counts of one mutant or variant in one dtype, merged over families and batches.

    ``caught``: declaration key -> failed rows. ``checked``: rows that were judged. ``share``: the largest
    ``error / budget``. ``blind``: declaration key -> rows whose budget can tell nothing, and rows that might be told.
    ``witness``: the failed row that the referee is asked about. ``errors``: why calls gave no usable answer.
    """

    caught: dict[str, int] = field(default_factory=dict)
    checked: int = 0
    share: float = 0.0
    blind: dict[str, tuple[int, int]] = field(default_factory=dict)
    witness: Shown | None = None
    errors: list[str] = field(default_factory=list)

    def merge(self, other: Cell) -> None:
        """Add the counts of another batch."""
        for key, failed in other.caught.items():
            self.caught[key] = self.caught.get(key, 0) + failed
        for key, (blind, tellable) in other.blind.items():
            mine = self.blind.get(key, (0, 0))
            self.blind[key] = mine[0] + blind, mine[1] + tellable
        self.checked += other.checked
        self.share = max(self.share, other.share)
        if other.witness is not None and better(other.witness, self.witness):
            self.witness = other.witness
        self.errors += [e for e in other.errors if e not in self.errors]

    @property
    def vacuous(self) -> list[str]:
        """Declarations about which the budget says nothing on any row."""
        return [key for key, (blind, tellable) in self.blind.items() if tellable and blind == tellable]


def better(new: Shown, old: Shown | None) -> bool:
    """Whether a failed row is the better one to ask the referee about.

    One with a number to decide goes before one that fails by its structure (a NaN, or a weight where 0 is due); of
    equals the shorter row, and then the first by batch and row, so that the order of merging does not matter.
    """
    return old is None or _preference(new) < _preference(old)


def _preference(worst: Shown) -> tuple[bool, int, int, str, tuple[int, ...], str]:
    structural = worst.budget <= 0.0 or not math.isfinite(worst.error)
    if isinstance(worst, WorstVector):
        p = worst.problem
        return structural, p.q.size + p.k.size, int(p.full_mask.sum()), p.key, worst.index, worst.quantity
    return structural, len(worst.mask), int(worst.mask.sum()), worst.batch, (worst.row,), worst.quantity


def cell_of(tallies: Tallies) -> Cell:
    """The counts of one batch."""
    cell = Cell()
    for (key, _), tally in tallies.items():
        _add(cell, key, tally, tally.worst)
    return cell


def attention_cell_of(tallies: AttentionTallies) -> Cell:
    """The counts of one problem."""
    cell = Cell()
    for (key, _), tally in tallies.items():
        _add(cell, key, tally, tally.worst)
    return cell


def _add(cell: Cell, key: str, tally: Counts, worst: Shown | None) -> None:
    cell.errors += [e for e in tally.errors if e not in cell.errors]
    cell.checked += tally.checked
    cell.share = max(cell.share, tally.ratio)
    blind, tellable = cell.blind.get(key, (0, 0))
    cell.blind[key] = blind + tally.blind, tellable + tally.tellable
    if tally.failed and not tally.errors:
        cell.caught[key] = cell.caught.get(key, 0) + tally.failed
        if worst is not None and better(worst, cell.witness):
            cell.witness = worst
