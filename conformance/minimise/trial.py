"""Whether variants of a failing row still fail: the same declaration, by the same check, with the same diagnosis."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ...adapters.subject import Method, Subject
from ...spec.batch import Array, Batch, Bools, Floats
from ...spec.contracts import Contract
from ...spec.formats import FORMATS
from ..calls import Fault, call
from ..cases.build import ISOLATED, SHORT
from ..checks import check_of, facts, forward, relations
from ..checks.adjoint import JACOBIAN
from ..judgement import Outcome, Worst
from ..tally import worst_at
from ..truth import Truth
from ..view import View
from .rows import Rows

TOGETHER = 64
"""Variants that are judged in one batch. Every batch is filled up to it: a compiler sees one shape per length."""

ENOUGH = 4
"""Variants among many that are found to raise; a step takes one of them."""

ALIKE = {"leak": ("raw softmax", "uniform"), "not zero": ("raw softmax", "uniform", "one key")}
"""Diagnoses that say more than the one of the row, and that a smaller row may therefore have."""


class Trial(Protocol):
    """What the shrinking asks of a fault."""

    dtype: str
    left: int

    def failing(self, rows: Rows) -> Bools:
        """Which of at most ``TOGETHER`` variants still fail."""
        ...


@dataclass(eq=False)
class CheckTrial:
    """A row that a check failed. ``shift``: what its copy is shifted by, where it was compared with a shifted copy.

    ``left``: how many batches may still be judged.
    """

    subject: Subject
    contract: Contract
    required: frozenset[str]
    dtype: str
    key: str
    family: str
    worst: Worst
    diagnosis: str
    left: int
    shift: float = 0.0
    _last: tuple[Outcome, Batch] | None = field(default=None, init=False)

    def failing(self, rows: Rows) -> Bools:
        """Which of the variants still fail; all of them at once, in a batch of ``TOGETHER``."""
        return self._judged(rows, TOGETHER)

    def alone(self, row: Rows) -> Worst | None:
        """The witness of a single row in a call of its own (beside the copies that its check needs), or None."""
        if not self._judged(row, 1)[0]:
            return None
        assert self._last is not None
        outcome, batch = self._last
        bad = np.flatnonzero(outcome.failed)
        return worst_at(outcome, batch, int(bad[outcome.ratio[bad].argmax()]))

    def _judged(self, rows: Rows, size: int) -> Bools:
        count = len(rows.scores)
        none = np.zeros(count, bool)
        if self.left <= 0:
            return none
        usable = np.flatnonzero(self._usable(rows))
        if not len(usable):
            return none
        self.left -= 1
        batch, variant = self.batch_of(rows.take(usable[np.arange(size) % len(usable)]))
        view = View(self.subject, self.contract, Truth(batch), self.required)
        outcome = self._outcome(view)
        if outcome is None:
            return self._apart(rows, view) if count > 1 else none
        bad = np.flatnonzero(outcome.failed)
        if len(bad):
            admitted = (*ALIKE.get(self.diagnosis, ()), self.diagnosis)
            bad = bad[np.isin(outcome.diagnose(bad).astype(str), admitted)]
        self._last = outcome, batch
        none[usable[variant[bad] % len(usable)]] = True
        return none

    def _usable(self, rows: Rows) -> Bools:
        """Variants that the check may be asked about: they meet what it takes for granted of its own batches."""
        filled = rows.mask.any(axis=1)
        usable = filled == self.worst.mask.any()
        if self.key in forward.CAUSAL:
            usable &= np.all(rows.mask[:, 1:] <= rows.mask[:, :-1], axis=1)
        if self.key == facts.ISOLATION:
            # It speaks of what stands at blocked keys; where a key is allowed, a NaN is right to get through.
            usable &= ~np.any(rows.mask & ~(np.isfinite(rows.cotangents) & np.isfinite(rows.tangents)), axis=1)
        if self.key == relations.TRUNCATION:
            usable &= ~rows.mask[:, SHORT:].any(axis=1)
        if self.key == relations.NAMES["shift"]:
            moved = rows.scores + self.shift
            exact = (moved - self.shift == rows.scores) & (moved - rows.scores == self.shift)
            usable &= np.all(exact & (stored(moved, self.dtype).astype(np.float64) == moved), axis=1)
        return np.asarray(usable)

    def _apart(self, rows: Rows, view: View) -> Bools:
        """One variant may have made the whole call raise: judge the halves."""
        if not view.faults:
            return np.zeros(len(rows.scores), bool)
        half = len(rows.scores) // 2
        return np.concatenate([self.failing(rows.take(part)) for part in (slice(half), slice(half, None))])

    def _outcome(self, view: View) -> Outcome | None:
        """What the check says that failed the row, or None where it came to no answer."""
        for outcome in check_of(self.key)(view):
            same = (outcome.quantity, outcome.side, outcome.remark) == (
                self.worst.quantity,
                self.worst.side,
                self.worst.remark,
            )
            if same and self.key in outcome.declarations:
                return outcome
        return None

    def batch_of(self, rows: Rows) -> tuple[Batch, np.ndarray]:
        """The batch that the check needs, and which variant each of its rows belongs to."""
        count, keys = rows.shape
        variant = np.arange(count)
        related: dict[str, np.ndarray] = {}
        scores, cotangents, tangents = rows.scores, rows.cotangents, rows.tangents
        mask, order = rows.mask, None
        if self.key == relations.NAMES["shift"]:
            related["shift"] = np.stack([variant, variant + count], axis=1)
            scores = np.concatenate([scores, scores + self.shift])
        elif self.key == relations.NAMES["permutation"]:
            related["permutation"] = np.stack([variant, variant + count], axis=1)
            order = rows.order
            scores = np.concatenate([scores, np.take_along_axis(scores, order, axis=1)])
        elif self.worst.remark == JACOBIAN:
            related["jacobian"] = np.arange(count * keys).reshape(count, keys)
            units = np.tile(np.eye(keys), (count, 1))
            scores, mask, variant = np.repeat(scores, keys, axis=0), np.repeat(mask, keys, axis=0), variant.repeat(keys)
            cotangents = tangents = units
        if len(scores) == 2 * count and related.keys() & {"shift", "permutation"}:
            variant = np.concatenate([variant, variant])
            copied = mask if order is None else np.take_along_axis(mask, order, axis=1)
            mask = np.concatenate([mask, copied])
            cotangents, tangents = (np.concatenate([v, v]) for v in (cotangents, tangents))
        promised = self.key in (facts.VISIBLE, facts.ISOLATION)
        families = tuple(dict.fromkeys((self.family, *(("allowed nan", ISOLATED) if promised else ()))))
        batch = Batch(
            key=self.worst.batch,
            dtype=self.dtype,
            scores=stored(scores, self.dtype),
            mask=mask,
            cotangents=stored(cotangents, self.dtype),
            tangents=stored(tangents, self.dtype),
            family=np.zeros(len(scores), np.int64),
            families=families,
            relations=related,
            permutation=order,
        )
        return batch, variant


@dataclass(eq=False)
class RaiseTrial:
    """A row on which a call raises, or returns what cannot be accepted. ``left``: how many calls are left."""

    subject: Subject
    method: Method
    dtype: str
    fault: Fault
    left: int

    def failing(self, rows: Rows) -> Bools:
        """The first few variants that are answered by the same fault, in calls of their own.

        The halves of a call that is answered so are asked again; where it is not, no row of it is to blame.
        """
        found = np.zeros(len(rows.scores), bool)
        open_parts = [np.arange(len(found))]
        while open_parts and found.sum() < ENOUGH:
            part = open_parts.pop(0)
            fault = self.fault_of(rows.take(part))
            if fault is None or kind(fault) != kind(self.fault):
                continue
            if len(part) == 1:
                found[part] = True
            else:
                open_parts[:0] = np.array_split(part, 2)
        return found

    def fault_of(self, row: Rows) -> Fault | None:
        """What is wrong with the answer to one row, or to several; None when nothing is, or no call is left."""
        if self.left <= 0:
            return None
        self.left -= 1
        arrays: list[Array] = [stored(row.scores, self.dtype), row.mask]
        if self.method != "forward":
            arrays.append(stored(row.cotangents if self.method == "vjp" else row.tangents, self.dtype))
        answer = call(self.subject, self.method, *arrays)
        return answer if isinstance(answer, Fault) else None


def kind(fault: Fault) -> str:
    """What two faults of one kind have in common: the exception's type, or the sentence without its numbers."""
    if fault.raised:
        return fault.sentence.partition("it raised ")[2].partition(":")[0]
    return "".join(c for c in fault.sentence if not c.isdigit())


def stored(values: Floats, dtype: str) -> Array:
    """Values in the dtype, in which they are exact."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.ascontiguousarray(values).astype(FORMATS[dtype].dtype)
