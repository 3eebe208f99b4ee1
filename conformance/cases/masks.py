"""Mask families. True = allowed; shape ``(rows, keys)``."""

from __future__ import annotations

import numpy as np

from ...spec.batch import Bools
from .scores import Generator


def mixed(rng: Generator, rows: int, keys: int) -> Bools:
    """Full, half, mostly blocked and nearly full masks, prefixes and runs in turn, none of them empty.

    A prefix is what a padding or a causal mask leaves of a row, a run (often to the end) what a window or padding on
    the left does. The turn is such that every fourteenth row, of the same shape of scores, gets another kind.
    """
    row = np.arange(rows)
    kind = (row + 3 * (row // 14)) % 6
    share = np.array([1.1, 0.5, 2.5 / max(keys, 1), 0.9, 0.0, 0.0])[kind, None]
    mask = rng.random((rows, keys)) < share
    ends = np.sort(rng.integers(0, keys, (rows, 2)), axis=1)
    ends[kind == 4, 0] = 0
    ends[(kind == 5) & (rng.random(rows) < 0.5), 1] = keys - 1
    key = np.arange(keys)
    mask |= (kind >= 4)[:, None] & (key >= ends[:, :1]) & (key <= ends[:, 1:])
    lone = ~mask.any(axis=1)
    mask[lone, rng.integers(0, keys, int(lone.sum()))] = True
    return np.asarray(mask)


def half(rng: Generator, rows: int, keys: int) -> Bools:
    """Each key allowed with probability one half, at least one allowed and, for two keys or more, one blocked."""
    mask = rng.random((rows, keys)) < 0.5
    row = np.arange(rows)
    allowed = rng.integers(0, keys, rows)
    mask[row, (allowed + 1) % keys] = False
    mask[row, allowed] = True
    return np.asarray(mask)


def single(rng: Generator, rows: int, keys: int) -> Bools:
    """One allowed key: at either end in some rows, anywhere in the others."""
    where = rng.integers(0, keys, rows)
    where[::5], where[1::5] = 0, keys - 1
    mask = np.zeros((rows, keys), bool)
    mask[np.arange(rows), where] = True
    return mask


def causal(rows: int, keys: int) -> Bools:
    """Row ``r`` of the causal mask ``j <= i`` with ``i = r mod keys`` (Lean ``causalMask_get2``)."""
    return np.asarray(np.arange(keys)[None, :] <= (np.arange(rows) % keys)[:, None])


def prefix(rng: Generator, rows: int, keys: int, length: int) -> Bools:
    """Allowed keys among the first ``length`` only, at least one of them."""
    mask = np.zeros((rows, keys), bool)
    mask[:, :length] = mixed(rng, rows, length)
    return mask
