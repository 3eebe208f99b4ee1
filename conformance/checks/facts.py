"""What a backend does where the theorems do not speak: reported as a fact, judged only where it was promised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...adapters.subject import Method
from ...spec.batch import Bools, Floats
from ...spec.rounding import Mode
from ..cases.build import ISOLATED, UNREAD
from ..judgement import Outcome, by_referee, compare, from_rows
from ..truth import Side, Truth
from ..view import DERIVATIVES, View

VISIBLE = "allowed_nan_visible"
ISOLATION = "isolation"


def fact(view: View, family: str) -> str:
    """What the weights of a family of non-real rows look like, in a few words."""
    if view.values is None:
        return "error"
    rows = ~view.batch.real & (view.batch.family == view.batch.families.index(family))
    y, mask = view.values[rows], view.batch.mask[rows]
    if not len(y):
        return ""
    kinds = {
        "NaN in the whole row": np.all(np.isnan(y), axis=1),
        "NaN in part of the row": np.any(np.isnan(y), axis=1),
        "zero": np.all(y == 0.0, axis=1),
        "weight on blocked keys": np.any((y != 0.0) & ~mask, axis=1),
        "finite": np.all(np.isfinite(y), axis=1),
    }
    left = np.ones(len(y), bool)
    seen = []
    for name, hit in kinds.items():
        if (left & hit).any():
            seen.append(name)
        left &= ~hit
    return " or ".join(seen)


def check(view: View) -> Iterator[Outcome]:
    """The optional promises: measured on every subject, judged where they are promised or required."""
    if "allowed nan" in view.batch.families:
        yield from _visible(view)
        yield from _isolated(view)


def _visible(view: View) -> Iterator[Outcome]:
    """``allowed NaN visible``: a NaN in an allowed place reaches that row's weights."""
    if view.values is None:
        return
    nan = np.any(view.batch.mask & np.isnan(view.batch.scores64), axis=1)
    hidden = nan & ~np.any(np.isnan(view.values), axis=1)
    yield _promise(
        view, VISIBLE, "allowed-nan-visible", "forward", nan, hidden, "NaN swallowed", "NaN visible", view.values
    )


def _isolated(view: View) -> Iterator[Outcome]:
    """``isolation``: a NaN in a vector, on an empty row or at a blocked key, leaves the derivative as if it were 0."""
    for family in (ISOLATED, UNREAD):
        rows = view.batch.family == view.batch.families.index(family)
        for mode, side in DERIVATIVES:
            values = view.derivative_values(mode, side)
            if values is None or not rows.any():
                continue
            name = mode.upper()
            broken = np.zeros(len(rows), bool)
            broken[rows] = _unlike_zero_filled(view, mode, side, rows, values[rows])
            fault = f"NaN {name}" if np.isnan(values[broken]).any() else f"blocked entries reach the {name}"
            yield _promise(view, ISOLATION, "isolation", mode, rows, broken, fault, f"{name} isolated", values, side)


def _unlike_zero_filled(view: View, mode: Mode, side: Side, rows: Bools, values: Floats) -> Bools:
    """Which derivatives of the given rows are not those of the same rows with zeros in place of the NaN."""
    batch = view.batch
    vector = getattr(batch, side)[rows]
    clean = np.where(batch.mask[rows], vector, 0).astype(vector.dtype)
    known = {name: getattr(batch, name)[rows] for name in ("scores", "mask", "family")}
    truth = Truth(replace(batch, **known, cotangents=clean, tangents=clean, relations={}, permutation=None))
    budgets = truth.derivative_budget(view.rounding(mode), side)
    budget = budgets.vjp if mode == "vjp" else budgets.jvp
    return np.any(compare(truth.derivative(side), values, budget, by_referee(truth, side)).bad, axis=1)


def _promise(
    view: View,
    key: str,
    promise: str,
    method: Method,
    rows: Bools,
    broken: Bools,
    fault: str,
    kept: str,
    values: Floats,
    side: Side | None = None,
) -> Outcome:
    """Judged if promised; otherwise a fact about rows that no theorem speaks of."""
    promised = promise in view.promises
    none = np.zeros(len(rows), bool)
    return from_rows(
        (key,),
        "weights" if method == "forward" else method,
        broken.astype(np.float64),
        np.zeros(len(rows)),
        broken,
        rows if promised else none,
        diagnose=lambda r: np.full(len(r), fault, dtype=object),
        returned=values,
        tier=view.tier(method),
        unmet=none if promised else rows,
        side=side,
        fact="" if promised else (fault if broken.any() else kept),
    )
