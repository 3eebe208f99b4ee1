"""Run every mutant and every correct variant through the checks, and say whether hardmask told them apart."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from itertools import chain

from ...adapters.attention import Attention
from ...adapters.subject import Subject
from ...spec.formats import DTYPES
from ...spec.oracle.referee import Decision
from .. import __version__
from ..attention.checks import SERVED_BY as ATTENTION_SERVED_BY
from ..attention.judgement import WorstVector
from ..attention.mutants import KINDS as ATTENTION_KINDS
from ..attention.mutants import AttentionMutant, AttentionVariant, attention_mutants, attention_variants
from ..attention.verdicts import confirm as confirm_attention
from ..cases import EFFORTS, plan
from ..checks import SERVED_BY
from ..mutants import KINDS, Mutant, Variant, mutants, variants
from ..runner import Event, wanted
from ..verdicts import confirm
from .attention import attention_cases, run_attention
from .cell import Cell, Shown
from .letters import LETTERS
from .result import SCHEMA, MutantCell, MutantRecord, SelfTest, VariantCell, VariantRecord
from .work import Cells, run_by_name, run_here

AnyMutant = Mutant | AttentionMutant
AnyVariant = Variant | AttentionVariant

KEYS = tuple(dict.fromkeys((*SERVED_BY, *ATTENTION_SERVED_BY)))
"""The declarations that may catch a mutant."""

LISTED_AT = "default"
"""The effort to which the mutants' lists of survivors belong."""


def selftest(
    names: Sequence[str] = (),
    *,
    dtypes: Sequence[str] = DTYPES,
    effort: str = LISTED_AT,
    seed: int = 0,
    jobs: int = 1,
    listen: Callable[[Event], None] = lambda event: None,
    given: tuple[Sequence[AnyMutant], Sequence[AnyVariant]] | None = None,
) -> SelfTest:
    """Judge the mutants and variants, all of them or those whose name matches a glob of ``names``.

    ``jobs``: worker processes. ``given``: mutants and variants to judge instead of the shipped ones, in this process.
    A mutant counts as caught if a theorem fails it; one that merely raises has not been caught. For each mutant and
    dtype the arbitrary-precision referee confirms one failed row.

    Raises ValueError for an unknown dtype or effort, a negative seed, and a name that nothing matches.

    >>> from hardmask.conformance.mutants import mutants
    >>> uniform = [m for m in mutants() if m.name == "empty-uniform"]
    >>> result = selftest(dtypes=["float32"], effort="smoke", given=(uniform, []))
    >>> result.mutants[0].cells["float32"].status, result.exit_code
    ('caught', 0)
    """
    started = time.perf_counter()
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"There is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
    if effort not in EFFORTS:
        raise ValueError(f"There is no effort '{effort}'. Choose from: {', '.join(EFFORTS)}.")
    if seed < 0:
        raise ValueError(f"A seed is a whole number from 0; {seed} is negative.")
    all_bad: Sequence[AnyMutant] = (*mutants(), *attention_mutants()) if given is None else given[0]
    all_good: Sequence[AnyVariant] = (*variants(), *attention_variants()) if given is None else given[1]
    bad, good = _matching(all_bad, all_good, names)
    every = [*(m.subject for m in bad), *(v.subject for v in good)]
    subjects = [s for s in every if isinstance(s, Subject)]
    cases = [c for c in plan(effort, seed, dtypes) if wanted(c, subjects)]
    cells: Cells = {}
    if given is None:
        events = run_by_name(cases, frozenset(s.id for s in subjects), jobs, cells)
    else:
        events = run_here(cases, subjects, cells)
    attentions = [s for s in every if isinstance(s, Attention)]
    problems = attention_cases(effort, seed, dtypes) if attentions else []
    for event in chain(events, run_attention(problems, attentions, jobs, cells, by_name=given is None)):
        listen(event)
    faults: list[str] = []
    remarks: list[str] = []
    about_list = faults if effort == LISTED_AT else remarks
    records = [_mutant(m, dtypes, cells, faults, about_list) for m in bad]
    return SelfTest(
        schema=SCHEMA,
        hardmask=__version__,
        effort=effort,
        seed=seed,
        dtypes=list(dtypes),
        legend={key: LETTERS.get(key, "*") for key in KEYS},
        mutants=records,
        variants=[_variant(v, dtypes, cells, faults) for v in good],
        faults=faults,
        remarks=remarks,
        seconds=round(time.perf_counter() - started, 3),
    )


def name_of(item: AnyMutant | AnyVariant) -> str:
    """The name of a mutant or variant; that of an attention begins with ``attention.``."""
    return item.name if isinstance(item, (Mutant, Variant)) else f"attention.{item.name}"


def place_of(worst: Shown) -> str:
    """Where a failed row or vector is."""
    if isinstance(worst, WorstVector):
        return f"{worst.problem.key}, {worst.quantity} {list(worst.index)}"
    return f"{worst.batch}, row {worst.row}"


def _asked(worst: Shown) -> tuple[Decision | None, str]:
    """What the referee says about a failed row or vector, and where that is."""
    decision = confirm_attention(worst) if isinstance(worst, WorstVector) else confirm(worst)
    return decision, place_of(worst)


def _matching(
    bad: Sequence[AnyMutant], good: Sequence[AnyVariant], names: Sequence[str]
) -> tuple[list[AnyMutant], list[AnyVariant]]:
    known = [name_of(x) for x in (*bad, *good)]
    for name in names:
        if not any(fnmatchcase(x, name) for x in known):
            raise ValueError(f"No mutant and no variant is called '{name}'. Without names, all of them are run.")
    asked = names or ["*"]
    return (
        [m for m in bad if any(fnmatchcase(name_of(m), n) for n in asked)],
        [v for v in good if any(fnmatchcase(name_of(v), n) for n in asked)],
    )


def _mutant(
    mutant: AnyMutant, dtypes: Sequence[str], cells: Cells, faults: list[str], about_list: list[str]
) -> MutantRecord:
    found: dict[str, MutantCell] = {}
    for dtype in dtypes:
        if dtype not in mutant.subject.dtypes:
            continue
        cell = cells.get((mutant.subject.id, dtype), Cell())
        reason = mutant.survivors.get(dtype, "").rstrip(".")
        witness = ""
        if cell.witness is not None:
            decision, where = _asked(cell.witness)
            if decision is not None and not decision.exceeds:
                faults.append(
                    f"The referee contradicts the checks about {name_of(mutant)} in {dtype} ({where}): {decision}"
                )
            witness = f"{where}: {'fails by its structure' if decision is None else decision}"
        if cell.caught and reason:
            about_list.append(f"{name_of(mutant)} in {dtype} is listed as a survivor ({reason}), and was caught.")
        elif not cell.caught and not reason:
            raised = f": its calls raised, which proves nothing ({cell.errors[0]})" if cell.errors else ""
            about_list.append(f"{name_of(mutant)} in {dtype} survived and is not on the list of survivors{raised}.")
        found[dtype] = MutantCell(
            status="caught" if cell.caught else "survived",
            theorems=[key for key in KEYS if key in cell.caught],
            reason=reason,
            witness=witness,
        )
    kind = KINDS[mutant.kind] if isinstance(mutant, Mutant) else f"attention: {ATTENTION_KINDS[mutant.kind]}"
    return MutantRecord(name=name_of(mutant), kind=kind, story=mutant.story, numeric=mutant.numeric, cells=found)


def _variant(variant: AnyVariant, dtypes: Sequence[str], cells: Cells, faults: list[str]) -> VariantRecord:
    subject = variant.subject
    found: dict[str, VariantCell] = {}
    for dtype in dtypes:
        if dtype not in subject.dtypes:
            continue
        cell = cells.get((subject.id, dtype), Cell())
        theorems = [key for key in KEYS if key in cell.caught or key in cell.vacuous]
        why = _trouble(cell)
        if why:
            faults.append(f"The correct variant {name_of(variant)} did not pass in {dtype}: {why}.")
        found[dtype] = VariantCell(
            status="failed" if why else "passed",
            tier=subject.tier_for("forward", dtype),
            share=round(cell.share, 3),
            theorems=theorems,
            why=why,
        )
    return VariantRecord(name=name_of(variant), story=variant.story, contract=subject.contract, cells=found)


def _trouble(cell: Cell) -> str:
    """What is wrong with a variant's answers, in words; empty if nothing is."""
    if cell.errors:
        return cell.errors[0].rstrip(".")
    if cell.caught:
        row = "" if cell.witness is None else f", for instance {place_of(cell.witness)}"
        return f"it failed {', '.join(cell.caught)}{row}"
    if cell.vacuous:
        return f"its budget says nothing about {', '.join(cell.vacuous)}"
    return "" if cell.checked else "it was never judged"
