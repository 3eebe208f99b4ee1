"""One failing problem of each subject and kind of fault, shrunk to the smallest that still fails."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...adapters.attention import Attention
from ...spec.attention.problem import Problem
from ...spec.contracts import contract
from ..finding import AttentionWitness, Finding
from ..promises import declared
from ..runner import Policy
from .calls import limit_of, takes
from .checks import CHECKS, SERVED_BY
from .judgement import AttentionTallies, AttentionTally, WorstVector, count
from .runner import AttentionResults, count_faults
from .smallest import smallest
from .verdicts import confirmed
from .view import AttentionView, Known

PER_SUBJECT = 4
"""Kinds of fault of one subject that are shrunk, at most."""


def attention_minimised(
    found: Sequence[Finding], subjects: Sequence[Attention], results: AttentionResults, policy: Policy
) -> list[Finding]:
    """The findings, some of the failed ones with the smallest problem that fails in the same declaration."""
    by_id = {s.id: s for s in subjects}
    keys = {declared(key).name: key for key in SERVED_BY}
    done: dict[str, list[str]] = {}
    out = []
    for f in found:
        subject = by_id.get(f.subject)
        mine = done.setdefault(f.subject, [])
        if subject is not None and f.verdict == "fail" and len(mine) < PER_SUBJECT and f.diagnosis not in mine:
            worst = _worst(results, f, keys[f.declaration])
            if worst is not None:
                mine.append(f.diagnosis)
                witness = _shrunk(subject, keys[f.declaration], f.declaration, worst, policy)
                if witness is not None:
                    f = msgspec.structs.replace(f, smallest=witness)
        out.append(f)
    return out


def _worst(results: AttentionResults, f: Finding, key: str) -> WorstVector | None:
    tally = results.get((f.subject, f.dtype), {}).get((key, f.family))
    if tally is None:
        return None
    return tally.witnesses.get(f.diagnosis, tally.worst)


def judged(subject: Attention, key: str, problem: Problem, policy: Policy) -> AttentionTally | None:
    """What the checks of one declaration say of a problem; None where the subject does not take it, or nothing is said.

    Relations to other problems and other paths are not asked.
    """
    if limit_of(subject, problem) or not takes(subject, problem):
        return None
    view = AttentionView(subject, contract(policy.contract_of(subject)), Known(problem), policy.required)
    tallies: AttentionTallies = {}
    count((o for check in CHECKS for o in check(view) if key in o.declarations), problem, tallies)
    count_faults(view, tallies)
    return tallies.get((key, problem.family))


def _shrunk(subject: Attention, key: str, name: str, worst: WorstVector, policy: Policy) -> AttentionWitness | None:
    def failing(problem: Problem) -> WorstVector | None:
        tally = judged(subject, key, problem, policy)
        if tally is None or not tally.failed:
            return None
        return next(iter(tally.witnesses.values()), tally.worst)

    if failing(worst.problem) is None:
        return None  # it fails beside another problem, or another path, only
    least = smallest(worst.problem, lambda p: failing(p) is not None)
    found = failing(least)
    return None if found is None else confirmed(found, subject.id, name)
