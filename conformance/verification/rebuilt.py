"""Rows that a certificate only names, built again from the seed: their family, their hypotheses and their budgets.

What was returned for them is not in the certificate, so a pass is not recomputed. Held against the certificate are
whether the row exists and is of the family that the finding names, whether it meets the hypotheses, and its budget:
no more may have been granted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ...spec.batch import Batch, Floats
from ..cases import EFFORTS, Case, plan
from ..checks import relations
from ..document import Certificate
from ..promises import PROMISES
from .allowed import Budgets
from .asked import Asked
from .claims import CLOSE, RowClaim, by_name, key_of, near, numbers
from .ledger import Ledger

MOST_ROUNDS = 200
"""Rounds of a run that are planned again, at most."""

OTHERWISE = "rows that the seed gives otherwise here: another release of NumPy, or another processor"
UNPLANNED = "rows of a run that this version does not plan: another effort, or very many rounds"

TURN = re.compile(r"/(\d{1,9})$", re.ASCII)
"""The round at the end of a batch's name."""

SHIFT = "shift"
SHIFTED = relations.NAMES[SHIFT]
"""A row and its shifted copy have two budgets: the copy is in no certificate, and the seed gives it."""

FLAGGED = ("zero+valid", "fallback")
"""Kinds of contracts under which the flag of every row is asked, not of empty ones alone."""

UNSEEDED = re.compile(r"^[a-z0-9]+/(search|exhaustive) ?")


def rebuild(
    certificate: Certificate, asked: Asked | None, claims: Iterable[RowClaim], ledger: Ledger, *, same: bool
) -> None:
    """Build the batches that claims name, and hold the claims against them.

    ``same``: the rows were drawn by the same releases as here, so that they must be the same to the bit.
    """
    by_batch: dict[str, list[RowClaim]] = defaultdict(list)
    for claim in claims:
        by_batch[claim.witness.batch].append(claim)
    cases = planned(asked, certificate.seed, by_batch)
    for name, mine in by_batch.items():
        case = cases.get(name)
        if case is not None:
            _Rebuilt(case, mine, ledger, same).check()
        elif UNSEEDED.match(name):
            ledger.open["rows that the seed alone does not give: of the directed search, or of a sweep"] += len(mine)
        elif not cases or _late(name):
            ledger.open[UNPLANNED] += len(mine)
        else:
            for claim in mine:
                ledger.wrong(claim.where, f"The run has no batch '{name}'.")


def _late(name: str) -> bool:
    found = TURN.search(name)
    return found is not None and int(found[1]) > MOST_ROUNDS


def planned(asked: Asked | None, seed: int, names: Iterable[str]) -> dict[str, Case]:
    """The batches of a run by their names, as far as these are named; none where the effort is not one."""
    if asked is None or asked.effort not in EFFORTS:
        return {}
    named = [int(found[1]) for found in map(TURN.search, names) if found is not None]
    rounds = asked.rounds if asked.rounds is None else min(asked.rounds, 1 + min(max(named, default=0), MOST_ROUNDS))
    return {case.key: case for case in plan(asked.effort, seed, asked.judged, rounds)}


class _Rebuilt:
    """The rows of one batch that claims name."""

    def __init__(self, case: Case, claims: Sequence[RowClaim], ledger: Ledger, same: bool) -> None:
        self.ledger, self.same = ledger, same
        self.batch = case.build()
        self.layout = "" if case.layout is None else str(case.layout)
        rows, keys = self.batch.shape
        self.claims = []
        for claim in claims:
            w = claim.witness
            if w.row >= rows or (w.index is not None and w.index >= w.keys):
                ledger.wrong(claim.where, f"Batch '{w.batch}' has {rows} rows of {keys} keys: there is no such entry.")
            elif w.keys != keys and claim.part != "minimal":
                ledger.wrong(claim.where, f"The rows of batch '{w.batch}' have {keys} keys, and not {w.keys}.")
            elif claim.part != "minimal":
                self.claims.append(claim)
        empty = self.batch.empty
        self.copies = {a: b for pair in self.batch.relations.get(SHIFT, ()) for a, b in (pair, pair[::-1])}
        self.donor = int(np.flatnonzero(~empty)[0]) if not empty.all() else -1

    def check(self) -> None:
        """Hold every claim against its row."""
        taken = [self._row(claim) for claim in self.claims]
        used = np.array(sorted({*taken, *(self.copies.get(row, row) for row in taken)}), np.int64)
        place = {row: k for k, row in enumerate(used.tolist())}
        budgets = Budgets(_rows_of(self.batch, used))
        met: dict[str, np.ndarray] = {}
        for claim, row in zip(self.claims, taken, strict=True):
            before = len(self.ledger.problems)
            at = place[row]
            self._family(claim)
            declaration = by_name().get(claim.declaration)
            promise = declaration is not None and declaration.key in PROMISES
            flag = claim.subject.contract.startswith(FLAGGED) and key_of(claim.declaration) == "empty_row"
            if declaration is not None and not promise and not flag and claim.part == "witness":
                if claim.declaration not in met:
                    met[claim.declaration] = declaration.holds(budgets.batch.mask, budgets.batch.scores64)
                # The weights of an empty row are asked whatever its vectors hold.
                real = budgets.batch.real[at] or declaration.key == "empty_row"
                if not (met[claim.declaration][at] and real):
                    self._wrong(claim, f"The row does not meet the hypotheses of {claim.declaration}.")
            if claim.full:
                self._same_row(claim, row)
            if not promise and claim.part == "witness" and (not claim.full or key_of(claim.declaration) == SHIFTED):
                self._granted(claim, budgets, at, place[self.copies.get(row, row)])
            if len(self.ledger.problems) == before:
                self.ledger.recomputed["rows built again from the seed"] += 1

    def _row(self, claim: RowClaim) -> int:
        """The row that was judged: where a contract has empty rows rejected, another one stands in their place."""
        row = claim.witness.row
        rejected = claim.subject.contract == "reject" and self.donor >= 0 and bool(self.batch.empty[row])
        return self.donor if rejected and key_of(claim.declaration) != "empty_row" else row

    def _wrong(self, claim: RowClaim, sentence: str) -> None:
        self.ledger.wrong(claim.where, sentence)

    def _family(self, claim: RowClaim) -> None:
        if claim.part == "measured":
            return
        family = self.layout or self.batch.families[int(self.batch.family[claim.witness.row])]
        if family != claim.family and claim.subject.contract != "reject":
            self._wrong(claim, f"The row is of the family '{family}', and not '{claim.family}'.")

    def _same_row(self, claim: RowClaim, row: int) -> None:
        """The row in the certificate is that of the seed, bit by bit."""
        w = claim.witness
        vectors = {"scores": self.batch.scores, "cotangent": self.batch.cotangents, "tangent": self.batch.tangents}
        pairs = [(getattr(w, name), array[row].astype(np.float64)) for name, array in vectors.items()]
        alike = similar = w.mask == self.batch.mask[row].tolist()
        for shown, drawn in pairs:
            values = None if shown is None else _numbers(shown)
            if shown is not None:
                fits = values is not None and values.shape == drawn.shape
                alike &= fits and np.array_equal(values, drawn, equal_nan=True)  # type: ignore[arg-type]
                similar &= fits and near(values, drawn, self.batch.dtype)  # type: ignore[arg-type]
        if alike:
            return
        if self.same and not similar:
            self._wrong(claim, f"The row is not row {w.row} of batch '{w.batch}', as the seed gives it.")
        else:
            self.ledger.open[OTHERWISE] += 1

    def _granted(self, claim: RowClaim, budgets: Budgets, at: int, copy: int) -> None:
        """No more was granted to a row than its budget, and no more was used where it passed."""
        w = claim.witness
        if claim.budget is None:
            return
        beyond = claim.error is not None and claim.error > claim.budget * (1.0 + CLOSE)
        if beyond and claim.verdict != "fail" and not budgets.batch.empty[at]:
            self._wrong(claim, f"The error {claim.error:.6g} is beyond the budget {claim.budget:.6g}, and passed.")
        index, key = -1 if w.index is None else w.index, key_of(claim.declaration)
        largest = budgets.at_most(claim.subject, key, at, index)
        if largest is not None and key == SHIFTED:
            largest += budgets.at_most(claim.subject, key, copy, index) or 0.0
        if largest is None:
            if claim.budget > 0.0:
                self._wrong(claim, f"Nothing is granted here, and not {claim.budget:.6g}.")
        elif claim.budget > largest * (1.0 + CLOSE):
            self._wrong(claim, f"The budget is {largest:.6g} at most, and not {claim.budget:.6g}.")


def _rows_of(batch: Batch, rows: np.ndarray) -> Batch:
    parts = {n: getattr(batch, n)[rows] for n in ("scores", "mask", "cotangents", "tangents", "family")}
    return replace(batch, relations={}, permutation=None, layout=None, **parts)


def _numbers(shown: list[str]) -> Floats | None:
    try:
        return numbers(shown)
    except (ValueError, OverflowError):
        return None
