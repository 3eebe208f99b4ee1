"""Shrink a row: fewest keys first, then plainer numbers, as long as it fails.

Variants are judged many at a time. A step takes the plainest variant that still fails, so the order in which steps are
tried decides nothing but the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np

from ...spec.batch import Floats
from ...spec.formats import FORMATS
from ..cases.build import rounded
from ..judgement import Codes
from .rows import Rows, cost, joined
from .trial import TOGETHER, Trial

LENGTHS = (1, 2, 3, 4, 6, 8, 12, 16, 17, 24, 32, 48, 64, 96, 128, 256, 512)
"""Lengths at which subsets of the keys are tried, shortest first. 17 is the first that has a tail to truncate."""

SOME = 2 * TOGETHER
"""Subsets that are tried at one length."""


def simplest(row: Rows, trial: Trial, important: Codes) -> Rows:
    """The plainest row that was found to fail, starting from one that does; ``important`` keys are kept first."""
    row = _shortened(row, trial, important)
    while trial.left > 0:
        before = row
        for propose in (_fewer, _simpler_rows, _simpler_numbers):
            row = propose(row, trial)
        if row is before:
            break
    return row


def _first(row: Rows, candidates: Rows, trial: Trial, *, shorter: bool = False) -> Rows | None:
    """The plainest candidate that fails; those that are no plainer than the row itself are not tried."""
    costs = cost(candidates)
    order = np.argsort(costs, kind="stable")
    if not shorter:
        order = order[costs[order] < cost(row)[0]]
    for start in range(0, len(order), TOGETHER):
        some = order[start : start + TOGETHER]
        if trial.left <= 0:
            return None
        hits = np.flatnonzero(trial.failing(candidates.take(some)))
        if len(hits):
            return candidates.take(some[hits[:1]])
    return None


def _shortened(row: Rows, trial: Trial, important: Codes) -> Rows:
    """The shortest failing row that some of the keys make."""
    keys = row.shape[1]
    for length in LENGTHS:
        if length >= keys:
            break
        found = _first(row, row.repeated(SOME).keeping(_subsets(keys, length, important)), trial, shorter=True)
        if found is not None:
            return found
    return row


def _subsets(keys: int, length: int, important: Codes) -> Codes:
    """``SOME`` ascending choices of keys: all there are, or windows, the most important keys, and random ones."""
    if comb(keys, length) <= SOME:
        chosen = list(combinations(range(keys), length))
        return np.array((chosen * SOME)[:SOME])
    rng = np.random.default_rng((keys, length))
    starts = np.linspace(0, keys - length, SOME // 4).astype(int)
    windows = [np.arange(a, a + length) for a in starts]
    leading = important[: max(length, 1)]
    # The first few important keys, then random ones: what makes a row fail is often one key and the maximum.
    random = []
    for k in range(SOME - len(windows)):
        kept = leading[: min(length, 1 + k % 3)] if k else leading
        rest = rng.permutation(np.setdiff1d(np.arange(keys), kept))
        random.append(np.concatenate([kept, rest])[:length])
    return np.sort(np.array([*windows, *random]), axis=1)


def _fewer(row: Rows, trial: Trial) -> Rows:
    """Delete one key, as often as that leaves a failing row."""
    while (keys := row.shape[1]) > 1 and trial.left > 0:
        left = np.array([np.delete(np.arange(keys), i) for i in range(keys)])
        found = _first(row, row.repeated(keys).keeping(left), trial, shorter=True)
        if found is None:
            break
        row = found
    return row


def _simpler_rows(row: Rows, trial: Trial) -> Rows:
    """Change many numbers at once, or the mask."""
    variants = list(_whole(row, trial.dtype))
    same_kind = [v for v in variants if v.mask.any() == row.mask.any()]
    found = _first(row, joined(same_kind), trial) if same_kind else None
    return found if found is not None else row


def _whole(row: Rows, dtype: str) -> Iterator[Rows]:
    s, m, g, u = row.scores, row.mask, row.cotangents, row.tangents
    each = np.arange(row.shape[1])
    finite = np.where(m & np.isfinite(s), s, -np.inf).max(initial=-np.inf)
    with np.errstate(all="ignore"):
        shifted = np.where(m, s - finite, s) if np.isfinite(finite) else s
    for scores in (s, np.where(m, s, 0.0), shifted, np.where(m, shifted, 0.0)):
        for form in (*_ROUND, _zero):
            with np.errstate(all="ignore"):
                new = exact(np.where(np.isfinite(scores), form(scores), scores), dtype)
            yield replace(row, scores=new)
    yield replace(row, mask=np.ones_like(m))
    for last in (each[m[0]].max(initial=-1), each[-1] - 1):
        yield replace(row, mask=m | (each <= last))
    for i in np.flatnonzero(~m[0]).tolist():
        yield replace(row, mask=m | (each == i))
    for i in each.tolist():
        unit = np.where(each == i, 1.0, 0.0)[None]
        if g.any():
            yield replace(row, cotangents=unit)
        if u.any():
            yield replace(row, tangents=unit)
    for form in (*_ROUND, _sign):
        with np.errstate(all="ignore"):
            yield replace(row, cotangents=exact(form(g), dtype))
            yield replace(row, tangents=exact(form(u), dtype))
    yield replace(row, cotangents=np.where(m, g, 0.0), tangents=np.where(m, u, 0.0))


def _significant(x: Floats, digits: int) -> Floats:
    size = np.floor(np.log10(np.where(x == 0.0, 1.0, np.abs(x))))
    unit = 10.0 ** (size - digits + 1)
    return np.asarray(np.rint(x / unit) * unit)


def _zero(x: Floats) -> Floats:
    return np.zeros_like(x)


def _sign(x: Floats) -> Floats:
    return np.asarray(np.sign(x))


_ROUND: tuple[Callable[[Floats], Floats], ...] = (
    np.rint,
    np.trunc,
    lambda x: np.rint(x * 2.0) / 2.0,
    lambda x: np.rint(x * 8.0) / 8.0,
    lambda x: _significant(x, 1),
    lambda x: _significant(x, 2),
    lambda x: _significant(x, 3),
    lambda x: np.rint(x / 2.0),
)


def _simpler_numbers(row: Rows, trial: Trial) -> Rows:
    """Change single numbers; what works for one key is also tried for several at once."""
    for name in ("scores", "cotangents", "tangents"):
        values = getattr(row, name)
        candidates = []
        for new in _plainer(values[0], trial.dtype):
            for i in np.flatnonzero(~_same(new, values[0])).tolist():
                candidates.append((i, new[i]))
        if not candidates:
            continue
        many = _changed(row, name, [[c] for c in candidates])
        gain = cost(row)[0] - cost(many)
        order = [k for k in np.argsort(-gain, kind="stable").tolist() if gain[k] > 0.0][: 2 * TOGETHER]
        works = []
        for start in range(0, len(order), TOGETHER):
            some = order[start : start + TOGETHER]
            works += [k for k, hit in zip(some, trial.failing(many.take(np.array(some))), strict=True) if hit]
        best: dict[int, int] = {}
        for k in works:
            best.setdefault(candidates[k][0], k)
        if best:
            steps = [candidates[k] for k in best.values()]
            together = [steps[:count] for count in range(len(steps), 0, -1)] + [steps[i:] for i in range(len(steps))]
            found = _first(row, _changed(row, name, together[:TOGETHER]), trial)
            row = found if found is not None else row
    return row


def _changed(row: Rows, name: str, changes: list[list[tuple[int, float]]]) -> Rows:
    many = row.repeated(len(changes))
    values = getattr(many, name)
    for r, steps in enumerate(changes):
        for i, x in steps:
            values[r, i] = x
    return many


def _plainer(x: Floats, dtype: str) -> Iterator[Floats]:
    """Simpler values for every entry of a row, some of which are no simpler; finite, and exact in the dtype."""
    with np.errstate(all="ignore"):
        for value in (0.0, 1.0, -1.0, 2.0, 10.0, -10.0, 100.0, -100.0):
            yield np.full_like(x, value)
        finite = np.where(np.isfinite(x), x, 0.0)
        for form in _ROUND:
            yield exact(form(finite), dtype)
        for share in (0.25, 0.75):
            yield exact(np.rint(finite * share), dtype)
        yield exact(finite - np.sign(finite), dtype)


def _same(a: Floats, b: Floats) -> np.ndarray:
    return np.asarray(((a == b) & (np.signbit(a) == np.signbit(b))) | ((a != a) & (b != b)))


def exact(values: Floats, dtype: str) -> Floats:
    """The nearest numbers of the dtype, as float64; what would overflow stays within the range."""
    return rounded(values, FORMATS[dtype]) + 0.0  # which makes -0 a plain 0
