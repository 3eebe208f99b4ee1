"""What a backend does where the theorems do not speak: reported as a fact, judged only where it was promised."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..judgement import Codes, Names, Outcome, from_rows
from ..view import View

VISIBLE = "allowed_nan_visible"


def fact(view: View, family: str) -> str:
    """What the weights of a family of non-real rows look like, in a few words."""
    if view.values is None:
        return "error"
    rows = ~view.batch.real & (view.batch.family == view.batch.families.index(family))
    y, mask = view.values[rows], view.batch.mask[rows]
    if not len(y):
        return ""
    kinds = {
        "NaN in the whole row": np.isnan(y).all(axis=1),
        "NaN in part of the row": np.isnan(y).any(axis=1),
        "zero": (y == 0.0).all(axis=1),
        "weight on blocked keys": ((y != 0.0) & ~mask).any(axis=1),
        "finite": np.isfinite(y).all(axis=1),
    }
    left = np.ones(len(y), bool)
    seen = []
    for name, hit in kinds.items():
        if (left & hit).any():
            seen.append(name)
        left &= ~hit
    return " or ".join(seen)


def check(view: View) -> Iterator[Outcome]:
    """``allowed NaN visible``: a NaN in an allowed place reaches that row's weights. Judged where it is promised."""
    if view.values is None or "allowed nan" not in view.batch.families:
        return
    nan = (view.batch.mask & np.isnan(view.batch.scores64)).any(axis=1)
    hidden = nan & ~np.isnan(view.values).any(axis=1)
    promised = "allowed-nan-visible" in view.promises
    none = np.zeros(len(nan), bool)

    def diagnose(rows: Codes) -> Names:
        return np.full(len(rows), "NaN swallowed", dtype=object)

    yield from_rows(
        (VISIBLE,),
        "weights",
        hidden.astype(np.float64),
        np.zeros(len(nan)),
        hidden,
        nan if promised else none,
        diagnose=diagnose,
        returned=view.values,
        tier=view.tier("forward"),
        unmet=none if promised else nan,
        fact="" if promised else ("NaN swallowed" if hidden.any() else "NaN visible"),
    )
