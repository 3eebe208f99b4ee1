"""The fingerprint of a masked softmax over rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...adapters.subject import Subject
from ...spec.batch import Array, Bools
from ...spec.formats import FORMATS
from ..calls import Fault, Raw, call_raw
from . import policy
from .probe import (
    EMPTY,
    FULL,
    PARTIAL,
    POISONS,
    SCORES,
    Answers,
    Errors,
    first_leak,
    inverted,
    isolation,
    number,
    offered,
    printable,
    smallest,
)
from .record import EmptyRow, Fingerprint, Isolation

VECTOR = np.array([1.0, -2.0, 4.0, 0.5])
"""Cotangents and tangents of every row: not constant, since a constant lies in the null space of the Jacobian."""


def fingerprint_rows(subject: Subject, dtype: str) -> Fingerprint:
    """Probe one subject in one dtype.

    >>> from hardmask.adapters.numpy_rows import subjects
    >>> found = fingerprint_rows(next(s for s in subjects() if s.id == "numpy.fill-inf"), "float32")
    >>> found.mask, found.empty_row.forward
    ('allowed', 'NaN')
    """
    return _Probe(subject, dtype).fingerprint()


class _Probe:
    def __init__(self, subject: Subject, dtype: str) -> None:
        self.subject, self.dtype = subject, dtype
        self.errors = Errors()

    def fingerprint(self) -> Fingerprint:
        weight, mask = self._partial()
        if mask == "blocked":
            self.subject = inverted(self.subject, 1)
        leaks_from = self._leaks_from()
        empty = self._empty()
        s = self.subject
        return Fingerprint(
            subject=s.id,
            adapter=s.adapter,
            operation=s.operation,
            path=s.path,
            role=s.role,
            dtype=self.dtype,
            declared_contract=s.contract,
            declared_mask=s.convention,
            mask=mask,
            empty_row=empty,
            infinite_row=self._infinite(),
            blocked_weight=weight,
            leaks_from=leaks_from,
            reading=policy.finite_reading(empty.forward, leaks_from is not None)
            if leaks_from is not None or empty.forward in ("uniform", "raw softmax")
            else "",
            isolation=self._isolation(),
            allowed_nan=self._allowed_nan(),
            derivatives=offered(s),
            errors=self.errors.sentences,
        )

    def _array(self, rows: Any) -> Array:
        return np.asarray(rows, np.float64).astype(FORMATS[self.dtype].dtype)

    def _call(self, method: str, scores: Any, mask: Any, vectors: Any = None) -> Raw | Fault:
        arrays: list[Array] = [self._array(scores), np.asarray(mask, np.bool_)]
        if method != "forward":
            arrays.append(self._array(vectors if vectors is not None else np.tile(VECTOR, (len(scores), 1))))
        return call_raw(self.subject, method, *arrays)

    def _weights(self, scores: Any, mask: Any) -> Array | None:
        """The weights of the first row; None, and a sentence, where the call failed."""
        answer = self._call("forward", scores, mask)
        if isinstance(answer, Fault):
            self.errors.of(answer)
            return None
        return answer.array[0]

    def _partial(self) -> tuple[float | None, str]:
        weights = self._weights([SCORES, SCORES], [PARTIAL, FULL])
        if weights is None:
            return None, "error"
        mask = np.asarray(PARTIAL)
        reading = policy.mask_reading(weights, SCORES, mask, self.dtype)
        return policy.leak(weights, ~mask if reading == "blocked" else mask), reading

    def _leaks_from(self) -> float | None:
        mask = np.asarray(PARTIAL)

        def ask(score: float) -> float | None:
            weights = self._weights([[0.0, 0.0, 0.0, score], SCORES], [PARTIAL, FULL])
            return None if weights is None else policy.leak(weights, mask)

        return first_leak(self.dtype, ask)

    def _empty(self) -> EmptyRow:
        batch: tuple[Any, Any] = [SCORES, SCORES], [EMPTY, FULL]
        kinds: dict[str, str] = {}
        spreads: list[str] = []
        valid = False
        for method in self.subject.methods:
            # Beside an empty row whose own cotangent is zero, another row's derivative has no excuse to be NaN.
            found = self._call(method, *batch)
            beside = self._call(method, *batch, [0.0 * VECTOR, VECTOR]) if method != "forward" else found
            if isinstance(found, Fault):
                kinds[method] = self.errors.of(found)
                continue
            row = found.array[0]
            kinds[method] = policy.empty_row(row, SCORES, self.dtype) if method == "forward" else policy.derivative(row)
            if not isinstance(beside, Fault) and not np.isfinite(beside.array[1].astype(np.float64)).all():
                spreads.append("weights" if method == "forward" else method)
            if method == "forward" and found.valid is not None:
                valid = bool(found.valid[1]) and not found.valid[0]
        return EmptyRow(valid=valid, spreads=spreads, **kinds)

    def _infinite(self) -> str:
        weights = self._weights([[-np.inf, -np.inf, -np.inf, 0.0], SCORES], [PARTIAL, FULL])
        return "error" if weights is None else policy.infinite_row(weights, np.asarray(PARTIAL), self.dtype)

    def _allowed_nan(self) -> dict[str, str]:
        weights = self._weights([[np.nan, 1.0, 2.0, 3.0], SCORES], [FULL, FULL])
        if weights is None:
            return {"score": "error"}
        return {"score": "visible" if np.isnan(weights.astype(np.float64)).any() else "hidden"}

    def _isolation(self) -> list[Isolation]:
        methods = self.subject.methods
        found: list[Isolation] = []
        for place, of in (
            ("blocked score", methods),
            ("blocked cotangent", tuple(m for m in methods if m == "vjp")),
            ("blocked tangent", tuple(m for m in methods if m == "jvp")),
            ("cotangent of an empty row", tuple(m for m in methods if m == "vjp")),
        ):
            poisons = ("NaN",) if place == "cotangent of an empty row" else POISONS
            # The smallest row first; the longer one stands beside another row.
            attempts = [
                partial(
                    isolation,
                    place,
                    of,
                    self.dtype,
                    partial(self._spoilt, place, rows),
                    partial(self._shown, place, rows),
                    poisons,
                )
                for rows in self._sizes(place)
            ]
            found += smallest(*attempts)
        return found

    def _sizes(self, place: str) -> list[tuple[Any, Any]]:
        empty = place == "cotangent of an empty row"
        small = ([[0.0, 0.0]], [[not empty, False]])
        return [small, ([SCORES, SCORES], [EMPTY if empty else PARTIAL, FULL])]

    def _arguments(
        self, place: str, rows: tuple[Any, Any], method: str, poison: str
    ) -> tuple[Array, Bools, Array | None]:
        """Private copies, with the poison at the blocked entries of the first row."""
        x, m = np.array(rows[0], np.float64), np.asarray(rows[1], np.bool_)
        vectors = np.tile(VECTOR[: x.shape[1]], (len(x), 1)) if method != "forward" else None
        target = x if place == "blocked score" else vectors
        assert target is not None
        target[0, ~m[0]] = number(poison, self.dtype)
        return x, m, vectors

    def _spoilt(self, place: str, rows: tuple[Any, Any], method: str, poison: str) -> Answers:
        answer = self._call(method, *self._arguments(place, rows, method, poison))
        return answer if isinstance(answer, Fault) else {"weights" if method == "forward" else method: answer.array}

    def _shown(self, place: str, rows: tuple[Any, Any], method: str, poison: str) -> dict[str, Any]:
        x, m, vectors = self._arguments(place, rows, method, poison)
        shown = {"scores": printable(self._array(x)), "mask": printable(m)}
        if vectors is not None:
            shown["cotangents" if method == "vjp" else "tangents"] = printable(self._array(vectors))
        return shown
