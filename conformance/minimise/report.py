"""One minimal row for each subject and declaration that failed, beside the row that was met first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

from ...adapters.errors import DIDS
from ...adapters.subject import Subject
from ...spec.batch import Batch
from ...spec.contracts import contract
from ..calls import Fault
from ..cases import Case
from ..checks import SERVED_BY, relations
from ..checks.adjoint import JACOBIAN
from ..finding import IN_COMPANY, Finding, Witness
from ..judgement import Codes, Worst
from ..promises import declared
from ..runner import Policy, Results
from ..terminal.witness import grouped
from ..verdicts import confirmed, diagnosis_of
from .rows import Rows
from .simplify import simplest
from .trial import CheckTrial, RaiseTrial, kind

CALLS = 40
"""Batches that are judged for one minimal row, at most."""

RAISING = 200
"""Calls for one minimal row of a call that raises, where it takes several to tell which rows are to blame."""


def minimised(
    findings: Sequence[Finding], subjects: Sequence[Subject], results: Results, policy: Policy, cases: Sequence[Case]
) -> list[Finding]:
    """The findings, with a minimal row in one finding of each subject and declaration that failed or raised.

    A minimal row fails the same check with the same diagnosis in a call of its own, and the referee has confirmed it.
    A row that fails only beside others is kept, and its note says so. The number of calls is bounded, and nothing that
    a subject does during them loses a finding. Raises SuiteFault when the referee contradicts a failure.
    """
    shrinker = _Shrinker({s.id: s for s in subjects}, results, policy, {c.key: c for c in cases})
    return [shrinker.chosen.get(id(f), f) for f in shrinker.over(findings)]


@dataclass(eq=False)
class _Shrinker:
    subjects: dict[str, Subject]
    results: Results
    policy: Policy
    cases: dict[str, Case]
    chosen: dict[int, Finding] = field(default_factory=dict)
    known: dict[tuple[str, str], list[Rows]] = field(default_factory=dict)
    raising: dict[tuple[str, ...], Witness | None] = field(default_factory=dict)

    def over(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Shrink the row of each finding that a report would show, then one of every other declaration."""
        taken: set[tuple[str, str]] = set()
        groups = grouped(findings)
        leading = []
        for group in groups:
            first = next((f for f in group if (f.subject, f.declaration) not in taken), None)
            if first is not None:
                taken.add((first.subject, first.declaration))
                leading.append(first)
        for f in (f for group in groups for f in group):
            if (f.subject, f.declaration) not in taken:
                taken.add((f.subject, f.declaration))
                leading.append(f)
        for f in leading:
            self.chosen[id(f)] = self._shrunk(f)
        return findings

    def _shrunk(self, f: Finding) -> Finding:
        subject = self.subjects[f.subject]
        key = next(k for k in SERVED_BY if declared(k).name == f.declaration)
        tally = self.results[f.subject, f.dtype][key, f.family]
        if "compile" in subject.path:
            return f  # every new length would be compiled, for seconds
        if tally.errors:
            # One call that raises is an error of every declaration that it would have served.
            cause = subject.id, f.dtype, f.family, tally.errors[0]
            if cause not in self.raising:
                self.raising[cause] = raising(subject, f, tally.errors[0], self.cases.values())
            minimal = self.raising[cause]
            return f if minimal is None else msgspec.structs.replace(f, minimal=minimal)
        diagnosis = diagnosis_of(tally)
        worst = tally.witnesses.get(diagnosis, tally.worst)
        if worst is None or not len(worst.mask) or worst.quantity == "valid" or key == relations.NAMES["position"]:
            return f
        return self._failing(subject, f, key, worst, diagnosis)

    def _failing(self, subject: Subject, f: Finding, key: str, worst: Worst, diagnosis: str) -> Finding:
        trial = CheckTrial(
            subject,
            contract(self.policy.contract_of(subject)),
            self.policy.required,
            f.dtype,
            key,
            f.family,
            worst,
            diagnosis,
            CALLS,
        )
        row = self._row(key, worst, trial)
        if row is None or trial.alone(row) is None:
            return msgspec.structs.replace(f, witness=_noted(f.witness))
        known = self.known.setdefault((subject.id, f.dtype), [])
        for other in sorted(known, key=lambda r: r.shape[1]):
            if other.shape[1] < row.shape[1] and trial.failing(other)[0]:
                row = other
                break
        important = _important(worst) if row.shape[1] == len(worst.mask) else np.arange(row.shape[1])
        row = simplest(row, trial, important)
        trial.left = 1
        found = trial.alone(row)
        if found is None:
            return f
        known.append(row)
        enclosure, witness = confirmed(found, subject.id, f.declaration)
        witness = msgspec.structs.replace(
            witness,
            row=worst.row,
            error=found.error if np.isfinite(found.error) else None,
            budget=found.budget,
            enclosure=enclosure,
        )
        return msgspec.structs.replace(f, minimal=witness)

    def _row(self, key: str, worst: Worst, trial: CheckTrial) -> Rows | None:
        """The witness as a row, without the vectors that its check does not read; None if its copy cannot be made."""
        both = worst.quantity == "inner product"
        order = np.arange(len(worst.mask))
        if key in (relations.NAMES["shift"], relations.NAMES["permutation"]):
            case = self.cases.get(worst.batch)
            batch = None if case is None else case.build()
            if batch is None:
                return None
            order, trial.shift = copy_of(batch, worst.row)
        none = np.zeros_like(worst.scores)
        own = worst.remark != JACOBIAN  # where every unit vector is tried in turn
        g = worst.cotangent if own and (both or worst.side == "cotangents") else none
        u = worst.tangent if own and (both or worst.side == "tangents") else none
        return Rows(worst.scores[None], worst.mask[None], g[None], u[None], order[None])


def _noted(witness: Witness | None) -> Witness | None:
    if witness is None:
        return None
    return msgspec.structs.replace(witness, note="; ".join(filter(None, (witness.note, IN_COMPANY))))


def _important(worst: Worst) -> Codes:
    """Keys from the most to the least important: the offending one, then by allowed score, then the blocked ones."""
    with np.errstate(invalid="ignore"):
        rank = np.where(worst.mask & ~np.isnan(worst.scores), -worst.scores, np.inf)
    if worst.index >= 0:
        rank[worst.index] = -np.inf
    return np.argsort(rank, kind="stable")


def raising(subject: Subject, f: Finding, sentence: str, cases: Iterable[Case]) -> Witness | None:
    """The smallest row that a call raises on, or answers unusably; None if it takes several rows."""
    method = sentence.removeprefix(f"{subject.id}.").partition(" ")[0]
    if any(f" {did} on " in sentence for did in DIDS):
        return None  # every try would cost a process, or minutes; the sentence names the shape
    same_kind = [c for c in cases if c.dtype == f.dtype and f"batch {c.kind}" == f.family]
    if method not in subject.methods:
        return None
    for case in sorted(same_kind, key=lambda c: (c.keys == 0, c.keys)):
        batch = case.build()
        trial = RaiseTrial(subject, method, f.dtype, Fault(sentence, "it raised " in sentence), RAISING)
        rows = _all(batch)
        fault = trial.fault_of(rows)
        if fault is None or kind(fault) != kind(trial.fault):
            continue
        blamed = np.flatnonzero(trial.failing(rows))
        if not len(blamed):
            return None
        at = int(blamed[0])
        row = rows.take(slice(at, at + 1))
        row = simplest(row, trial, np.arange(row.shape[1])) if row.shape[1] else row
        vector = {"vjp": row.cotangents, "jvp": row.tangents}.get(method)
        shown = None if vector is None else [x.hex() for x in vector[0].tolist()]
        return Witness(
            batch=case.key,
            row=at,
            keys=row.shape[1],
            quantity=method,
            scores=[x.hex() for x in row.scores[0].tolist()],
            mask=row.mask[0].tolist(),
            cotangent=shown if method == "vjp" else None,
            tangent=shown if method == "jvp" else None,
        )
    return None


def copy_of(batch: Batch, row: int) -> tuple[Codes, float]:
    """Where each key of a row stands in its permuted copy, and by what its shifted copy is shifted."""
    keys = batch.shape[1]
    if "shift" in batch.relations:
        pairs = batch.relations["shift"]
        a, b = next(pair for pair in pairs.tolist() if row in pair)
        there = b if row == a else a
        return np.arange(keys), float(batch.scores64[there, 0] - batch.scores64[row, 0])
    assert batch.permutation is not None
    pairs = batch.relations["permutation"].tolist()
    place, (a, b) = next((k, pair) for k, pair in enumerate(pairs) if row in pair)
    order = batch.permutation[place]
    return (order if row == a else np.argsort(order)), 0.0


def _all(batch: Batch) -> Rows:
    cotangents, tangents = (v.astype(np.float64) for v in (batch.cotangents, batch.tangents))
    order = np.tile(np.arange(batch.shape[1]), (batch.shape[0], 1))
    return Rows(batch.scores64, batch.mask, cotangents, tangents, order)
