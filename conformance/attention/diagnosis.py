"""Name a fault of attention in a word or two. A diagnosis explains a verdict; it never makes one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...spec.batch import Bools, Floats
from ..diagnosis import ROUNDED, ROUNDING
from ..judgement import Codes, Comparison, Names
from .judgement import Quantity, flat

if TYPE_CHECKING:
    from .view import AttentionView

COARSE = 2.0**-5
"""Outputs that are no further apart than this, in units of the largest value, show one policy."""


def fault(view: AttentionView, quantity: Quantity, comparison: Comparison, vectors: Codes) -> Names:
    """One name for each of the given vectors of a returned quantity."""
    values = view.weights if quantity == "weights" else view.values(quantity)
    assert values is not None
    rows = flat(values)[vectors]
    names: Names = np.full(len(vectors), "", dtype=object)

    def name(where: Bools, text: str) -> None:
        names[where & (names == "")] = text

    broken = ~np.all(np.isfinite(rows), axis=1)
    if quantity not in ("output", "weights"):
        output = view.values("output")
        if output is not None and np.isfinite(output).all():
            name(broken, f"clean forward, NaN {'JVP' if quantity == 'tangent' else 'VJP'}")
    name(np.any(np.isnan(rows), axis=1), "NaN")
    name(broken, "infinity")
    of_queries = quantity in ("output", "dq", "tangent", "weights")
    silent = (view.empty if of_queries else view.problem.unseen.reshape(-1))[vectors]
    if quantity == "output":
        stale = view.contract.kind in ("nan", "fallback")
        name(silent & np.all(rows == 0.0, axis=1), "declaration stale" if stale else "empty row")
        for text, candidate in _policies(view).items():
            near = flat(candidate)[vectors]
            scale = np.abs(near).max(axis=1, initial=0.0) + 1e-300
            name(np.abs(rows - near).max(axis=1, initial=0.0) <= COARSE * scale, text)
    name(silent, "not zero" if of_queries else "leak")
    true = flat(view.known.exact(quantity).value)[vectors]
    budget = flat(view.budget(quantity))[vectors]
    if quantity not in ("output", "weights"):
        name(np.all(rows == 0.0, axis=1) & np.any(np.abs(true) > budget, axis=1), "zero derivative")
        name(np.all(np.abs(rows + true) <= budget, axis=1), "wrong sign")
        scale = view.problem.scale
        if scale not in (0.0, 1.0):
            name(np.all(np.abs(rows * scale - true) <= 2.0 * budget, axis=1), "scale missing")
    worst = comparison.ratio[vectors].max(axis=1, initial=0.0)
    name(worst < ROUNDING, ROUNDED)
    name(names == "", "wrong output" if quantity == "output" else f"wrong {quantity}")
    return names


def _policies(view: AttentionView) -> dict[str, Floats]:
    """What some faults give for the output, in float64: the values' mean, the mask ignored, the mask inverted."""
    p = view.problem
    heads, groups = p.sizes[1], p.sizes[2]
    k, v = (np.repeat(p.wide(name), heads // groups, axis=1) for name in ("k", "v"))
    scores = p.scale * (p.wide("q") @ k.swapaxes(-1, -2))
    if not scores.size:
        return {}
    mean = np.broadcast_to(v.mean(axis=2, keepdims=True), (*scores.shape[:3], v.shape[3]))
    every = np.ones(scores.shape, bool)
    return {
        "mean of values": mean,
        "mask ignored": _attend(scores, every, v),
        "inverted mask": _attend(scores, ~p.full_mask, v),
    }


def _attend(scores: Floats, mask: Bools, v: Floats) -> Floats:
    with np.errstate(all="ignore"):
        top = np.where(mask, scores, -np.inf).max(axis=-1, keepdims=True)
        e = np.where(mask, np.exp(scores - np.where(np.isfinite(top), top, 0.0)), 0.0)
        total = e.sum(axis=-1, keepdims=True)
        result: Floats = np.where(total > 0.0, e / np.where(total > 0.0, total, 1.0), 0.0) @ v
    return result
