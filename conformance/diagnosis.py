"""Name a fault in a word or two. A diagnosis explains a verdict; it never makes one."""

from __future__ import annotations

import numpy as np

from ..spec.batch import Bools, Floats
from ..spec.rounding import Mode
from .judgement import Codes, Names
from .truth import Side
from .view import View

INVERTED = "inverted mask"
"""All weight lies on blocked keys although an allowed score is the largest: no penalty does that."""

ROUNDED = "rounding"
"""An error that is too large for the declared tier, and not by much."""

COARSE = 2.0**-6
"""Weights that are no further apart than this show one policy; a diagnosis is not a verdict."""

ROUNDING = 32.0
"""An error below this many budgets is called rounding, a larger one wrong."""


def _name(names: Names, where: Bools, text: str) -> None:
    """Name the rows that have no name yet."""
    names[where & (names == "")] = text


def weights_fault(view: View, rows: Codes) -> Names:
    """Faults of returned weights, one name per row."""
    values = view.values
    assert values is not None
    y, mask, empty = values[rows], view.batch.mask[rows], view.batch.empty[rows]
    names: Names = np.full(len(rows), "", dtype=object)
    _name(names, np.any(np.isnan(y), axis=1), "NaN")
    _name(names, np.any(np.isinf(y), axis=1), "infinity")
    stale = view.contract.kind in ("nan", "fallback")
    _name(names, empty & np.all(y == 0.0, axis=1), "declaration stale" if stale else "empty row")
    leak = np.any((y != 0.0) & ~mask, axis=1)
    if leak.any():
        _name(names, leak & _inverted(view, rows, y), INVERTED)
        uniform, raw = _policy(view, rows, y)
        _name(names, leak & raw, "raw softmax")
        _name(names, empty & uniform, "uniform")
        one_hot = np.all((y == 0.0) | (y == 1.0), axis=1) & (y.sum(axis=1) == 1.0)
        _name(names, empty & one_hot & (y.shape[1] > 1), "one key")
        _name(names, empty, "not zero")
        _name(names, leak, "leak")
    _name(names, np.any(y < 0.0, axis=1), "negative weight")
    total = view.budget().sum_error[rows]
    _name(names, np.abs(y.sum(axis=1) - 1.0) > 2.0 * total, "not normalised")
    _rounding(view, rows, names, view.compared.ratio, "wrong weights")
    return names


def _inverted(view: View, rows: Codes, y: Floats) -> Bools:
    """Rows that show the softmax over the blocked keys although the largest score is allowed."""
    scores, mask = view.batch.scores64[rows], view.batch.mask[rows]
    finite = np.all(np.isfinite(scores), axis=1)
    allowed = np.where(mask, scores, -np.inf).max(axis=1, initial=-np.inf)
    blocked = np.where(mask, -np.inf, scores).max(axis=1, initial=-np.inf)
    others = ~mask & finite[:, None]
    inverse = view.truth.engine.weights(np.where(others, scores, 0.0), others).weights.value
    with np.errstate(invalid="ignore"):
        alike = np.all(np.abs(y - inverse) <= COARSE, axis=1)
    return np.asarray(finite & (allowed > blocked) & np.any(others, axis=1) & alike)


def _policy(view: View, rows: Codes, y: Floats) -> tuple[Bools, Bools]:
    """Which of two policies each row shows: a finite number in place of the scores (uniform), or a finite penalty added
    to them (the softmax of the raw scores). Nearest candidate, if it is nearer by far than the candidates are apart."""
    scores = view.batch.scores64[rows]
    finite = np.all(np.isfinite(scores), axis=1)
    if y.shape[1] < 2:  # on a single key all policies are one
        return np.zeros(len(rows), bool), np.zeros(len(rows), bool)
    all_keys = np.broadcast_to(finite[:, None], scores.shape)
    raw = view.truth.engine.weights(np.where(all_keys, scores, 0.0), np.array(all_keys)).weights.value
    flat = np.full_like(y, 1.0 / y.shape[1])
    with np.errstate(invalid="ignore"):
        to_flat = np.abs(y - flat).max(axis=1)
        to_raw = np.abs(y - raw).max(axis=1)
    apart = np.abs(raw - flat).max(axis=1)
    is_flat = (to_flat <= np.where(finite, apart / 4.0, COARSE)) | (to_flat <= 2.0 * view.batch.format.u)
    # Where no blocked key counts among the raw scores, their softmax is the right answer: it explains no leak.
    leaked = np.abs(np.where(view.batch.mask[rows], 0.0, y)).max(axis=1)
    is_raw = finite & (apart > COARSE) & (to_raw <= np.minimum(apart, leaked) / 4.0) & (to_raw < to_flat)
    return np.asarray(is_flat & ~is_raw), np.asarray(is_raw)


def derivative_fault(view: View, mode: Mode, side: Side, rows: Codes) -> Names:
    """Faults of a returned VJP or JVP, one name per row."""
    values = view.derivative_values(mode, side)
    assert values is not None
    y, mask, empty = values[rows], view.batch.mask[rows], view.batch.empty[rows]
    names: Names = np.full(len(rows), "", dtype=object)
    broken = ~np.all(np.isfinite(y), axis=1)
    _name(names, broken & view.forward_clean[rows], f"clean forward, NaN {mode.upper()}")
    _name(names, np.any(np.isnan(y), axis=1), "NaN")
    _name(names, broken, "infinity")
    _name(names, empty, "not zero")
    _name(names, np.any((y != 0.0) & ~mask, axis=1), "leak")
    true = view.truth.derivative(side).value[rows]
    budget = view.derivative_budget(mode, side)[rows]
    _name(names, np.all(y == 0.0, axis=1) & np.any(np.abs(true) > budget, axis=1), "zero derivative")
    w = view.truth.weights.weights.value[rows]
    uncentred = w * np.where(mask, view.truth.vectors[side][rows], 0.0)
    _name(names, np.all(np.abs(y - uncentred) <= budget, axis=1), "centring lost")
    _name(names, np.all(np.abs(y + true) <= budget, axis=1), "wrong sign")
    _rounding(view, rows, names, view.derivative_compared(mode, side).ratio, "wrong derivative")
    return names


def _rounding(view: View, rows: Codes, names: Names, ratio: Floats, otherwise: str) -> None:
    """Name what is left: a small excess, or a wrong value."""
    worst = np.where(view.batch.mask[rows], ratio[rows], 0.0).max(axis=1, initial=0.0)
    _name(names, worst < ROUNDING, ROUNDED)
    _name(names, names == "", otherwise)
