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
    "small",
)
"""Kinds of vectors, in the order in which rows take them, three rows each."""

HUGE = 2.0**400
"""Largest entry of a vector: products of two stay finite in float64, in which the budgets are computed."""


def vectors(rng: Generator, form: Format, mask: Bools) -> Floats:
    """Gaussian, one-hot, large-plus-small, wide-ranging, constant, zero, huge and small vectors; shape and order of the
    mask's rows.

    The sizes keep every sum of products finite in the storage format, and every product of two vectors in float64.
    """
    rows, keys = mask.shape
    g = rng.standard_normal((rows, keys))
    if not keys:
        return g
    row = np.arange(rows)
    kind = np.array(KINDS)[(row // 3) % len(KINDS)]
    # A sum of ``keys`` numerators, each at most 1, times entries of this size stays finite in the storage format.
    most = form.max / (4.0 * keys)
    large = min(1000.0 if form.precision >= 24 else 100.0, most / 1.25)
    huge = min(most / 2.0, HUGE)
    # Most one-hot vectors stand at an allowed key; at a blocked one the derivative is exactly zero.
    hot = kind == "one-hot"
    order = rng.random((int(hot.sum()), keys))
    at = np.where(rng.random(len(order)) < 0.8, (order + mask[hot]).argmax(axis=1), order.argmax(axis=1))
    g[hot] = 0.0
    g[row[hot], at] = 1.0
    g[kind == "large plus small"] += large
    wide = kind == "wide"
    g[wide] *= 2.0 ** rng.integers(-6, 6, (int(wide.sum()), keys))
    g[kind == "constant"] = 3.0
    # Far below what anyone would call a gradient, and far above the smallest normal number.
    g[kind == "small"] *= 2.0 ** (form.emin // 2)
    g[kind == "zero"] = 0.0
    g[kind == "huge"] = np.clip(g[kind == "huge"], -3.0, 3.0) / 3.0 * huge
    np.clip(g, -most, most, out=g)
    return g
