"""What a pass is worth: the summary of the self-test that the kill table shows, shipped with the package."""

from __future__ import annotations

from importlib import resources

import msgspec

from ..selftest.result import SelfTest

FILE = "kill-table.json"


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of mutants: its ``name``, in how many dtypes they were run, and in how many they were ``caught``."""

    name: str
    run: int
    caught: int


class KillTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A self-test in numbers: mutants and correct variants, each counted once in every dtype that it was run in."""

    summary: str
    kinds: list[Kind]
    survivors: list[str]

    @property
    def run(self) -> int:
        """How many wrong implementations were run."""
        return sum(kind.run for kind in self.kinds)

    @property
    def caught(self) -> int:
        """How many of them were caught."""
        return sum(kind.caught for kind in self.kinds)


def kill_table() -> KillTable:
    """The summary of the self-test that ``docs/kill-table.md`` shows.

    >>> table = kill_table()
    >>> table.caught + len(table.survivors) == table.run
    True
    """
    return msgspec.json.decode(resources.files(__package__).joinpath(FILE).read_bytes(), type=KillTable)


def summarised(result: SelfTest) -> KillTable:
    """The summary of a self-test."""
    kinds: dict[str, list[int]] = {}
    for mutant in result.mutants:
        counts = kinds.setdefault(mutant.kind, [0, 0])
        counts[0] += len(mutant.cells)
        counts[1] += sum(cell.status == "caught" for cell in mutant.cells.values())
    survivors = [
        f"{mutant.name} in {dtype}"
        for mutant in result.mutants
        for dtype, cell in mutant.cells.items()
        if cell.status != "caught"
    ]
    return KillTable(
        summary=result.summary, kinds=[Kind(name, *counts) for name, counts in kinds.items()], survivors=survivors
    )
