"""Rows of a finding once more: the smallest row, the witness' own, and the batch that the seed gives."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from ...adapters.subject import Subject
from ...spec.batch import Floats
from ...spec.contracts import contract
from ..calls import Fault
from ..cases import Case
from ..checks import check_of, relations
from ..checks.adjoint import JACOBIAN
from ..finding import IN_COMPANY, Finding, Witness
from ..judgement import Worst
from ..minimise.report import copy_of
from ..minimise.rows import Rows
from ..minimise.trial import CheckTrial, RaiseTrial, kind
from ..runner import Policy, judge_subject, prepare, wanted
from ..tally import Tallies, count
from ..text import printable
from ..truth import SIDES, Truth
from ..verdicts import finding_of
from ..verification.asked import Asked
from ..verification.claims import numbers
from ..verification.rebuilt import planned
from ..view import View


def again_rows(
    subject: Subject, finding: Finding, key: str, policy: Policy, seed: int, asked: Asked
) -> tuple[Finding, str]:
    """The finding of today, and what it rests on in words. Raises ValueError where its rows cannot be had."""
    again = _Again(subject, finding, key, policy, seed, asked)
    last: tuple[Finding, str] | None = None
    for last in again.attempts():
        if last[0].verdict in ("fail", "error"):
            return last
    if last is None:
        raise ValueError(
            f"The rows of finding {finding.id} ({printable(finding.family)}) cannot be had again: they are in no batch "
            "that this version plans for the certificate's request, and it does not hold the row itself."
        )
    return last


class _Again:
    def __init__(self, subject: Subject, f: Finding, key: str, policy: Policy, seed: int, asked: Asked) -> None:
        self.subject, self.f, self.key, self.policy = subject, f, key, policy
        names = [w.batch for w in (f.minimal, f.witness) if w is not None]
        self.cases = planned(asked, seed, names)
        self.same_kind = [c for c in self.cases.values() if c.dtype == f.dtype and f"batch {c.kind}" == f.family]

    def attempts(self) -> Iterator[tuple[Finding, str]]:
        """Ever larger parts of the case, each judged."""
        f = self.f
        if f.verdict == "error":
            yield from self._raising()
            return
        for w, what in ((f.minimal, "the smallest row"), (f.witness, "the row")):
            if w is None or w.scores is None or IN_COMPANY in w.note or w.quantity == "valid":
                continue
            found = self._alone(w)
            if found is not None:
                now = msgspec.structs.replace(
                    found, witness=None if found.witness is None else _placed(found.witness, w)
                )
                if w is f.minimal:
                    now = msgspec.structs.replace(now, minimal=now.witness, witness=None)
                yield now, f"{what} in a call of its own"
        assert f.witness is not None
        case = self.cases.get(f.witness.batch)
        if case is not None:
            yield self._batch(case), f"batch {case.key}"

    def _alone(self, w: Witness) -> Finding | None:
        """A row in a call of its own, beside the copies that its check needs; None where these cannot be made."""
        if len(w.scores or ()) != w.keys or len(w.mask or ()) != w.keys:
            raise ValueError(f"The witness of finding {self.f.id} has not as many scores as keys.")
        if contract(self.policy.contract_of(self.subject)).kind == "reject" and not any(w.mask or ()):
            return None  # what has to raise is judged batch by batch
        trial = CheckTrial(
            self.subject,
            contract(self.policy.contract_of(self.subject)),
            self.policy.required,
            self.f.dtype,
            self.key,
            self.f.family,
            worst_of(w, self.f),
            self.f.diagnosis,
            1,
        )
        order = np.arange(w.keys)
        if self.key == relations.NAMES.get("position"):
            return None
        if self.key in (relations.NAMES["shift"], relations.NAMES["permutation"]):
            case = self.cases.get(w.batch)
            if case is None:
                return None
            whole = case.build()
            if w.row >= whole.shape[0]:
                raise ValueError(f"Batch '{printable(w.batch)}' has no row {w.row}.")
            order, trial.shift = copy_of(whole, w.row)
            if len(order) != w.keys:
                order = np.arange(w.keys)[::-1].copy()  # a shorter row: any other order shows what depends on it
        none = np.zeros(w.keys)
        g = none if w.cotangent is None or w.note == JACOBIAN else numbers(w.cotangent)
        u = none if w.tangent is None or w.note == JACOBIAN else numbers(w.tangent)
        row = Rows(numbers(w.scores or [])[None], np.array([w.mask], bool), g[None], u[None], order[None])
        batch, _ = trial.batch_of(row)
        view = View(self.subject, trial.contract, Truth(batch), self.policy.required)
        tallies: Tallies = {}
        for outcome in check_of(self.key)(view):
            if self.key in outcome.declarations:
                count(outcome, batch, tallies)
        tally = tallies.get((self.key, self.f.family))
        faults = [a.sentence for a in self._answers(view) if isinstance(a, Fault)]
        if tally is None:
            if not faults:
                return None
            return msgspec.structs.replace(
                self.f, verdict="error", diagnosis=faults[0], witness=None, minimal=None, error=None, budget=None
            )
        tally.errors += faults[:1]
        return finding_of(self.subject.id, self.f.declaration, self.f.dtype, self.f.family, tally)

    def _answers(self, view: View) -> Iterator[object]:
        quantity = self.f.witness.quantity if self.f.witness is not None else ""
        if quantity in ("", "weights", "row sum", "valid"):
            yield view.forward
        elif quantity in ("vjp", "jvp") and getattr(self.subject, quantity) is not None:
            yield from (view.derivative(quantity, side) for side in SIDES)  # type: ignore[arg-type]

    def _batch(self, case: Case) -> Finding:
        """The whole batch, judged as in a run."""
        mine = wanted(case, [self.subject])
        if not mine:
            raise ValueError(f"'{self.subject.id}' does not take batch '{case.key}' any more.")
        policy = Policy(self.policy.contract, self.policy.required, measure=False)
        tallies = judge_subject(case, mine[0], policy, prepare(case, mine), {})
        tally = tallies.get((self.key, self.f.family))
        if tally is None:
            errors = [e for (name, _), t in tallies.items() if name == self.key for e in t.errors]
            verdict, diagnosis = ("error", errors[0]) if errors else ("hypothesis-unmet", "no row meets its hypotheses")
            return Finding(
                subject=self.subject.id,
                declaration=self.f.declaration,
                dtype=self.f.dtype,
                family=self.f.family,
                verdict=verdict,  # type: ignore[arg-type]
                diagnosis=diagnosis,
            )
        return finding_of(self.subject.id, self.f.declaration, self.f.dtype, self.f.family, tally)

    def _raising(self) -> Iterator[tuple[Finding, str]]:
        """A call that raised, or gave what cannot be accepted: the smallest row, then every batch of its kind."""
        f = self.f
        method = f.diagnosis.removeprefix(f"{f.subject}.").partition(" ")[0]
        w = f.minimal
        if w is not None and w.scores is not None and method in self.subject.methods:
            fault = Fault(f.diagnosis, "it raised " in f.diagnosis)
            trial = RaiseTrial(self.subject, method, f.dtype, fault, 1)
            g, u = (np.zeros(w.keys) if v is None else numbers(v) for v in (w.cotangent, w.tangent))
            mask = np.array([w.mask], bool)
            row = Rows(numbers(w.scores)[None], mask, g[None], u[None], np.arange(w.keys)[None])
            found = trial.fault_of(row)
            if found is None:
                yield msgspec.structs.replace(f, verdict="pass", diagnosis=""), "the smallest row in a call of its own"
            else:
                diagnosis = f.diagnosis if kind(found) == kind(fault) else found.sentence
                now = msgspec.structs.replace(f, diagnosis=diagnosis)
                yield now, "the smallest row in a call of its own"
        batches = self.same_kind or [c for c in self.cases.values() if c.dtype == f.dtype and str(c.layout) == f.family]
        for case in sorted(batches, key=lambda c: c.keys):
            if wanted(case, [self.subject]):
                now = self._batch(case)
                if now.verdict == "hypothesis-unmet":
                    now = msgspec.structs.replace(now, verdict="pass")
                yield now, f"batch {case.key}"


def _placed(new: Witness, old: Witness) -> Witness:
    """The witness of a row that was judged alone, under the name of the row that it is."""
    return msgspec.structs.replace(new, batch=old.batch, row=old.row)


def worst_of(w: Witness, f: Finding) -> Worst:
    """What the shrinking knows of a row, from its witness."""
    none: Floats = np.zeros(w.keys)
    both = w.quantity == "inner product"
    side = None if w.cotangent is None and w.tangent is None else SIDES[both or w.cotangent is None]
    return Worst(
        rank=(),
        ratio=0.0,
        error=0.0,
        budget=0.0,
        batch=w.batch,
        row=w.row,
        index=-1 if w.index is None else w.index,
        quantity=w.quantity,  # type: ignore[arg-type]
        side=side,
        scores=numbers(w.scores or []),
        mask=np.array(w.mask or (), bool),
        cotangent=none if w.cotangent is None else numbers(w.cotangent),
        tangent=none if w.tangent is None else numbers(w.tangent),
        returned=none,
        second=None,
        remark=w.note,
        tier=f.tier,
    )
