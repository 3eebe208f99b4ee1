"""Mask families. True = allowed; shape ``(rows, keys)``."""

from __future__ import annotations

import numpy as np

from ...spec.batch import Bools
from .scores import Generator


def mixed(rng: Generator, rows: int, keys: int) -> Bools:
    """Full, half, mostly blocked and nearly full masks in turn, none of them empty."""
    share = np.array([1.1, 0.5, 2.5 / max(keys, 1), 0.9])[(np.arange(rows) // 14) % 4, None]
    mask = rng.random((rows, keys)) < share
    mask[np.arange(rows), rng.integers(0, keys, rows)] = True
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
