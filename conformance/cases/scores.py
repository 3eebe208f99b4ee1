"""Score families: the shapes of rows on which masked softmax goes wrong.

Each function returns float64 scores of shape ``(rows, keys)``; the caller rounds them to the storage dtype. The limits
come from the format, so that every family means the same in every dtype.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...spec.batch import Floats
from ...spec.formats import Format

Generator = np.random.Generator
Shape = Callable[[Generator, Format, int, int], Floats]


def log_normal(form: Format) -> float:
    """``-log`` of the smallest normal number: exp underflows beyond it."""
    return float(-form.emin * np.log(2.0))


def log_subnormal(form: Format) -> float:
    """``-log`` of the smallest subnormal number: exp gives 0 beyond it."""
    return float(-(form.emin - form.precision + 1) * np.log(2.0))


def normal(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Gaussian rows with deviations 0.1, 1 and 10 in turn."""
    scale = np.array([0.1, 1.0, 10.0])[np.arange(rows) % 3, None]
    return rng.standard_normal((rows, keys)) * scale


def normal_100(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Gaussian rows with deviation 100: most weights underflow."""
    return rng.standard_normal((rows, keys)) * 100.0


def ties(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """All scores of a row equal."""
    return np.zeros((rows, keys)) + rng.integers(-5, 6, (rows, 1))


def two_level(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Each key is at the maximum or one step below it: ties of the maximum among others."""
    return np.where(rng.random((rows, keys)) < 0.5, 0.0, -5.0 * rng.random((rows, 1)))


def argmax_switch(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Two keys within a few units in the last place of each other at the maximum, in either order."""
    s = rng.standard_normal((rows, keys)) - 3.0
    top = 1.0 + rng.random(rows)
    row = np.arange(rows)
    s[row, rng.integers(0, keys, rows)] = top
    s[row, rng.integers(0, keys, rows)] = top * (1.0 + rng.integers(-2, 3, rows) * 2.0 * form.u)
    return s


def wide(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Uniform over ±10⁴."""
    return rng.uniform(-1e4, 1e4, (rows, keys))


def offset(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Gaussian around +10⁴ or -10⁴."""
    sign = np.where(np.arange(rows) % 2, 1.0, -1.0)[:, None]
    return rng.standard_normal((rows, keys)) * 3.0 + 1e4 * sign


def offset_large(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Gaussian around +10⁶ or -10⁶, or half the largest number where that is smaller."""
    sign = np.where(np.arange(rows) % 2, 1.0, -1.0)[:, None]
    return rng.standard_normal((rows, keys)) * 3.0 + min(1e6, form.max / 2) * sign


def underflow(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Uniform from the maximum down past the point where exp gives 0."""
    return _pinned(rng, -rng.uniform(0.0, log_subnormal(form) + 2.0, (rows, keys)))


def subnormal(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Numerators in and around the subnormal range."""
    return _pinned(rng, -rng.uniform(log_normal(form) - 2.0, log_subnormal(form) + 2.0, (rows, keys)))


def stagnation(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """One numerator of 1 and all others near the unit roundoff: a careless running sum never grows."""
    level = -(form.precision * np.log(2.0) + rng.uniform(-1.5, 1.5, (rows, 1)))
    return _pinned(rng, np.broadcast_to(level, (rows, keys)).copy())


def extreme(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Largest finite numbers of both signs, whose difference overflows; in every third row negative ones of all sizes
    from 2¹⁰, whose differences pass every limit of an integer."""
    s = np.where(rng.random((rows, keys)) < 0.5, form.max, -form.max)
    row, key = np.arange(rows)[:, None], np.arange(keys)[None, :]
    step = ((7 * row + 5 * key) % 16) / 16.0
    low = -(2.0 ** (10.0 + (np.log2(form.max) - 10.0) * step**2))
    return np.select([row % 3 == 0, row % 3 == 1], [-np.abs(s), low], s)


def harmonic(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Weights proportional to 1, 1/2, 1/3, …: every key counts; in every second row the maximum grows key by key."""
    s = -np.log1p(np.arange(keys))[None, :] + rng.standard_normal((rows, 1))
    return np.where((np.arange(rows) % 2 == 1)[:, None], s[:, ::-1], s)


def _pinned(rng: Generator, s: Floats) -> Floats:
    """Put a 0, the maximum, at one random key of each row."""
    s[np.arange(len(s)), rng.integers(0, s.shape[1], len(s))] = 0.0
    return s


def tiny(rng: Generator, form: Format, rows: int, keys: int) -> Floats:
    """Subnormal scores of both signs, and zeros of both signs: the weights are all but equal."""
    steps = rng.integers(-3, 4, (rows, keys)).astype(np.float64)
    return steps * form.eta * np.where(rng.random((rows, 1)) < 0.5, 1.0, -0.0)


SHAPES: dict[str, Shape] = {
    "normal": normal,
    "normal-100": normal_100,
    "ties": ties,
    "two-level": two_level,
    "argmax-switch": argmax_switch,
    "wide": wide,
    "offset": offset,
    "offset-large": offset_large,
    "underflow": underflow,
    "subnormal": subnormal,
    "stagnation": stagnation,
    "extreme": extreme,
    "harmonic": harmonic,
    "tiny": tiny,
}


def rotating(rng: Generator, form: Format, rows: int, keys: int) -> tuple[Floats, np.ndarray]:
    """Rows of every shape in turn: scores, and the index of each row's shape in ``SHAPES``."""
    which = np.arange(rows) % len(SHAPES)
    s = np.empty((rows, keys))
    for k, shape in enumerate(SHAPES.values()):
        chosen = which == k
        if chosen.any() and keys:
            s[chosen] = shape(rng, form, int(chosen.sum()), keys)
    return s, which
