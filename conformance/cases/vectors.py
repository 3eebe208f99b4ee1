"""Cotangents and tangents.

Few are constant, and never all: a constant lies in the null space of the Jacobian, where a backward pass that returns
zeros, or forgets to centre by ``<w, g>``, looks right.
"""

from __future__ import annotations

import numpy as np

from ...spec.batch import Bools, Floats
from ...spec.formats import Format
from .scores import Generator

KINDS = (
    "gaussian",
    "one-hot",
    "gaussian",
    "large plus small",
    "wide",
    "one-hot",
    "huge",
    "constant",
    "gaussian",
    "zero",
)
"""Kinds of vectors, in the order in which rows take them, three rows each."""


def vectors(rng: Generator, form: Format, mask: Bools) -> Floats:
    """Gaussian, one-hot, large-plus-small, wide-ranging, constant, zero and huge vectors; shape and order of the mask's
    rows.

    The sizes keep every sum of products finite in the storage format, and every product of two vectors in float64.
    """
    rows, keys = mask.shape
    g = rng.standard_normal((rows, keys))
    if not keys:
        return g
    row = np.arange(rows)
    kind = np.array(KINDS)[(row // 3) % len(KINDS)]
    large = 1000.0 if form.precision >= 24 else 100.0
    # Most one-hot vectors stand at an allowed key; at a blocked one the derivative is exactly zero.
    at = np.where(rng.random(rows) < 0.8, (rng.random((rows, keys)) + mask).argmax(axis=1), rng.integers(0, keys, rows))
    one_hot = np.zeros_like(g)
    one_hot[row, at] = 1.0
    huge = min(form.max / (8.0 * keys), 2.0**400)
    chosen = {
        "one-hot": one_hot,
        "large plus small": large + g,
        "wide": g * 2.0 ** rng.integers(-6, 6, (rows, keys)),
        "constant": np.full_like(g, 3.0),
        "zero": np.zeros_like(g),
        "huge": np.clip(g, -3.0, 3.0) / 3.0 * huge,
    }
    for name, values in chosen.items():
        g = np.where((kind == name)[:, None], values, g)
    return g
