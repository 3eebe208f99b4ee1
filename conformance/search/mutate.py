"""Small changes of whole populations of rows, all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...spec.batch import Bools, Floats
from ...spec.formats import Format
from ..cases.build import rounded
from ..cases.scores import Generator
from ..minimise.rows import ARRAYS, Rows

Change = Callable[[Generator, Format, Rows], Rows]

LIMIT = 2.0**20
"""Offsets and scales lead no further than this: beyond it the rounding of the scores themselves is all there is."""


def mutated(rng: Generator, form: Format, rows: Rows, vectors: str | None) -> Rows:
    """Each row with one or two random changes; exact in the format, at least one key allowed.

    ``vectors`` names the vectors that may change too, ``cotangents`` or ``tangents``: half of the changes are theirs.
    """
    for share in (1.0, 0.4):
        rows = _chosen(rng, form, rows, vectors, rng.random(len(rows.scores)) < share)
    mask = rows.mask.copy()
    empty = ~mask.any(axis=1)
    mask[empty, rng.integers(0, mask.shape[1], int(empty.sum()))] = True
    # The limit under which every sum of products of the checks stays finite, as for the vectors of the other batches.
    most = min(form.max / (4.0 * rows.shape[1]), LIMIT)
    g, u = (rounded(np.clip(v, -most, most), form) for v in (rows.cotangents, rows.tangents))
    return Rows(rounded(rows.scores, form), mask, g, u, rows.order)


def _chosen(rng: Generator, form: Format, rows: Rows, vectors: str | None, hit: Bools) -> Rows:
    """One change for each row that is hit."""
    kinds = [*SCORES, *VECTORS] if vectors else list(SCORES)
    odds = np.r_[np.ones(len(SCORES)) / len(SCORES), np.ones(len(VECTORS)) / len(VECTORS) if vectors else []]
    which = np.where(hit, rng.choice(len(kinds), len(hit), p=odds / odds.sum()), -1)
    parts = {name: getattr(rows, name).copy() for name in ARRAYS[:-1]}
    for k, change in enumerate(kinds):
        mine = np.flatnonzero(which == k)
        if not len(mine):
            continue
        before = rows.take(mine)
        if k < len(SCORES):
            after = change(rng, form, before)
        else:
            assert vectors is not None
            # The changes of vectors are written for scores: they see the vector in their place.
            new = change(rng, form, replace(before, scores=getattr(before, vectors))).scores
            after = replace(before, cotangents=new) if vectors == "cotangents" else replace(before, tangents=new)
        for name, values in parts.items():
            values[mine] = getattr(after, name)
    return Rows(parts["scores"], parts["mask"], parts["cotangents"], parts["tangents"], rows.order)


def _some(rng: Generator, rows: Rows) -> Bools:
    """A few random entries of each row, at least one."""
    hit = rng.random(rows.shape) < 0.15
    hit[np.arange(len(hit)), rng.integers(0, rows.shape[1], len(hit))] = True
    return hit


def _one(rng: Generator, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(len(rows.scores)), rng.integers(0, rows.shape[1], len(rows.scores))


def _size(rng: Generator, rows: Rows, low: float, high: float) -> Floats:
    """Powers of ten, log-uniform, one for each row."""
    return np.asarray(10.0 ** rng.uniform(low, high, (len(rows.scores), 1)))


def ulps(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Move a few entries by a few units in the last place."""
    exponent = np.maximum(np.frexp(rows.scores)[1], form.emin + 1)
    step = np.ldexp(rng.integers(-4, 5, rows.shape).astype(np.float64), exponent - form.precision)
    return replace(rows, scores=np.where(_some(rng, rows), rows.scores + step, rows.scores))


def nudge(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Move a few entries by Gaussian steps of any size."""
    step = rng.standard_normal(rows.shape) * _size(rng, rows, -6.0, 1.0)
    return replace(rows, scores=np.where(_some(rng, rows), rows.scores + step, rows.scores))


def copy(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Copy one entry to another place."""
    (row, to), (_, source) = _one(rng, rows), _one(rng, rows)
    scores = rows.scores.copy()
    scores[row, to] = scores[row, source]
    return replace(rows, scores=scores)


def offset(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Add a constant to the row."""
    step = rng.standard_normal((len(rows.scores), 1)) * _size(rng, rows, -2.0, 3.0)
    moved = rows.scores + step
    return replace(rows, scores=np.where(np.abs(moved) < LIMIT, moved, rows.scores))


def scale(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Spread the row out, or draw it together."""
    scaled = rows.scores * 2.0 ** rng.uniform(-1.0, 1.0, (len(rows.scores), 1))
    return replace(rows, scores=np.where(np.abs(scaled) < LIMIT, scaled, rows.scores))


def gap(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Put one entry at a new distance below the largest allowed one."""
    top = np.where(rows.mask, rows.scores, -np.inf).max(axis=1)
    top = np.where(np.isfinite(top), top, 0.0)  # an earlier change may have blocked every key
    row, at = _one(rng, rows)
    scores = rows.scores.copy()
    scores[row, at] = top - _size(rng, rows, -5.0, 2.0)[:, 0]
    return replace(rows, scores=scores)


def toggle(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Allow a blocked key, or block an allowed one."""
    row, at = _one(rng, rows)
    mask = rows.mask.copy()
    mask[row, at] = ~mask[row, at]
    return replace(rows, mask=mask)


def thin(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Block about half of the keys, or allow all."""
    kept = rows.mask & (rng.random(rows.shape) < 0.5)
    return replace(rows, mask=np.where(rng.random((len(kept), 1)) < 0.7, kept, True))


def cross(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Take some keys, with all that belongs to them, from another row."""
    other = rows.take(rng.permutation(len(rows.scores)))
    hit = rng.random(rows.shape) < 0.3
    parts = [np.where(hit, getattr(other, n), getattr(rows, n)) for n in ("scores", "mask", "cotangents", "tangents")]
    return Rows(parts[0], parts[1], parts[2], parts[3], rows.order)


def flip(rng: Generator, form: Format, rows: Rows) -> Rows:
    """Change the sign of a few entries."""
    return replace(rows, scores=np.where(_some(rng, rows), -rows.scores, rows.scores))


def unit(rng: Generator, form: Format, rows: Rows) -> Rows:
    """A multiple of a unit vector."""
    row, at = _one(rng, rows)
    scores = np.zeros_like(rows.scores)
    scores[row, at] = _size(rng, rows, -2.0, 2.0)[:, 0]
    return replace(rows, scores=scores)


SCORES: tuple[Change, ...] = (ulps, ulps, nudge, nudge, copy, offset, scale, gap, toggle, thin, cross)
VECTORS: tuple[Change, ...] = (ulps, nudge, copy, offset, scale, flip, unit)
