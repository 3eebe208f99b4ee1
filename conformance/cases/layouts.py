"""Rows handed over as arrays of rank 1 to 4, with the softmax along any axis, in any order in memory."""

from __future__ import annotations

import numpy as np

from ...spec.batch import Batch, Bools
from ...spec.formats import FORMATS
from ...spec.layout import Layout
from . import masks
from .scores import Generator, rotating
from .vectors import vectors

EMPTY_EVERY = 5
"""One row in so many allows no key, in layouts whose rows have masks of their own."""

COVERING: tuple[Layout, ...] = (
    Layout((13, 37), 0, (13, 37)),
    Layout((3, 13, 19), 1, (3, 13, 1), "strided"),
    Layout((3, 7, 2, 5), -3, (7, 1, 5), "reversed"),
    Layout((37, 11), -1, (11,), "transposed"),
    Layout((9, 5, 7), 0, (5, 7), "transposed"),
    Layout((13,), 0, (13,), "strided"),
    Layout((2, 3, 7, 9), -1, (2, 1, 1, 9), "repeated"),
    Layout((5, 1, 6), 1, (5, 1, 6)),
    Layout((4, 0), -1, (4, 0)),
)
"""Each rank, the first, a middle and the last axis by either sign, each order in memory, masks of full shape, of lower
rank and shared along the softmax axis or others, lengths 0 and 1; no length is a power of two."""

FEW = COVERING[:3]
"""What a smoke run judges."""

FURTHER: tuple[Layout, ...] = (
    Layout((131,), -1, (1,)),
    Layout((67, 131), -2, (67, 1), "reversed"),
    Layout((29, 67), 1, (29, 67), "strided"),
    Layout((6, 33, 40), -2, (6, 33, 40), "transposed"),
    Layout((64, 4, 32), 0, (64, 1, 32)),
    Layout((5, 4, 3), 2, (5, 1, 3), "reversed"),
    Layout((17, 2, 3, 5), 0, (17, 2, 3, 5), "strided"),
    Layout((2, 3, 19, 21), 2, (2, 1, 19, 21)),
    Layout((2, 3, 5, 17), 3, (5, 17), "transposed"),
    Layout((2, 3, 5, 17), -1, (2, 3, 5, 17), "contiguous"),
    Layout((2, 0, 3), 1, (0, 1)),
)
"""What a deep run adds."""


def build_layout(layout: Layout, key: str, seed: tuple[int, ...], dtype: str) -> Batch:
    """The rows of one layout as a batch, of one family that names the layout; the same arguments give the same bits."""
    form = FORMATS[dtype]
    rng = np.random.default_rng(seed)
    rows, keys = layout.rows, layout.keys
    mask = layout.shared_mask(_mask(rng, rows, keys))
    scores, _ = rotating(rng, form, rows, keys)
    g, u = vectors(rng, form, mask), vectors(rng, form, mask)

    def stored(values: np.ndarray) -> np.ndarray:
        return np.clip(values, -form.max, form.max).astype(form.dtype)

    return Batch(
        key=key,
        dtype=dtype,
        scores=layout.shared_scores(stored(scores)),
        mask=mask,
        cotangents=stored(g),
        tangents=stored(u),
        family=np.zeros(rows, np.int64),
        families=(str(layout),),
        layout=layout,
    )


def _mask(rng: Generator, rows: int, keys: int) -> Bools:
    """Half-blocked, full and empty rows in turn. The first row, which stands for all where a mask is shared, is none of
    the last."""
    if not keys:
        return np.zeros((rows, 0), bool)
    mask = masks.half(rng, rows, keys)
    row = np.arange(rows)
    mask[row % 3 == 2] = True
    mask[row % EMPTY_EVERY == 3] = False
    return mask
