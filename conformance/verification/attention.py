"""The problems of attention that a certificate names: the truth, the error, the budget and the verdict, computed again.

A problem that is small is in the certificate; a larger one, and that of a pass, is built again from the seed. Where a
finding compares two answers only one of them is recorded: then the budget is recomputed, and the difference is not.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import get_args

import numpy as np

from ...spec.attention.model import AttentionModel
from ...spec.attention.problem import Problem
from ...spec.attention.referee import decide
from ...spec.batch import Floats
from ...spec.oracle.referee import Decision
from ..attention.judgement import Quantity as Kinds
from ..attention.parts import EXTRA
from ..attention.verdicts import READABLE
from ..attention.view import REFEREED, Known
from ..document import Certificate, SubjectRecord
from ..promises import PROMISES
from .asked import Asked
from .claims import CLOSE, AttentionClaim, close, finite, key_of
from .enclosures import contains
from .ledger import Ledger
from .models import METHODS, attention_model_of, tiers_of
from .problems import WHOLE, Planned, alike, problem_of, shape_of

OF_KEYS = ("dk", "dv")
APPENDED = "of appended keys"
"""Ends the remark of a comparison whose index counts the appended keys alone."""

SEVERAL = "comparisons of several answers of attention: not all of them are recorded"
TURNS = "problems of a run of several rounds, which share their names"


def recompute_attention(
    certificate: Certificate, asked: Asked | None, claims: Iterable[AttentionClaim], ledger: Ledger, *, same: bool
) -> None:
    """Hold every claim about attention against the mathematics; ``same`` as for rows."""
    by_problem: dict[str, list[AttentionClaim]] = defaultdict(list)
    for claim in claims:
        by_problem[claim.witness.problem].append(claim)
    planned = Planned(asked, certificate.seed)
    groups = _groups(certificate)
    for name, mine in by_problem.items():
        problem = planned.of(name)
        known = None if problem is None else Known(problem)
        whole = planned.whole(name)
        for claim in mine:
            judge = _Judge(claim, known, None if whole is None else Known(whole), groups, ledger, same)
            judge.judge(planned.ambiguous)


def _groups(certificate: Certificate) -> dict[str, list[SubjectRecord]]:
    groups: dict[str, list[SubjectRecord]] = defaultdict(list)
    for s in certificate.subjects:
        if s.group:
            groups[s.group].append(s)
    return groups


class _Judge:
    """One claim, with its problem where that can be built from the seed."""

    def __init__(
        self,
        claim: AttentionClaim,
        known: Known | None,
        whole: Known | None,
        groups: Mapping[str, list[SubjectRecord]],
        ledger: Ledger,
        same: bool,
    ) -> None:
        self.claim, self.finding, self.witness = claim, claim.finding, claim.witness
        self.known, self.whole, self.groups = known, whole, groups
        self.ledger, self.same = ledger, same

    def judge(self, ambiguous: bool) -> None:
        """Note all that does not hold."""
        before = self.ledger.notes
        shown = self._shown()
        if self.ledger.notes > before:
            return
        if self.claim.part == "smallest":
            if shown is None:
                self.ledger.open["smallest problems of attention that are too large to be written"] += 1
                return
            known = Known(shown)
        elif shown is not None:
            if self.known is not None and self.witness.quantity != "bits" and not alike(shown, self.known.problem):
                self._otherwise()
            known = Known(shown)
        elif self.known is None:
            if ambiguous:
                self.ledger.open[TURNS] += 1
            else:
                self._wrong(f"The run has no problem '{self.witness.problem}'.")
            return
        else:
            known = self.known
            if list(known.problem.sizes) != self.witness.sizes:
                self._wrong(f"The problem has the sizes {list(known.problem.sizes)}, and not {self.witness.sizes}.")
                return
        self._place(known)
        if self.ledger.notes == before:
            self._numbers(known)
        if self.ledger.notes == before:
            kind = "problems in the certificate" if shown is not None else "problems built again from the seed"
            self.ledger.recomputed[f"{kind} (attention)"] += 1

    def _wrong(self, sentence: str) -> None:
        self.ledger.wrong(self.claim.where, sentence)

    def _otherwise(self) -> None:
        if self.same:
            self._wrong(f"The problem is not '{self.witness.problem}', as the seed gives it.")
        else:
            self.ledger.open[
                "problems that the seed gives otherwise here: other releases of NumPy, or another machine"
            ] += 1

    def _shown(self) -> Problem | None:
        """The problem that the certificate holds in full; None where it holds its name only, or is malformed."""
        w = self.witness
        if w.q is None:
            return None
        if len(w.sizes) != 7 or min(w.sizes[1:3]) < 1 or w.sizes[1] % w.sizes[2]:
            self._wrong("The sizes of the problem are not those of an attention.")
            return None
        lists = (w.q, w.k, w.v, w.cotangent, *(w.tangents or []))
        if len(w.mask or []) + sum(len(x or []) for x in lists) > READABLE:
            self._wrong(f"The problem has more numbers than the {READABLE} that a certificate holds in full.")
            return None
        try:
            return problem_of(w, self.finding.dtype, self.finding.family)
        except (ValueError, OverflowError, KeyError, TypeError):
            self._wrong("The arrays of the problem do not fit its sizes, or hold what is no number of the dtype.")
            return None

    def _place(self, known: Known) -> None:
        """The index lies in the quantity."""
        w = self.witness
        if w.quantity not in get_args(Kinds):
            self._wrong(f"There is no quantity '{w.quantity}'.")
            return
        quantity = w.note.split(" ")[0] if w.quantity == "difference" else w.quantity
        shape = shape_of(known.problem, quantity)
        if shape is None:
            return
        at, last = w.index[:-1], w.index[-1] if w.index else 0
        inside = len(at) == len(shape) - 1 and all(0 <= i < n for i, n in zip(at, shape, strict=False))
        if not inside or not -1 <= last < max(shape[-1], 1):
            self._wrong(f"There is no entry {w.index} in the quantity '{w.quantity}'.")

    def _numbers(self, known: Known) -> None:
        """Budget, error and verdict."""
        f, w = self.finding, self.witness
        failing = f.verdict == "fail"
        error, budget = (w.error, w.budget) if w.returned is not None else (f.error, f.budget)
        if self.claim.part == "witness" and w.returned is not None and (error, budget) != (f.error, f.budget):
            self._wrong("The witness has another error or budget than the finding.")
            return
        if not failing and finite(error) and finite(budget) and (error or 0.0) > (budget or 0.0) * (1.0 + CLOSE):
            self._wrong(f"The error {error:.6g} is beyond the budget {budget:.6g}, and passed.")
        if key_of(f.declaration) in PROMISES or w.quantity in ("bits", "valid"):
            if failing:
                self.ledger.open["promises and flags of attention: what was returned is not recorded"] += 1
            return
        largest = self._largest(known)
        if largest is None:
            self._wrong(f"There is no tier '{f.tier}'.")
            return
        if budget is not None and budget > largest * (1.0 + CLOSE):
            self._wrong(f"The budget is {largest:.6g} at most, and not {budget:.6g}.")
        if failing and w.quantity in REFEREED and w.returned is not None:
            self._failure(known, error, budget, w.returned)
        elif failing:
            self.ledger.open[SEVERAL] += 1

    def _failure(self, known: Known, error: float | None, budget: float | None, returned: str) -> None:
        """A failure whose true value can be computed."""
        w = self.witness
        value = float.fromhex(returned)
        if budget == 0.0 or w.index[-1] < 0:
            self._exactly(known, value)
            return
        model = attention_model_of(self.finding.tier, known.problem.dtype)
        assert model is not None
        mine = float(_budget(known, model, w.quantity)[tuple(w.index)])
        if budget is None or not close(budget, mine):
            self._wrong(f"The budget under '{self.finding.tier}' is {mine:.6g}, and not {budget}.")
            return
        if not math.isfinite(value):
            if finite(error):
                self._wrong(f"The error is not a number, and not {error}.")
            return
        b, h, i, entry = w.index
        decision = decide(known.problem, REFEREED[w.quantity], (b, h, i, entry), value, budget)  # type: ignore[index]
        self._decided(decision, error, budget)

    def _decided(self, decision: Decision, error: float | None, budget: float) -> None:
        size = _rough(decision.error.hi)
        if not contains(self.witness.exact or [], decision.true):
            self._wrong(f"The true value is {decision.true}; it is not within {self.witness.exact}.")
        if error is None or not close(error, size, budget):
            self._wrong(f"The error is {size:.6g}, and not {error}.")
        if not decision.exceeds:
            self._wrong(f"The error {size:.6g} is within the budget {budget:.6g}: this is no failure.")

    def _exactly(self, known: Known, value: float) -> None:
        """A vector that has to be exactly zero, or what the contract says of a query that sees nothing."""
        p, w = known.problem, self.witness
        b, h, i = w.index[:3]
        if w.note.endswith(APPENDED):
            i += p.sizes[4] - EXTRA
        silent = p.unseen if w.quantity in OF_KEYS else p.empty
        if i >= silent.shape[2]:
            self._wrong(f"There is no entry {w.index} in the quantity '{w.quantity}'.")
            return
        blocked = w.quantity == "weights" and w.index[-1] >= 0 and not p.full_mask[b, h, i, w.index[-1]]
        if not (silent[b, h, i] or blocked or w.quantity == "weights"):
            self._wrong("The budget is 0, and the vector is not one that has to be exact.")
            return
        nan = self.claim.subject.contract == "nan"
        if value == 0.0 or (nan and math.isnan(value)):
            # One entry of the vector is recorded, and it is not the one at fault.
            self.ledger.open[
                "vectors of attention that are at fault as a whole: their first entry alone is recorded"
            ] += 1

    def _largest(self, known: Known) -> float | None:
        """The largest budget that the claim may name; None for a tier that there is not."""
        f, w = self.finding, self.witness
        model = attention_model_of(f.tier, known.problem.dtype)
        if model is None:
            return None
        if w.quantity in REFEREED:
            if w.index[-1] < 0:
                return 0.0
            return float(_budget(known, model, w.quantity)[tuple(w.index)])
        if w.quantity == "pairing":
            return self._pairing(known)
        return self._difference(known, model)

    def _pairing(self, known: Known) -> float:
        """That of ``<JVP, g> - <dQ, gQ> - <dK, gK> - <dV, gV>``."""
        p = known.problem
        parts = [("tangent", "jvp", p.wide("cotangent"))]
        parts += [(q, "vjp", t.astype(np.float64)) for q, t in zip(("dq", "dk", "dv"), p.tangents, strict=True)]
        total = 0.0
        for quantity, method, factor in parts:
            words = next(iter(tiers_of(self.claim.subject, p.dtype, method)), self.finding.tier)
            model = attention_model_of(words, p.dtype)
            if model is not None:
                total += float((np.abs(factor) * _budget(known, model, quantity)).sum())
        return total * (1.0 + 1e-8)

    def _difference(self, known: Known, model: AttentionModel) -> float:
        """That of two paths of a group, or of a problem and a part of it; infinite where it cannot be told."""
        w, subject, dtype = self.witness, self.claim.subject, known.problem.dtype
        quantity = w.note.split(" ")[0]
        if quantity not in REFEREED or len(w.index) != 4 or w.index[-1] < 0:
            return math.inf
        b, h, i, entry = w.index
        part = _budget(known, model, quantity)[b, h, i, entry]
        if self.whole is not None:
            return float(part + self._of_whole(model, quantity, known))
        others = [s for s in self.groups.get(subject.group, []) if s.id != subject.id]
        words = {t for s in others for m in METHODS for t in tiers_of(s, dtype, m)}
        models = [m for m in (attention_model_of(t, dtype) for t in words) if m is not None]
        return float(part + max((_budget(known, m, quantity)[b, h, i, entry] for m in models), default=math.inf))

    def _of_whole(self, model: AttentionModel, quantity: str, known: Known) -> float:
        assert self.whole is not None
        b, h, i, entry = self.witness.index
        budget = _budget(self.whole, model, quantity)
        found = WHOLE.match(self.witness.problem)
        if found is not None and found["entry"] is not None:
            b, h = int(found["entry"]), int(found["head"])
            if quantity in OF_KEYS:
                heads, groups = self.whole.problem.sizes[1:3]
                h = h // (heads // groups)
        return float(budget[b, h, i, entry]) if i < budget.shape[2] else math.inf


def _budget(known: Known, model: AttentionModel, quantity: str) -> Floats:
    found: Floats = getattr(known.budget(model), REFEREED[quantity])  # type: ignore[index]
    return found


def _rough(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
