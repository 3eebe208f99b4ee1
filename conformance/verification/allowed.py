"""How far an answer may be from what it is compared with: the budgets of a batch under any tier, by declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from ...spec.batch import Batch, Floats
from ...spec.formats import FORMATS
from ...spec.rounding import DerivativeBudget, Mode, RoundingModel, inner_budget
from ..checks import adjoint, derivative, empty_row, facts, forward, relations
from ..checks.forward import CAUSAL, RANGE, SUM, ZEROS
from ..document import SubjectRecord
from ..truth import SIDES, Side, Truth
from .claims import RowClaim
from .models import METHODS, model_of, tiers_of

DERIVATIVES = ("vjp", "jvp")
SIDE: dict[str, Side] = {"vjp": "cotangents", "jvp": "tangents"}
EXACT = frozenset((*ZEROS, *CAUSAL, *derivative.BLOCKED, "empty_row"))
"""Declarations under which nothing but the exact value is allowed: zeros."""

SAME_ROW = frozenset((relations.NAMES["permutation"], relations.NAMES["position"], relations.TRUNCATION))
SAME_ROW |= {relations.NON_INTERFERENCE}
"""Declarations that compare two answers to one row, or to its permuted copy, whose budgets are the same."""

PAIRS: dict[str, tuple[Mode, Mode]] = {
    "VJP with itself": ("vjp", "vjp"),
    "JVP with itself": ("jvp", "jvp"),
    "JVP with VJP": ("jvp", "vjp"),
}
"""Remark -> the mode that maps the tangents, and the one that maps the cotangents."""


COMPARED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(forward.NAMES, ("weights",)),
    **dict.fromkeys(SUM, ("row sum",)),
    **dict.fromkeys((*relations.NAMES.values(), relations.TRUNCATION, relations.NON_INTERFERENCE), ("difference",)),
    **dict.fromkeys(empty_row.EMPTY, ("weights", *DERIVATIVES, "valid")),
    **dict.fromkeys(derivative.VJP, ("vjp",)),
    **dict.fromkeys(derivative.JVP, ("jvp",)),
    **dict.fromkeys(derivative.BLOCKED, DERIVATIVES),
    **dict.fromkeys(adjoint.SELF, ("inner product",)),
    **dict.fromkeys(adjoint.ADJOINT, ("inner product", "difference")),
    facts.VISIBLE: ("weights",),
    facts.ISOLATION: DERIVATIVES,
}
"""Declaration -> the quantities that its checks compare."""


class Budgets:
    """The budgets of the rows of a batch, each computed when it is asked for."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch
        self.truth = Truth(batch)

    def model(self, words: str) -> RoundingModel | None:
        """The model of a tier, in the dtype of the batch."""
        return model_of(words, self.batch.dtype)

    def derivative(self, words: str, mode: str, place: int, side: Side | None = None) -> Floats | None:
        """The budgets of a derivative of one row; None for a tier that there is not."""
        rounding = self.model(words)
        if rounding is None:
            return None
        found = self._derivatives(rounding, side or SIDE[mode])
        return cast("Floats", (found.vjp if mode == "vjp" else found.jvp)[place])

    def of(self, claim: RowClaim, key: str, place: int, given: bool, returned: Floats) -> list[float] | None:
        """The budgets that a claim may name; None where they depend on what is not in the certificate."""
        w = claim.witness
        rounding = self.model(claim.tier)
        if rounding is None:
            return []
        index = w.index if w.index is not None else 0
        weights = self.truth.budget(rounding)
        if w.quantity == "row sum":
            return [float(weights.sum_error[place])]
        if w.quantity == "inner product":
            return self._inner(claim, place)
        if w.quantity == "difference":
            return self._difference(claim, key, place, index)
        if w.quantity in DERIVATIVES:
            found = self._derivatives(rounding, SIDE[w.quantity])
            chosen = found.given if given else found.vjp if w.quantity == "vjp" else found.jvp
            return [float(chosen[place, index])]
        if key in RANGE:
            return [float(weights.error[place, index]) if returned[index] > 1.0 else 0.0]
        return [float(weights.error[place, index])]

    def at_most(self, subject: SubjectRecord, key: str, place: int, index: int) -> float | None:
        """The largest budget that a row may have under a declaration, of all that its checks compare.

        ``index``: the key, or -1 for the row as a whole. Of a row beside its shifted copy, the share of this row alone.
        None where nothing is compared with a budget.
        """
        if key in EXACT:
            return 0.0
        dtype = self.batch.dtype
        words = {method: tiers_of(subject, dtype, method) for method in METHODS}
        models = {m: [r for w in found for r in (self.model(w),) if r is not None] for m, found in words.items()}
        if key in SUM:
            return max((float(self.truth.budget(r).sum_error[place]) for r in models["forward"]), default=None)
        if key in (*adjoint.SELF, *adjoint.ADJOINT):
            return self._pairs_at_most(models, place, key in adjoint.ADJOINT)
        if index < 0:
            return None
        found = []
        if key not in (*derivative.VJP, *derivative.JVP):
            found += [float(self.truth.budget(r).error[place, index]) for r in models["forward"]]
        both = key in SAME_ROW
        modes: tuple[str, ...] = DERIVATIVES if key == relations.NAMES["position"] else ()
        modes = ("vjp",) if key in derivative.VJP else ("jvp",) if key in derivative.JVP else modes
        for mode in modes:
            for r in models[mode]:
                budgets = self._derivatives(r, SIDE[mode])
                found.append(float((budgets.vjp if mode == "vjp" else budgets.jvp)[place, index]))
                found.append(float(budgets.given[place, index]) if mode == "vjp" else 0.0)
        return (2.0 if both else 1.0) * max(found) if found else None

    def _derivatives(self, rounding: RoundingModel, side: Side) -> DerivativeBudget:
        return self.truth.derivative_budget(rounding, side)

    def _inner(self, claim: RowClaim, place: int) -> list[float] | None:
        modes = PAIRS.get(claim.witness.note.split("; ")[0])
        if modes is None:
            return []
        words = [claim.tier, claim.tier]
        if modes[0] != modes[1] and claim.part != "measured":
            words[1] = next(iter(tiers_of(claim.subject, self.batch.dtype, modes[1])), claim.tier)
        models = [self.model(w) for w in words]
        if models[0] is None or models[1] is None:
            return []
        return self._paired((models[0], models[1]), modes, place)

    def _paired(self, models: Sequence[RoundingModel], modes: tuple[Mode, Mode], place: int) -> list[float]:
        """With the budgets against the truth, and with those against the weights that were consumed."""
        u, g = (self.truth.allowed(side)[place : place + 1] for side in ("tangents", "cotangents"))
        on_tangents = self._derivatives(models[0], "tangents")
        on_cotangents = self._derivatives(models[1], "cotangents")
        at = slice(place, place + 1)
        full = [
            b.vjp[at] if mode == "vjp" else b.jvp[at]
            for b, mode in zip((on_tangents, on_cotangents), modes, strict=True)
        ]
        found = [inner_budget(g, full[0], u, full[1])]
        if modes == ("vjp", "vjp"):
            found.append(inner_budget(g, on_tangents.given[at], u, on_cotangents.given[at]))
        return [float(b[0]) for b in found]

    def _pairs_at_most(self, models: dict[str, list[RoundingModel]], place: int, both: bool) -> float | None:
        found = []
        pairs = [PAIRS["JVP with VJP"]] if both else [PAIRS["VJP with itself"], PAIRS["JVP with itself"]]
        for modes in pairs:
            for left in models[modes[0]]:
                for right in models[modes[1]]:
                    found += self._paired((left, right), modes, place)
        if both:
            # Entry by entry of the Jacobian, by unit vectors: at most what two whole derivatives may differ by.
            found += [
                2.0 * float(max(b.vjp[place].max(initial=0.0), b.jvp[place].max(initial=0.0)))
                for m in DERIVATIVES
                for r in models[m]
                for side in SIDES
                for b in (self._derivatives(r, side),)
            ]
        return max(found, default=None)

    def _difference(self, claim: RowClaim, key: str, place: int, index: int) -> list[float] | None:
        w = claim.witness
        rounding = self.model(claim.tier)
        assert rounding is not None
        if key in SAME_ROW:
            if w.cotangent is not None:
                return [2.0 * float(self._derivatives(rounding, "cotangents").vjp[place, index])]
            if w.tangent is not None:
                return [2.0 * float(self._derivatives(rounding, "tangents").jvp[place, index])]
            return [2.0 * float(self.truth.budget(rounding).error[place, index])]
        if adjoint.JACOBIAN in w.note.split("; "):
            return self._jacobian(claim, place, index)
        return None

    def _jacobian(self, claim: RowClaim, place: int, index: int) -> list[float]:
        """Entry ``(i, j)`` by reverse mode, whose unit cotangent is the row's own, and by forward mode."""
        dtype = self.batch.dtype
        reverse = self.derivative(claim.tier, "vjp", place)
        words = claim.tier
        if claim.part != "measured":
            words = next(iter(tiers_of(claim.subject, dtype, "jvp")), words)
        cotangent = self.batch.cotangents[place].astype(np.float64)
        if reverse is None:
            return []
        if not cotangent.any():
            return [float(reverse[index])]  # a unit vector at a blocked key, where forward mode has to give 0
        at = slice(place, place + 1)
        unit = np.zeros((1, self.batch.shape[1]), FORMATS[dtype].dtype)
        unit[0, index] = 1
        kept = {name: getattr(self.batch, name)[at] for name in ("scores", "mask", "family")}
        other = Budgets(replace(self.batch, **kept, cotangents=unit, tangents=unit))
        forward = other.derivative(words, "jvp", 0)
        i = int(np.abs(cotangent).argmax())
        return [] if forward is None else [float(reverse[index]) + float(forward[i])]
