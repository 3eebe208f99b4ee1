"""What an answer shows, by name: pure functions over the weights of one row.

A name is given by comparing with what each policy would give, computed in float64. The candidates lie far apart; how
near counts as equal is eight roundings of the format (of float32 for float64, where some kernels compute in that). No
accuracy is judged here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...spec.attention.problem import Alignment
from ...spec.batch import Array, Bools, Floats
from ...spec.formats import FORMATS
from ..attention.masks import causal

NAN, ZERO, OTHER = "NaN", "zero", "other"


def near(dtype: str) -> float:
    """How far a weight may lie from a candidate that it is named after.

    >>> near("float32") == near("float64") == 2.0**-21
    True
    """
    return 8.0 * max(FORMATS[dtype].u, FORMATS["float32"].u)


def softmax(scores: Floats, mask: Bools | None = None) -> Floats:
    """The masked softmax of one row in float64; zeros where nothing is allowed.

    >>> softmax(np.array([0.0, 5.0]), np.array([True, False])).tolist()
    [1.0, 0.0]
    """
    mask = np.ones(scores.shape, np.bool_) if mask is None else mask
    if not mask.any():
        return np.zeros(scores.shape)
    e = np.where(mask, np.exp(np.where(mask, scores, 0.0) - scores[mask].max()), 0.0)
    return np.asarray(e / e.sum())


def nearest(row: Floats, candidates: Mapping[str, Floats], within: float) -> str | None:
    """The name of the nearest candidate whose entries all lie within that distance; None where there is none."""
    apart = {name: float(np.max(np.abs(row - c), initial=0.0)) for name, c in candidates.items()}
    close = {name: far for name, far in apart.items() if far <= within}
    return min(close, key=lambda name: close[name]) if close else None


def _special(row: Floats) -> str | None:
    lost = np.isnan(row)
    if lost.any():
        return NAN if lost.all() else "partly NaN"
    if not np.isfinite(row).all():
        return "infinite"
    return ZERO if not row.any() else None


def empty_row(weights: Array, scores: Floats, dtype: str) -> str:
    """What a row without an allowed key gives, from its weights: ``zero`` (exactly), ``NaN``, ``partly NaN``,
    ``infinite``, ``uniform``, ``raw softmax`` (the mask did nothing), ``weight 1 each``, ``one key`` or ``other``.

    ``scores``: those of the row, not all equal.

    >>> empty_row(np.full(3, 1 / 3), np.array([0.0, 1.0, 2.0]), "float32")
    'uniform'
    """
    row = weights.astype(np.float64)
    if special := _special(row):
        return special
    keys = row.size
    candidates = {
        "uniform": np.full(keys, 1.0 / keys),
        "raw softmax": softmax(scores),
        "weight 1 each": np.ones(keys),
    }
    if found := nearest(row, candidates, near(dtype)):
        return found
    return "one key" if np.count_nonzero(row) == 1 and row.max() == 1.0 else OTHER


def infinite_row(weights: Array, mask: Bools, dtype: str) -> str:
    """What a row gives whose allowed scores are all ``-inf`` while its blocked scores are finite: ``NaN`` (at all
    allowed keys), ``zero``, ``uniform allowed``, ``uniform all``, ``blocked keys`` (they carry weight), or ``other``.

    >>> infinite_row(np.array([0.5, 0.5, 0.0]), np.array([True, True, False]), "float32")
    'uniform allowed'
    """
    row = weights.astype(np.float64)
    if np.isnan(row[mask]).all():
        return NAN
    if special := _special(row):
        return special
    over_allowed, over_all = mask / mask.sum(), np.full(mask.size, 1.0 / mask.size)
    if found := nearest(row, {"uniform allowed": over_allowed, "uniform all": over_all}, near(dtype)):
        return found
    return "blocked keys" if row[~mask].any() else OTHER


def mask_reading(weights: Array, scores: Floats, mask: Bools, dtype: str) -> str:
    """How the mask was read, from one row with a mask that is neither full nor empty: ``allowed`` and ``blocked``
    (what True means), ``ignored``, ``added`` or ``multiplied`` (to the scores, as numbers), or ``other``.

    >>> mask_reading(np.array([0.0, 1.0]), np.zeros(2), np.array([True, False]), "float32")
    'blocked'
    """
    row = weights.astype(np.float64)
    if special := _special(row):
        return special
    candidates = {
        "allowed": softmax(scores, mask),
        "blocked": softmax(scores, ~mask),
        "ignored": softmax(scores),
        "added": softmax(scores + mask),
        "multiplied": softmax(scores * mask),
    }
    return nearest(row, candidates, near(dtype)) or OTHER


def leak(weights: Array, mask: Bools) -> float:
    """The largest weight of a blocked key by absolute value; 0 where all are exactly zero, NaN where one is NaN."""
    return float(np.max(np.abs(weights.astype(np.float64)[~mask]), initial=0.0))


def derivative(values: Array) -> str:
    """What the derivative of an empty row gives: ``zero``, ``NaN`` (somewhere), or ``other``.

    >>> derivative(np.array([0.0, -0.0])), derivative(np.array([0.0, np.nan])), derivative(np.array([1.0]))
    ('zero', 'NaN', 'other')
    """
    wide = values.astype(np.float64)
    return NAN if np.isnan(wide).any() else OTHER if wide.any() else ZERO


def finite_reading(empty: str, leaks: bool) -> str:
    """What a finite constant in place of ``-inf`` amounts to, from the empty row and from whether a blocked key of a
    partial row ever carries weight: ``mask`` (taken for exclusion), ``shift`` (added, as arithmetic says),
    ``replacement`` (it takes the scores' place, or absorbs them), ``overflow`` (a NaN), or what else was seen.

    >>> finite_reading("raw softmax", True), finite_reading("zero", False)
    ('shift', 'mask')
    """
    if empty == ZERO:
        return "mask with leaks" if leaks else "mask"
    return {"raw softmax": "shift", "uniform": "replacement", NAN: "overflow", "partly NaN": "overflow"}.get(
        empty, empty
    )


def alignment(attended: Bools) -> str:
    """The causal alignment of a pattern of attended keys, shape ``(queries, keys)``: ``top-left``, ``bottom-right``,
    ``both`` (as where there are as many queries as keys), ``none`` (all keys), or ``other``.

    Queries to which an alignment allows no key are not looked at: what an empty row gives is another question.

    >>> alignment(np.array([[True, False, False]])), alignment(np.array([[True, True, True]]))
    ('top-left', 'bottom-right')
    """
    queries, keys = attended.shape
    fits: list[str] = []
    corners: tuple[Alignment, ...] = ("top-left", "bottom-right")
    for name in corners:
        pattern = causal(queries, keys, name)
        rows = pattern.any(axis=1)
        if np.array_equal(attended[rows], pattern[rows]):
            fits.append(name)
    if len(fits) == 1:
        return fits[0]
    return "both" if fits else "none" if attended.all() else OTHER


def same_bits(a: Array, b: Array) -> Bools:
    """Entry by entry, whether two arrays hold the same bits; one NaN equals another."""
    bits: Any = np.dtype(f"u{a.dtype.itemsize}")
    with np.errstate(all="ignore"):
        both = np.isnan(a.astype(np.float64)) & np.isnan(b.astype(np.float64))
    return np.asarray((np.ascontiguousarray(a).view(bits) == np.ascontiguousarray(b).view(bits)) | both)
