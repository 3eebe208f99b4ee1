"""The heads of the arbitrary-precision leg: exact dyadic numbers, the same for every engine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from .samples import SEED

_GRID = 2**20

Table = tuple[tuple[Fraction, ...], ...]
Shape = tuple[int, int, int, int]


@dataclass(frozen=True)
class HeadSample:
    """One head as exact numbers: mask, ``q``, ``k``, ``v``, scale, cotangent ``g``, and tangents ``dq, dk, dv``."""

    family: str
    mask: tuple[tuple[bool, ...], ...]
    q: Table
    k: Table
    v: Table
    scale: Fraction
    g: Table
    dq: Table
    dk: Table
    dv: Table


@cache
def head_samples(seed: int = SEED) -> tuple[HeadSample, ...]:
    """The heads for one seed."""
    rng = random.Random(seed)
    return tuple(_samples(rng))


def _samples(rng: random.Random) -> Iterator[HeadSample]:
    t, f = True, False
    # The heads on which mistakes show first come first, so that negative controls are rejected quickly.
    yield _sample(rng, "partial", [[t, f, t], [t, t, f]], (2, 3, 2, 2))
    yield _sample(rng, "an empty query and an unseen key", [[t, f, t], [f, f, f], [t, f, f]], (3, 3, 2, 2))
    yield _sample(rng, "causal", [[t, f, f], [t, t, f], [t, t, t]], (3, 3, 2, 2))
    yield _sample(rng, "full", [[t] * 4] * 2, (2, 4, 2, 3))
    yield _sample(rng, "more queries than keys", [[f, t], [t, t], [t, f], [f, f]], (4, 2, 1, 2))
    yield _sample(rng, "all empty", [[f] * 3] * 2, (2, 3, 2, 1))
    yield _sample(rng, "one query and one key", [[t]], (1, 1, 2, 2))
    yield _sample(rng, "no keys", [[], []], (2, 0, 2, 0))
    yield _sample(rng, "no queries", [], (0, 2, 2, 2))
    yield _sample(rng, "no features", [[t, t, f]], (1, 3, 0, 2))
    yield _sample(rng, "no columns", [[t, f, t]], (1, 3, 2, 0))
    yield _sample(rng, "tie of all keys", [[t, t, f, t], [f, t, t, t]], (2, 4, 2, 2), tie=True)
    yield _sample(rng, "steep", [[t, f, t, t], [t, t, t, f]], (2, 4, 2, 2), half_range=40)
    yield _sample(rng, "random 0", [[rng.random() < 0.6 for _ in range(6)] for _ in range(4)], (4, 6, 3, 2))
    for number in range(1, 9):
        queries, keys = rng.randint(1, 3), rng.randint(1, 4)
        mask = [[rng.random() < 0.6 for _ in range(keys)] for _ in range(queries)]
        yield _sample(rng, f"random {number}", mask, (queries, keys, rng.randint(1, 2), rng.randint(1, 2)))


def _sample(
    rng: random.Random,
    family: str,
    mask: Sequence[Sequence[bool]],
    shape: Shape,
    *,
    half_range: int = 2,
    tie: bool = False,
) -> HeadSample:
    queries, keys, d, dv = shape

    def table(rows: int, columns: int, reach: int = 2) -> Table:
        ends = -reach * _GRID, reach * _GRID
        return tuple(tuple(Fraction(rng.randint(*ends), _GRID) for _ in range(columns)) for _ in range(rows))

    k = table(keys, d)
    return HeadSample(
        family,
        tuple(tuple(row) for row in mask),
        table(queries, d, half_range),
        k[:1] * keys if tie else k,
        table(keys, dv),
        Fraction(rng.randint(2, 15), 16),
        table(queries, dv),
        table(queries, d),
        table(keys, d),
        table(keys, dv),
    )
