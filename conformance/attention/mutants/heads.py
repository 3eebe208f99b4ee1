"""Heads, groups and batch entries are mixed up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy_heads import turned
from ....spec.batch import Array, Bools
from .kit import State, mutant, plain_output, plain_scores, plain_sum
from .mutant import AttentionMutant


def _first_of(axis: int) -> dict[str, Any]:
    def mask(m: Bools) -> Bools:
        return np.broadcast_to(np.take(m, [0], axis=axis), m.shape) if m.shape[axis] else m

    return {"mask": mask}


def _last_missing(x: Array, group: Any, groups: int) -> Array:
    """The gradients of groups without their last head, where they have several."""
    kept = [h for h, g in enumerate(group) if h + 1 == len(group) or group[h + 1] == g or list(group).count(g) == 1]
    if len(group) > groups:
        kept = [h for h in kept if h + 1 < len(group)]
    return plain_sum(x[:, kept], np.asarray(group)[kept], groups)


def _first_only(x: Array, group: Any, groups: int) -> Array:
    kept = [list(group).index(g) for g in range(groups)]
    return np.asarray(x[:, kept])


def _mean(x: Array, group: Any, groups: int) -> Array:
    return np.asarray(plain_sum(x, group, groups) / max(1, len(group) // max(1, groups))).astype(x.dtype)


def _unscaled_head(c: State) -> Array:
    scores = plain_scores(c)
    scores[:, -1:] = c.q[:, -1:] @ turned(c.k[:, -1:])
    return scores


def _past(c: State, start: int) -> Array:
    output = plain_output(c)
    output[:, :, start:] *= 1.0625
    return output


def _swapped_batch(c: State) -> Array:
    c.v = c.v[::-1]
    return plain_output(c)


def mutants() -> list[AttentionMutant]:
    """All of them."""
    return [
        mutant("groups-modulo", "M", "Head h reads group h % G.", group=lambda h, g: np.arange(h) % max(1, g)),
        mutant("groups-first", "M", "All heads read the first group.", group=lambda h, g: np.zeros(h, int)),
        mutant("group-misses-a-head", "M", "dk and dv of a group miss its last head.", group_sum=_last_missing),
        mutant("group-takes-one-head", "M", "dk and dv of a group are those of its first head.", group_sum=_first_only),
        mutant("group-means", "M", "dk and dv of a group are means over its heads.", group_sum=_mean),
        mutant("mask-of-first-batch-entry", "M", "The mask of the first batch entry serves all.", **_first_of(0)),
        mutant("mask-of-first-head", "M", "The mask of the first head serves all.", **_first_of(1)),
        mutant("mask-of-first-query", "M", "The mask of the first query serves all.", **_first_of(2)),
        mutant("mask-of-other-batch-entry", "M", "The masks of the batch are reversed.", mask=lambda m: m[::-1]),
        mutant("values-of-other-batch-entry", "M", "The values of the batch are reversed.", output=_swapped_batch),
        mutant("last-head-unscaled", "M", "The scores of the last head are not scaled.", scores=_unscaled_head),
        mutant(
            "wrong-past-32-queries", "I", "Outputs past the 32nd query are too large.", output=lambda c: _past(c, 32)
        ),
        mutant(
            "wrong-past-64-queries", "I", "Outputs past the 64th query are too large.", output=lambda c: _past(c, 64)
        ),
    ]
