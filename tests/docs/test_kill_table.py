"""docs/kill-table.md against the mutants, the variants, and a self-test of a share of them in each dtype."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from hardmask.conformance.attention.mutants import attention_mutants, attention_variants
from hardmask.conformance.mutants import mutants, variants
from hardmask.conformance.reports.kill_table import kill_table, summarised
from hardmask.conformance.selftest import selftest
from hardmask.conformance.selftest.letters import LETTERS
from hardmask.conformance.selftest.report import ABSENT, SURVIVOR, mark
from hardmask.conformance.selftest.run import name_of
from hardmask.spec.formats import DTYPES

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "kill-table.md").read_text()
ROW = re.compile(r"^\| \*\*(\S+)\*\*: (.+?) \|(.*)\|$", re.M)
TABLE = {name: (story, [cell.strip() for cell in cells.split("|")]) for name, story, cells in ROW.findall(PAGE)}
MEND = "Run: python docs/generate_kill_table.py"
MUTANTS = (*mutants(), *attention_mutants())
VARIANTS = (*variants(), *attention_variants())


def test_the_page_lists_every_mutant_and_variant_with_its_story() -> None:
    stories = [(name_of(x), x.story) for x in (*MUTANTS, *VARIANTS)]
    assert {name: story for name, (story, _) in TABLE.items()} == dict(stories), MEND
    introduction = runpy.run_path(str(DOCS / "generate_kill_table.py"))["INTRODUCTION"]
    assert PAGE.startswith(introduction), MEND
    assert "**Fault:**" not in PAGE


def test_what_survives_on_the_page_is_what_the_mutants_list() -> None:
    for mutant in MUTANTS:
        for dtype, cell in zip(DTYPES, TABLE[name_of(mutant)][1], strict=True):
            where = f"{name_of(mutant)} in {dtype}"
            assert (cell == ABSENT) == (dtype not in mutant.subject.dtypes), where
            assert (cell == SURVIVOR) == (dtype in mutant.survivors), where
            assert cell == SURVIVOR or set(cell) <= set(LETTERS.values()), where
        for reason in mutant.survivors.values():
            name, why = re.escape(name_of(mutant)), re.escape(reason.rstrip("."))
            assert re.search(rf"^- \*\*{name}\*\* \(.*\)\n  — {why}\.$", PAGE, re.M), mutant.name


def test_variants_on_the_page_stay_within_their_budgets() -> None:
    for variant in VARIANTS:
        for dtype, cell in zip(DTYPES, TABLE[name_of(variant)][1], strict=True):
            assert (cell == ABSENT) == (dtype not in variant.subject.dtypes)
            if cell:
                tier, share = cell.split()
                assert tier == variant.subject.tier_for("forward", dtype)
                assert 0.0 <= float(share) <= 1.0


@pytest.mark.parametrize("turn", range(len(DTYPES)), ids=DTYPES)
def test_the_letters_are_those_that_catch_them_here(turn: int) -> None:
    """Every second mutant takes its turn in one of the dtypes, which is an eighth of the work.

    Another processor has another exp: for faults of accuracy only the verdict is compared.
    """
    dtype = DTYPES[turn]
    names = [name_of(m) for m in MUTANTS[turn :: 2 * len(DTYPES)] if dtype in m.subject.dtypes]
    result = selftest(names, dtypes=[dtype])
    assert not result.faults
    assert [m.name for m in result.mutants] == names
    for record in result.mutants:
        shown, seen = TABLE[record.name][1][turn], mark(record, dtype)
        if record.numeric:
            shown, seen = (x if x == SURVIVOR else "caught" for x in (shown, seen))
        assert shown == seen, f"{record.name}: {MEND}"


EXPECTED = {"A": "E", "B": "E", "D": "Z", "E": "NX", "L": "W"}
"""Kind of fault -> the letters of the property that it violates, of the weights or of the derivatives: each is judged
by its own theorem, in every dtype."""


@pytest.mark.parametrize("kind", EXPECTED)
def test_a_kind_of_fault_is_caught_by_the_theorem_that_it_breaks(kind: str) -> None:
    mine = [m for m in mutants() if m.kind == kind and not m.survivors]
    assert mine
    for mutant in mine:
        for cell in TABLE[mutant.name][1]:
            assert cell == ABSENT or set(EXPECTED[kind]) & set(cell), mutant.name


def test_the_summary_that_reports_show_is_that_of_the_page() -> None:
    summary = kill_table()
    assert summary.summary in PAGE, MEND
    sections = {part.partition("\n")[0]: part for part in PAGE.partition("### Survivors")[0].split("### Mutants: ")[1:]}
    marks = {
        name: [cell.strip() for _, _, cells in ROW.findall(part) for cell in cells.split("|") if cell.strip()]
        for name, part in sections.items()
    }
    assert {kind.name: (kind.run, kind.run - kind.caught) for kind in summary.kinds} == {
        name: (len(mine), mine.count(SURVIVOR)) for name, mine in marks.items()
    }, MEND
    assert sorted(summary.survivors) == sorted(
        f"{name_of(m)} in {dtype}" for m in MUTANTS for dtype in m.survivors if dtype in m.subject.dtypes
    ), MEND


def test_a_summary_counts_the_cells_of_its_self_test() -> None:
    result = selftest(["eps-1e-6", "eps-1e-12"], dtypes=["float32"])
    summary = summarised(result)
    assert (summary.run, summary.caught, summary.survivors) == (2, 1, ["eps-1e-12 in float32"])
    assert summary.summary == result.summary
