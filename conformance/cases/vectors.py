"""Cotangents and tangents.

Never a constant vector alone: it lies in the null space of the Jacobian, where a backward pass that returns zeros, or
forgets to centre by ``<w, g>``, looks right.
"""

from __future__ import annotations

import numpy as np

from ...spec.batch import Bools, Floats
from ...spec.formats import Format
from .scores import Generator


def vectors(rng: Generator, form: Format, mask: Bools) -> Floats:
    """Gaussian, one-hot, large-plus-small and wide-ranging vectors in turn; shape and order of the mask's rows.

    The sizes keep every sum of products finite in the storage format.
    """
    rows, keys = mask.shape
    g = rng.standard_normal((rows, keys))
    if not keys:
        return g
    row = np.arange(rows)
    large = 1000.0 if form.precision >= 24 else 100.0
    kind = (row // 3) % 4
    one_hot = np.zeros_like(g)
    # Most one-hot vectors stand at an allowed key; at a blocked one the derivative is exactly zero.
    at = np.where(rng.random(rows) < 0.8, (rng.random((rows, keys)) + mask).argmax(axis=1), rng.integers(0, keys, rows))
    one_hot[row, at] = 1.0
    g = np.where((kind == 1)[:, None], one_hot, g)
    g = np.where((kind == 2)[:, None], large + g, g)
    return np.where((kind == 3)[:, None], g * 2.0 ** rng.integers(-6, 6, (rows, keys)), g)
