"""The rows of the arbitrary-precision leg: exact dyadic numbers, random and adversarial, the same for every engine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

SEED = 20250531
_GRID = 2**20


@dataclass(frozen=True)
class Sample:
    """One row as exact numbers: mask, scores, tangents ``u`` and ``v``, cotangent ``g`` and a shift ``c``."""

    family: str
    mask: tuple[bool, ...]
    x: tuple[Fraction, ...]
    u: tuple[Fraction, ...]
    v: tuple[Fraction, ...]
    g: tuple[Fraction, ...]
    c: Fraction


@cache
def samples(seed: int = SEED) -> tuple[Sample, ...]:
    """The rows for one seed. Their numbers are dyadic, so that every engine holds them without rounding."""
    rng = random.Random(seed)
    return tuple(_with_vectors(family, mask, x, rng) for family, mask, x in _rows(rng))


def _rows(rng: random.Random) -> Iterator[tuple[str, Sequence[bool], Sequence[Fraction]]]:
    tiny = Fraction(1, 2**100)
    t, f = True, False
    # The rows on which mistakes show first come first, so that negative controls are rejected quickly.
    yield "partial", [t, f, t, t, f], _uniform(rng, 5, 2)
    yield "blocked maximum", [t, t, f, t], [*_uniform(rng, 2, 1), Fraction(9), *_uniform(rng, 1, 1)]
    yield "empty", [f, f, f, f], _uniform(rng, 4, 2)
    yield "single", [f, t, f], _uniform(rng, 3, 2)
    yield "full", [t] * 5, _uniform(rng, 5, 2)
    yield "no keys", [], []
    yield "one key, allowed", [t], _uniform(rng, 1, 5)
    yield "one key, blocked", [f], _uniform(rng, 1, 5)
    yield "tie of all", [t, t, f, t, t], [Fraction(3, 4)] * 5
    yield "tie for the maximum", [t, f, t, t], [Fraction(5, 2), Fraction(5, 2), Fraction(-1), Fraction(5, 2)]
    yield "argmax one step from switching", [t, t, t, f], [Fraction(1), 1 + tiny, Fraction(1, 2), Fraction(2)]
    yield "two keys", [t, t], _uniform(rng, 2, 3)
    yield "two levels", [t, t, t, t, f], [Fraction(0), Fraction(-10000), Fraction(0), Fraction(-10000), Fraction(0)]
    for spread in (10, 100, 1000, 10000):
        yield f"spread {spread}", [rng.random() < 0.7 for _ in range(4)] + [t, f], _uniform(rng, 6, spread)
    for offset in (10000, -10000):
        yield f"offset {offset}", [t, t, f, t], [offset + s for s in _uniform(rng, 4, 1)]
    for number in range(24):
        n = rng.randint(2, 7)
        yield f"random {number}", [rng.random() < 0.6 for _ in range(n)], _uniform(rng, n, 4)
    yield "long", [rng.random() < 0.8 for _ in range(17)], _uniform(rng, 17, 6)


def _with_vectors(family: str, mask: Sequence[bool], x: Sequence[Fraction], rng: random.Random) -> Sample:
    n = len(mask)
    u, v, g = _uniform(rng, n, 2), _uniform(rng, n, 2), _uniform(rng, n, 2)
    if n > 2 and family.startswith("random"):
        # A large entry beside small ones: centring must not lose the small ones.
        g[rng.randrange(n)] *= 2**20
    return Sample(family, tuple(mask), tuple(x), tuple(u), tuple(v), tuple(g), Fraction(rng.randint(1, 99), 8))


def _uniform(rng: random.Random, n: int, half_range: int) -> list[Fraction]:
    return [Fraction(rng.randint(-half_range * _GRID, half_range * _GRID), _GRID) for _ in range(n)]
