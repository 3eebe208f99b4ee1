"""Long rows on which a subject's answers are compared with each other."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...spec.batch import Array, Bools, Floats
from ...spec.formats import FORMATS, Format

Generator = np.random.Generator


@dataclass(frozen=True, eq=False)
class Rows:
    """``R`` rows over ``n`` keys in one storage dtype, each with an allowed key.

    ``scores``, ``cotangents``, ``tangents``: shape ``(R, n)``, finite; ``mask``: True = allowed. The scores of row
    ``r`` are multiples of ``grid[r]``, of which the format holds four times the largest one: see :func:`shift`.
    ``constant``: rows whose cotangents and tangents are constant.
    """

    dtype: str
    scores: Array
    mask: Bools
    cotangents: Array
    tangents: Array
    grid: Floats
    constant: Bools

    @property
    def shape(self) -> tuple[int, int]:
        """``(rows, keys)``."""
        return self.scores.shape[0], self.scores.shape[1]

    @cached_property
    def scores64(self) -> Floats:
        """The scores, exactly, in float64."""
        return self.scores.astype(np.float64)


def build(dtype: str, rows: int, keys: int, seed: int) -> Rows:
    """Seeded rows: Gaussian, tied, wide, with one large weight among many small ones, each under several masks.

    >>> made = build("float16", 8, 100, seed=0)
    >>> made.shape, bool(made.mask.any(axis=1).all())
    ((8, 100), True)
    """
    form = FORMATS[dtype]
    rng = np.random.default_rng((seed, zlib.crc32(f"metamorphic/{dtype}/{rows}x{keys}".encode())))
    which = np.arange(rows)
    raw = np.stack([SCORES[r % len(SCORES)](rng, form, keys) for r in which])
    grid = np.exp2(np.ceil(np.log2(np.maximum(np.abs(raw).max(axis=1, keepdims=True), 2.0**-4))) + 2 - form.precision)
    scores = np.rint(raw / grid) * grid
    mask = np.stack([MASKS[r // len(SCORES) % len(MASKS)](rng, keys) for r in which])
    mask[which[~mask.any(axis=1)], 0] = True
    constant = which % 8 == 7
    # A sum of that many numerators, each at most 1, times entries of this size stays finite in the format.
    most = min(16.0, form.max / (4.0 * keys))
    vectors = [np.where(constant[:, None], min(1.0, most), _vectors(rng, rows, keys, most)) for _ in range(2)]
    stored = [x.astype(form.dtype) for x in (scores, *vectors)]
    if not np.array_equal(stored[0].astype(np.float64), scores):
        raise AssertionError(f"Scores on a grid are not numbers of {dtype}.")
    return Rows(dtype, stored[0], mask, stored[1], stored[2], grid[:, 0], constant)


def shift(rows: Rows, sign: float) -> tuple[Array, Floats]:
    """The scores plus one constant per row, and the constants; every ``s + c`` is a number of the format.

    With a grid of ``2^(e + 2 - p)`` for scores up to ``2^e``, a score is at most ``2^(p - 2)`` steps and so is the
    constant: their sum is below ``2^p`` steps, which the format holds exactly.

    >>> made = build("bfloat16", 8, 50, seed=0)
    >>> moved, constant = shift(made, -1.0)
    >>> bool((moved.astype(float) - made.scores64 == constant[:, None]).all())
    True
    """
    form = FORMATS[rows.dtype]
    steps = np.floor(2.0 ** (form.precision - 2) * (0.5 + 0.5 * ((np.arange(len(rows.grid)) % 5) / 4.0)))
    constant = sign * steps * rows.grid
    exact = rows.scores64 + constant[:, None]
    moved = exact.astype(form.dtype)
    if not np.array_equal(moved.astype(np.float64), exact) or not np.array_equal(
        exact - constant[:, None], rows.scores64
    ):
        raise AssertionError(f"A shifted score is not a number of {rows.dtype}.")
    return moved, constant


def _vectors(rng: Generator, rows: int, keys: int, most: float) -> Floats:
    """Gaussian vectors, some around a large number, none beyond ``most``."""
    v = rng.standard_normal((rows, keys))
    v[1::4] += 8.0
    return np.asarray(np.clip(v, -16.0, 16.0) * (most / 16.0))


def _gaussian(scale: float) -> Callable[[Generator, Format, int], Floats]:
    return lambda rng, form, keys: rng.standard_normal(keys) * scale


def _tied(rng: Generator, form: Format, keys: int) -> Floats:
    return np.full(keys, float(rng.integers(1, 6)))


def _stagnating(rng: Generator, form: Format, keys: int) -> Floats:
    """One numerator of 1, the others near the unit roundoff: a careless running sum never grows."""
    s = np.full(keys, -form.precision * np.log(2.0)) + rng.uniform(-1.0, 1.0, keys)
    s[rng.integers(0, keys)] = 0.0
    return s


def _rising(rng: Generator, form: Format, keys: int) -> Floats:
    """Every tile has a larger maximum than the one before."""
    return np.linspace(-6.0, 6.0, keys) + rng.uniform(-0.5, 0.5, keys)


SCORES: tuple[Callable[[Generator, Format, int], Floats], ...] = (
    _gaussian(1.0),
    _stagnating,
    _gaussian(0.1),
    _rising,
    _gaussian(10.0),
    _tied,
)


def _all(rng: Generator, keys: int) -> Bools:
    return np.ones(keys, bool)


def _most(rng: Generator, keys: int) -> Bools:
    return rng.random(keys) < 0.7


def _prefix(rng: Generator, keys: int) -> Bools:
    return np.arange(keys) <= rng.integers(keys // 2, keys)


def _few(rng: Generator, keys: int) -> Bools:
    return rng.random(keys) < 8.0 / keys


def _suffix(rng: Generator, keys: int) -> Bools:
    return np.arange(keys) >= rng.integers(keys // 4, keys // 2 + 1)


MASKS: tuple[Callable[[Generator, int], Bools], ...] = (_most, _prefix, _all, _few, _suffix)
