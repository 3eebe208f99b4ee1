"""Rows whose numbers are in the certificate: the truth, the error, the budget and the verdict, computed again.

The truth is the referee's, in arbitrary precision; sums and differences of what was returned are exact. The budgets are
those of the tier that the finding names.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...spec.batch import Batch, Bools, Floats
from ...spec.contracts import contract
from ...spec.oracle.interval import Interval
from ...spec.oracle.referee import enclose
from ..checks.derivative import GIVEN
from ..checks.forward import RANGE
from ..contracted import keep_derivative, keep_weights
from ..promises import PROMISES
from ..verdicts import TRUE_OF_ROWS
from .allowed import COMPARED, DERIVATIVES, Budgets
from .claims import RowClaim, by_name, close, finite, key_of
from .enclosures import agrees, contains
from .ledger import Ledger
from .parsed import ENTRIES, Row, batch_of, parsed

TOO_CLOSE = 1e-9
"""Relative distance of an error from its budget, below which another machine may decide otherwise."""


def recompute_rows(claims: Iterable[RowClaim], ledger: Ledger) -> None:
    """Hold every claim about a row that the certificate holds in full against the mathematics."""
    groups: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for claim in claims:
        row = parsed(claim, ledger)
        if row is not None:
            groups[claim.dtype, len(row.mask)].append(row)
    true = _Truths()
    for (dtype, _), rows in groups.items():
        batch = batch_of(dtype, rows)
        budgets = Budgets(batch)
        for place, row in enumerate(rows):
            _Judge(row, place, batch, budgets, true, ledger).judge()


class _Truths:
    """The referee's enclosures; findings share rows, and each row is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, ...], list[Interval]] = {}

    def of(self, scores: Floats, mask: Bools, vector: Floats | None) -> list[Interval]:
        """The weights, or the derivative along a vector, of a row of real numbers."""
        name = scores.tobytes(), mask.tobytes(), b"" if vector is None else vector.tobytes()
        if name not in self._known:
            line = None if vector is None else np.where(mask, vector, 0.0).tolist()
            self._known[name] = enclose(scores.tolist(), mask.tolist(), line)
        return self._known[name]


@dataclass(frozen=True, eq=False)
class _Judge:
    row: Row
    place: int
    batch: Batch
    budgets: Budgets
    truths: _Truths
    ledger: Ledger

    def judge(self) -> None:
        """Note all that does not hold of one claim."""
        claim, w = self.row.claim, self.row.claim.witness
        key = key_of(claim.declaration)
        before = self.ledger.notes
        if w.quantity not in COMPARED.get(key, ()):
            self._wrong(f"{claim.declaration} does not compare the quantity '{w.quantity}'.")
        elif key in PROMISES:
            self._promise(key)
        elif w.quantity == "valid":
            self._flag()
        elif not self.batch.real[self.place]:
            self._wrong("An allowed number of the row is not real: no theorem speaks of it.")
        elif not self._meets_hypotheses():
            self._wrong(f"The row does not meet the hypotheses of {claim.declaration}.")
        else:
            true = self.truths.of(self.row.scores, self.row.mask, self.row.vector)
            self._enclosures(true)
            if self.batch.empty[self.place] and w.quantity in ENTRIES:
                self._empty(key)
            else:
                self._numbers(key, true)
        if self.ledger.notes == before:
            self.ledger.recomputed[_WHAT[claim.part]] += 1

    def _wrong(self, sentence: str) -> None:
        self.ledger.wrong(self.row.claim.where, sentence)

    def _meets_hypotheses(self) -> bool:
        declaration = by_name().get(self.row.claim.declaration)
        return declaration is None or bool(declaration.holds(self.row.mask[None], self.row.scores[None])[0])

    def _enclosures(self, true: list[Interval]) -> None:
        """The recorded true values hold the true ones."""
        claim, w = self.row.claim, self.row.claim.witness
        if w.exact is None or len(w.exact) != len(true):
            self._wrong("The true values of the row are missing.")
        else:
            outside = [
                i for i, (shown, value) in enumerate(zip(w.exact, true, strict=True)) if not agrees(shown, value)
            ]
            if outside:
                self._wrong(f"The true value at key {outside[0]} is {true[outside[0]]}, and not {w.exact[outside[0]]}.")
        if claim.part == "measured":
            return
        expected = TRUE_OF_ROWS.get(w.quantity)
        if expected is not None:
            if claim.enclosure != expected:
                self._wrong(f"The true value of this quantity is {expected[0]}, and not {claim.enclosure}.")
        elif w.index is not None and not contains(claim.enclosure or [], true[w.index]):
            self._wrong(f"The true value at key {w.index} is {true[w.index]}; it is not within {claim.enclosure}.")

    def _numbers(self, key: str, true: list[Interval]) -> None:
        """Error, budget, and the verdict that follows from them."""
        claim, w = self.row.claim, self.row.claim.witness
        if w.index is None and w.quantity not in ("row sum", "inner product"):
            self._wrong("The offending key is missing.")
            return
        error = self._error(key, true)
        if error is None:
            if finite(claim.error):
                self._wrong(f"The error is not a number, and not {claim.error}.")
            elif claim.verdict != "fail":
                self._wrong("The error is not a number, and the row is not reported as a failure.")
            return
        size = _rough(error.hi)
        if not finite(claim.error) or not close(claim.error or 0.0, size, claim.budget or 0.0):
            self._wrong(f"The error is {size:.6g}, and not {claim.error}.")
            return
        allowed = self.budgets.of(self.row.claim, key, self.place, self._given(), self.row.returned)
        if allowed is None:
            self.ledger.open["budgets of rows beside a copy that is not in the certificate"] += 1
            return
        if not allowed:
            self._wrong(f"There is no such comparison, or no tier '{claim.tier}'.")
            return
        mine = [b for b in allowed if claim.budget is not None and close(b, claim.budget)]
        if not mine:
            self._wrong(f"The budget under '{claim.tier}' is {max(allowed):.6g}, and not {claim.budget}.")
            return
        if mine[0] > 0.0 and abs(size - mine[0]) <= TOO_CLOSE * mine[0]:
            self.ledger.open["errors so close to their budget that another machine may decide otherwise"] += 1
        elif claim.verdict == "fail" and not error.lo > Fraction(mine[0]):
            self._wrong(f"The error {size:.6g} is within the budget {mine[0]:.6g}: this is no failure.")
        elif claim.verdict != "fail" and error.lo > Fraction(mine[0]):
            self._wrong(f"The error {size:.6g} is beyond the budget {mine[0]:.6g}: this is a failure.")

    def _error(self, key: str, true: list[Interval]) -> Interval | None:
        """An enclosure of the error, None where it is not a number."""
        w, row = self.row.claim.witness, self.row
        if w.quantity == "row sum":
            if not np.isfinite(row.returned).all():
                return None
            return _point(abs(sum(map(Fraction, row.returned.tolist()), Fraction()) - 1))
        if w.quantity == "inner product":
            return self._inner()
        index = w.index or 0
        got = float(row.returned[index])
        if w.quantity == "difference":
            theirs = math.nan if row.other is None else float(row.other[index])
            if not (math.isfinite(got) and math.isfinite(theirs)):
                return None
            return _point(abs(Fraction(got) - Fraction(theirs)))
        if key in RANGE:
            return _point(max(Fraction(got) - 1, -Fraction(got), Fraction())) if math.isfinite(got) else None
        if not math.isfinite(got):
            return None
        if self._given():
            exact = self._backward(index)
            return None if exact is None else _point(abs(Fraction(got) - exact))
        value, x = true[index], Fraction(got)
        return Interval(max(Fraction(), value.lo - x, x - value.hi), max(abs(x - value.lo), abs(x - value.hi)))

    def _given(self) -> bool:
        return GIVEN in self.row.claim.witness.note.split("; ")

    def _backward(self, index: int) -> Fraction | None:
        """Entry of the derivative at the very weights that were returned, exactly."""
        row = self.row
        if row.other is None or row.cotangent is None or not np.isfinite(row.other).all():
            return None
        w = [Fraction(x) for x in row.other.tolist()]
        g = [Fraction(x) for x in np.where(row.mask, row.cotangent, 0.0).tolist()]
        return w[index] * (g[index] - sum((a * b for a, b in zip(w, g, strict=True)), Fraction()))

    def _inner(self) -> Interval | None:
        """``<J u, g> - <u, J g>`` of the returned derivatives, exactly."""
        row = self.row
        assert row.other is not None
        assert row.cotangent is not None
        assert row.tangent is not None
        if not (np.isfinite(row.returned).all() and np.isfinite(row.other).all()):
            return None
        g, u = (np.where(row.mask, v, 0.0).tolist() for v in (row.cotangent, row.tangent))
        pairs = ((row.returned.tolist(), g, 1), (row.other.tolist(), u, -1))
        total = Fraction()
        for values, factors, sign in pairs:
            total += sign * sum((Fraction(a) * Fraction(b) for a, b in zip(values, factors, strict=True)), Fraction())
        return _point(abs(total))

    def _empty(self, key: str) -> None:
        """A row that allows no key: the contract decides."""
        claim, values = self.row.claim, self.row.returned[None]
        keep = keep_weights if claim.witness.quantity == "weights" else keep_derivative
        try:
            judged = keep(contract(claim.subject.contract), values)
        except ValueError:
            return  # noted with the subject
        kept, permitted = bool(judged.kept[0]), bool(judged.permitted[0])
        if claim.budget != 0.0:
            self._wrong(f"A row that allows no key has the budget 0, and not {claim.budget}.")
        if claim.verdict == "fail" and kept:
            self._wrong(f"The row keeps the contract '{claim.subject.contract}': this is no failure.")
        elif claim.verdict != "fail" and not kept:
            self._wrong(f"The row breaks the contract '{claim.subject.contract}': this is a failure.")
        elif claim.verdict == "pass" and permitted:
            self._wrong("The row departs from the theorem by leave of its contract: it is permitted, and no pass.")
        if finite(claim.error):
            # Either of the offending entry, or of the row as a whole.
            sizes = [abs(values[0, claim.witness.index])] if claim.witness.index is not None else []
            sizes.append(np.abs(values[0]).max(initial=0.0))
            if key in RANGE:
                sizes = [np.maximum(np.abs(values[0] - 0.5) - 0.5, 0.0).max(initial=0.0)]
            if not any(close(float(s), claim.error or 0.0) for s in sizes):
                self._wrong(f"The error is {sizes[-1]:.6g}, and not {claim.error}.")

    def _flag(self) -> None:
        """The flag is True exactly where some key is allowed."""
        claim = self.row.claim
        if claim.diagnosis == "no valid flag":
            self.ledger.open["answers without the flag that their contract demands: nothing was returned"] += 1
            return
        wrong = bool(self.row.returned[0]) != bool(self.row.mask.any())
        if wrong != (claim.verdict == "fail"):
            self._wrong(
                f"The flag is {'wrong' if wrong else 'right'} for this row, and the verdict is {claim.verdict}."
            )

    def _promise(self, key: str) -> None:
        """A promise about numbers that are not real."""
        claim, row, w = self.row.claim, self.row, self.row.claim.witness
        if key == "allowed_nan_visible":
            broken = bool(np.isnan(row.scores[row.mask]).any()) and not bool(np.isnan(row.returned).any())
        elif key == "isolation" and w.quantity in DERIVATIVES and self.batch.real[self.place]:
            # The batch has zeros in the place of whatever stands at blocked keys.
            true = self.truths.of(row.scores, row.mask, row.vector)
            budget = self.budgets.derivative(claim.tier, w.quantity, self.place)
            if budget is None:
                self._wrong(f"There is no tier '{claim.tier}'.")
                return
            broken = any(
                not math.isfinite(y) or max(t.lo - Fraction(y), Fraction(y) - t.hi) > Fraction(b)
                for y, t, b in zip(row.returned.tolist(), true, budget.tolist(), strict=True)
            )
        else:
            self.ledger.open["promises about numbers that are not real"] += 1
            return
        if broken != (claim.verdict == "fail"):
            self._wrong(f"The row {'breaks' if broken else 'keeps'} the promise, and the verdict is {claim.verdict}.")


_WHAT = {
    "witness": "rows of findings",
    "minimal": "smallest rows",
    "measured": "rows that exceed the strongest tier",
}


def _point(value: Fraction) -> Interval:
    return Interval(value, value)


def _rough(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
