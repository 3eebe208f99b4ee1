"""Problems made of others: a single head, the first queries, more keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...spec.attention.problem import Problem
from ...spec.batch import Array, Bools

EXTRA = 3
"""How many blocked keys are appended."""


def alone(problem: Problem, entry: int, head: int) -> Problem:
    """One head of one batch entry, with the keys that it reads."""
    _, heads, groups, *_ = problem.sizes
    group = head // (heads // groups)

    def queries(array: Array) -> Array:
        return array[entry : entry + 1, head : head + 1].copy()

    def keys(array: Array) -> Array:
        return array[entry : entry + 1, group : group + 1].copy()

    dq, dk, dv = problem.tangents
    return replace(
        problem,
        key=f"{problem.key}, entry {entry}, head {head}, alone",
        q=queries(problem.q),
        k=keys(problem.k),
        v=keys(problem.v),
        mask=problem.full_mask[entry : entry + 1, head : head + 1].copy(),
        cotangent=queries(problem.cotangent),
        tangents=(queries(dq), keys(dk), keys(dv)),
    )


def prefix(problem: Problem, count: int) -> Problem:
    """The first ``count`` queries and keys; with a causal mask the queries see what they saw."""
    dq, dk, dv = problem.tangents

    def first(array: Array) -> Array:
        return array[:, :, :count].copy()

    return replace(
        problem,
        key=f"{problem.key}, the first {count}",
        q=first(problem.q),
        k=first(problem.k),
        v=first(problem.v),
        mask=problem.mask[:, :, :count, :count].copy(),
        cotangent=first(problem.cotangent),
        tangents=(first(dq), first(dk), first(dv)),
    )


def padded(problem: Problem) -> Problem:
    """The problem with :data:`EXTRA` blocked keys behind the others, larger than they are."""
    dq, dk, dv = problem.tangents

    def more(array: Array) -> Array:
        return np.concatenate([array, 8 * array[:, :, :1].repeat(EXTRA, axis=2)], axis=2).astype(array.dtype)

    mask: Bools = np.concatenate([problem.mask, np.zeros((*problem.mask.shape[:3], EXTRA), bool)], axis=3)
    return replace(
        problem,
        key=f"{problem.key}, {EXTRA} blocked keys appended",
        k=more(problem.k),
        v=more(problem.v),
        mask=mask,
        tangents=(dq, more(dk), more(dv)),
    )
