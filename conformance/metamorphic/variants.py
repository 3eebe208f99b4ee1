"""The same rows, changed in ways that change no weight: what is asked, and where the old keys are in the answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from ...spec.batch import Array, Bools, Floats
from ...spec.formats import FORMATS
from .rows import Rows, shift

Kind = Literal["shift", "permutation", "truncation", "padding", "position", "non-interference", "repeat"]
Codes = npt.NDArray[np.int64]

DECLARATIONS: dict[Kind, str] = {
    "shift": "shift_invariance",
    "permutation": "permutation_equivariance",
    "truncation": "truncation",
    "padding": "truncation",
    "position": "batch_invariance",
    "repeat": "batch_invariance",
    "non-interference": "score_non_interference",
}

ALONE = 3
"""Rows that are also asked for in calls of their own."""

OTHERS = 2
"""Among rows that are replaced, each so many-th stays."""


@dataclass(frozen=True, eq=False)
class Variant:
    """``scores``, ``mask`` and the vectors of another call; row ``rows[k]`` of the base is row ``at[k]`` of the answer.

    ``order[r, j]``: where key ``j`` of the base stands in that row of the answer (None: at ``j``). Keys of the answer
    beyond those of the base are blocked. ``forward_only``: one change of its kind is enough for the derivatives, which
    take most of the time.
    """

    kind: Kind
    name: str
    scores: Array
    mask: Bools
    cotangents: Array
    tangents: Array
    rows: Codes
    at: Codes
    order: Codes | None = None
    forward_only: bool = False

    def back(self, answer: Floats, keys: int) -> Floats:
        """The answer in the order of the base: shape ``(len(rows), keys)``."""
        mine = answer[self.at, :]
        if self.order is not None:
            return np.take_along_axis(mine, self.order, axis=1)
        return mine[:, :keys]

    def beyond(self, answer: Floats, keys: int) -> Floats:
        """What was answered for keys that the base does not have; all of them are blocked."""
        return answer[self.at, keys:]


def variants(rows: Rows, seed: int, *, finite: bool = False) -> Iterator[Variant]:
    """Every variant of the rows, one at a time: each takes as much memory as the rows themselves.

    ``finite``: none whose blocked scores are not finite.
    """
    rng = np.random.default_rng((seed, rows.shape[1], 1))
    yield _same(rows, "repeat", "the same call again")
    for poisoned in _poisoned(rows):
        if not finite or np.isfinite(poisoned.scores.astype(np.float64)).all():
            yield poisoned
    for sign, name in ((1.0, "plus a constant"), (-1.0, "minus a constant")):
        yield replace(_same(rows, "shift", name, shift(rows, sign)[0]), forward_only=sign < 0.0)
    yield _permuted(rows, rng)
    keys = rows.shape[1]
    for name, length in (
        ("one blocked key more", keys + 1),
        ("to the next multiple of 8", keys + 8 - keys % 8),
        ("to the next multiple of 64", keys + 64 - keys % 64),
    ):
        yield replace(_padded(rows, rng, name, length), forward_only=length != keys + 1)
    yield from _moved(rows, rng)


def _same(rows: Rows, kind: Kind, name: str, scores: Array | None = None) -> Variant:
    """Every row at its place, with other scores."""
    everything = np.arange(rows.shape[0])
    chosen = rows.scores if scores is None else scores
    return Variant(kind, name, chosen, rows.mask, rows.cotangents, rows.tangents, everything, everything)


def _poisoned(rows: Rows) -> Iterator[Variant]:
    largest = FORMATS[rows.dtype].max
    for name, poison in (
        ("0", 0.0),
        ("NaN", np.nan),
        ("+inf", np.inf),
        ("-inf", -np.inf),
        ("+max", largest),
        ("-max", -largest),
    ):
        filled = np.where(rows.mask, rows.scores, np.asarray(poison, rows.scores.dtype))
        variant = _same(rows, "non-interference", f"{name} at blocked scores", filled)
        yield replace(variant, forward_only=name not in ("NaN", "+max"))


def _permuted(rows: Rows, rng: np.random.Generator) -> Variant:
    order = np.argsort(rng.random(rows.shape), axis=1)

    def pick(x: Array) -> Array:
        return np.take_along_axis(x, order, axis=1)

    everything = np.arange(rows.shape[0])
    return Variant(
        "permutation",
        "keys permuted",
        pick(rows.scores),
        pick(rows.mask),
        pick(rows.cotangents),
        pick(rows.tangents),
        everything,
        everything,
        order=np.argsort(order, axis=1),
    )


def _padded(rows: Rows, rng: np.random.Generator, name: str, length: int) -> Variant:
    """Blocked keys at the end, with scores and vectors like those of the row."""
    more = length - rows.shape[1]
    taken = rng.integers(0, rows.shape[1], more)
    scores, cotangents, tangents = (
        np.concatenate([x, x[:, taken]], axis=1) for x in (rows.scores, rows.cotangents, rows.tangents)
    )
    mask = np.concatenate([rows.mask, np.zeros((rows.shape[0], more), bool)], axis=1)
    everything = np.arange(rows.shape[0])
    return Variant("padding", name, scores, mask, cotangents, tangents, everything, everything)


def _moved(rows: Rows, rng: np.random.Generator) -> Iterator[Variant]:
    """Rows at other places of the batch, among other rows, twice, and alone."""
    count = rows.shape[0]
    everything = np.arange(count)

    def picked(name: str, order: Codes, mine: Codes, at: Codes) -> Variant:
        parts = rows.scores[order], rows.mask[order], rows.cotangents[order], rows.tangents[order]
        return Variant("position", name, *parts, mine, at)

    yield picked("batch reversed", everything[::-1], everything, everything[::-1])
    twice = picked("every row twice", np.concatenate([everything, everything]), everything, everything + count)
    yield replace(twice, forward_only=True)
    if count > 1:
        stay = everything[::OTHERS]
        order = np.where(everything % OTHERS == 0, everything, stay[rng.integers(0, len(stay), count)])
        yield picked("other rows replaced", order, stay, stay)
    for row in np.unique(np.linspace(0, count - 1, ALONE).astype(np.int64)):
        yield picked(f"row {row} alone", np.array([row]), np.array([row]), np.array([0]))


def truncated(rows: Rows) -> tuple[Rows, Variant] | None:
    """Rows without their tail, and the same rows with it, blocked; None where a row is too short for that."""
    keys = rows.shape[1]
    short = keys - keys // 3 - 1
    if short < 1:
        return None
    head = np.arange(keys) < short
    mask = rows.mask & head
    mask[~mask.any(axis=1), 0] = True
    scores, cotangents, tangents = (
        np.ascontiguousarray(x[:, head]) for x in (rows.scores, rows.cotangents, rows.tangents)
    )
    base = Rows(rows.dtype, scores, np.ascontiguousarray(mask[:, head]), cotangents, tangents, rows.grid, rows.constant)
    everything = np.arange(rows.shape[0])
    name = "blocked tail deleted"
    whole = Variant("truncation", name, rows.scores, mask, rows.cotangents, rows.tangents, everything, everything)
    return base, whole
