"""Turn the tallies of attention into findings, with a witness that the referee has confirmed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec
import numpy as np

from ...adapters.attention import Attention
from ...adapters.subject import Method
from ...spec.attention.problem import Problem
from ...spec.attention.referee import decide
from ...spec.attention.tiers import canonical, ladder
from ...spec.batch import Array
from ...spec.oracle.referee import Decision
from ..diagnosis import ROUNDED
from ..document import Measured
from ..finding import BEYOND, AttentionWitness, Finding
from ..judgement import finite
from ..promises import declared
from ..suite_fault import SuiteFault
from ..verdicts import NOT_RUN, UNMET, diagnosis_of, verdict_of
from .checks import SERVED_BY
from .judgement import AttentionTallies, AttentionTally, WorstVector
from .runner import AttentionResults
from .view import REFEREED

READABLE = 600
"""Numbers of a problem that a finding shows in full, at most."""

INEXACT = (ROUNDED, "wrong output", "wrong weights", "wrong dq", "wrong dk", "wrong dv", "wrong tangent")
"""Diagnoses of errors that a weaker tier may admit."""


def attention_findings(
    subjects: Sequence[Attention], dtypes: Sequence[str], results: AttentionResults
) -> Iterator[Finding]:
    """Every finding on attention, subject by subject; what was not judged is there with its reason.

    Raises SuiteFault when the referee contradicts a reported failure.
    """
    for subject in subjects:
        for dtype in dtypes:
            yield from _of_dtype(subject, dtype, results.get((subject.id, dtype), {}))


def _of_dtype(subject: Attention, dtype: str, tallies: AttentionTallies) -> Iterator[Finding]:
    for key in SERVED_BY:
        name = declared(key).name
        here: dict[str, Any] = {"subject": subject.id, "declaration": name, "dtype": dtype}
        reason = _unsupported(subject, dtype, key)
        if reason:
            yield Finding(**here, family=NOT_RUN, verdict="unsupported", diagnosis=reason)
            continue
        mine = {family: t for (k, family), t in tallies.items() if k == key}
        if not mine:
            why = "no problem of this run meets its hypotheses"
            yield Finding(**here, family=NOT_RUN, verdict="hypothesis-unmet", diagnosis=why)
            continue
        holds = strongest(subject, dtype, key, mine)
        for family, tally in mine.items():
            if family.startswith(BEYOND):
                limit, why = family.removeprefix(BEYOND), tally.facts[0]
                yield Finding(**here, family=family, verdict="unsupported", diagnosis=f"{limit}: {why}")
                continue
            found = finding_of(subject, name, dtype, family, tally)
            if found.verdict == "fail" and found.diagnosis in INEXACT and holds not in ("", found.tier):
                found = msgspec.structs.replace(found, diagnosis=f"{ROUNDED}: holds under {holds}")
            yield found


def methods_of(subject: Attention, key: str) -> tuple[Method, ...]:
    """The methods that decide a declaration and that the subject offers; empty when it offers too few."""
    for served in SERVED_BY[key]:
        needed = cast("tuple[Method, ...]", tuple(served.split("+")))
        if set(needed) <= set(subject.methods):
            return needed
    return ()


def _unsupported(subject: Attention, dtype: str, key: str) -> str:
    """Why a subject cannot be judged on a declaration in a dtype; empty if it can."""
    if dtype not in subject.dtypes:
        return subject.unsupported.get(dtype, f"the subject does not offer {dtype}")
    if methods_of(subject, key):
        return ""
    needed = [m for served in SERVED_BY[key] for m in served.split("+")]
    missing = next(m for m in needed if m not in subject.methods)
    return subject.unsupported.get(missing, f"the subject offers no {missing}")


def declared_for(subject: Attention, key: str, dtype: str) -> str:
    """The tier that a subject declares for a declaration: the weakest of those of the methods that decide it."""
    methods = {m for served in SERVED_BY[key] for m in served.split("+")}
    steps = ladder(dtype)
    return max((canonical(subject.tier_for(m, dtype), dtype) for m in subject.methods if m in methods), key=steps.index)


def strongest(subject: Attention, dtype: str, key: str, mine: dict[str, AttentionTally]) -> str:
    """The strongest tier that no vector exceeded, over all families; empty where there is none."""
    failing = {tier for tally in mine.values() for tier in tally.failing}
    return next((tier for tier in ladder(dtype) if tier not in failing), "")


def attention_accuracies(
    subjects: Sequence[Attention], dtypes: Sequence[str], results: AttentionResults
) -> Iterator[Measured]:
    """The strongest tier of every subject, declaration and dtype that was judged."""
    for subject in subjects:
        for dtype in (d for d in dtypes if d in subject.dtypes):
            tallies = results.get((subject.id, dtype), {})
            for key in SERVED_BY:
                mine = {family: t for (k, family), t in tallies.items() if k == key}
                if methods_of(subject, key) and any(t.checked for t in mine.values()):
                    yield Measured(
                        subject=subject.id,
                        declaration=declared(key).name,
                        dtype=dtype,
                        declared=declared_for(subject, key, dtype),
                        strongest=strongest(subject, dtype, key, mine),
                    )


def finding_of(subject: Attention, name: str, dtype: str, family: str, tally: AttentionTally) -> Finding:
    """The finding of one tally. Raises SuiteFault when the referee does not confirm a failure."""
    verdict, diagnosis = verdict_of(tally), diagnosis_of(tally)
    worst = tally.witnesses.get(diagnosis, tally.worst)
    witness = None
    if worst is not None and verdict != "error":
        witness = confirmed(worst, subject.id, name) if verdict == "fail" else _place(worst)
    failing = verdict == "fail" and worst is not None
    ratio = worst.ratio if failing and worst is not None else tally.ratio
    return Finding(
        subject=subject.id,
        declaration=name,
        dtype=dtype,
        family=UNMET if verdict == "hypothesis-unmet" and not diagnosis else family,
        verdict=verdict,
        diagnosis=diagnosis,
        checked=tally.checked,
        failed=tally.failed,
        unmet=tally.unmet,
        elements=tally.elements,
        tier=worst.tier if worst is not None else tally.tier,
        ratio=ratio if tally.checked and math.isfinite(ratio) else None,
        error=finite(worst.error) if worst is not None else None,
        budget=finite(worst.budget) if worst is not None else None,
        enclosure=None if witness is None else witness.exact,
        attention=witness,
    )


def _place(worst: WorstVector) -> AttentionWitness:
    return AttentionWitness(
        problem=worst.problem.key,
        sizes=list(worst.problem.sizes),
        quantity=worst.quantity,
        index=list(worst.index),
        note=worst.remark,
    )


def confirm(worst: WorstVector) -> Decision | None:
    """The referee's word on a failure, None where there is nothing to compute: the error is not a number, the budget is
    0 by structure, or two answers were compared."""
    if worst.quantity not in REFEREED or worst.budget <= 0.0 or not math.isfinite(worst.error) or worst.index[-1] < 0:
        return None
    b, h, i, entry = worst.index
    return decide(worst.problem, REFEREED[worst.quantity], (b, h, i, entry), worst.returned, worst.budget)


def confirmed(worst: WorstVector, subject: str, name: str) -> AttentionWitness:
    """The full witness of a failure, confirmed by the referee where there is something to compute."""
    problem = worst.problem
    exact = None
    decision = confirm(worst)
    if decision is not None:
        exact = [repr(x) for x in decision.true.floats()]
        if not decision.exceeds:
            raise SuiteFault(
                f"The fast engine fails {subject} on {name} ({problem.key}, {worst.quantity} {list(worst.index)}), the "
                f"referee does not: {decision} Please report this as a fault of hardmask."
            )
    arrays = {}
    parts = (problem.q, problem.k, problem.v, problem.full_mask, problem.cotangent, *problem.tangents)
    if sum(a.size for a in parts) <= READABLE:
        arrays = shown(problem)
    return msgspec.structs.replace(
        _place(worst),
        returned=float(worst.returned).hex() if math.isfinite(worst.returned) else repr(float(worst.returned)),
        exact=exact,
        error=finite(worst.error),
        budget=finite(worst.budget),
        **arrays,
    )


def shown(problem: Problem) -> dict[str, Any]:
    """The arrays of a problem as the fields of a witness."""
    return {
        "scale": float(problem.scale).hex(),
        "mask": problem.full_mask.reshape(-1).tolist(),
        "q": _hex(problem.q),
        "k": _hex(problem.k),
        "v": _hex(problem.v),
        "cotangent": _hex(problem.cotangent),
        "tangents": [_hex(t) for t in problem.tangents],
    }


def _hex(array: Array) -> list[str]:
    with np.errstate(all="ignore"):
        return [float(x).hex() for x in array.astype(np.float64).reshape(-1).tolist()]
