"""What stands in queries, keys and values: ordinary numbers, and those at which kernels go wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...spec.batch import Floats


@dataclass(eq=False)
class Contents:
    """Arrays in float64, before they are rounded to the storage format."""

    q: Floats
    k: Floats
    v: Floats
    cotangent: Floats
    tangents: tuple[Floats, Floats, Floats]


def _plain(c: Contents, rng: np.random.Generator) -> None:
    """Standard normal."""


def _peaked(c: Contents, rng: np.random.Generator) -> None:
    c.q *= 4.0
    c.k *= 4.0


def _offset(c: Contents, rng: np.random.Generator) -> None:
    """Scores and values far from 0: cancellation in the shift and in the centring."""
    c.q += 4.0
    c.k += 4.0
    c.v += 50.0
    c.cotangent += 3.0


def _ties(c: Contents, rng: np.random.Generator) -> None:
    c.k[:] = c.k[:, :, :1]


def _one_hot(c: Contents, rng: np.random.Generator) -> None:
    """Values and cotangents that show single weights."""
    c.v[:] = 0.0
    c.v[:, :, -1:, 0] = 1.0
    c.cotangent[:] = 0.0
    c.cotangent[..., :1] = 1.0


def _skewed(c: Contents, rng: np.random.Generator) -> None:
    c.k[:, :, :1] *= 20.0
    c.v[:, :, :1] *= 20.0


def _tiny(c: Contents, rng: np.random.Generator) -> None:
    for array in (c.q, c.k, c.v):
        array *= 2.0**-6


def _descending(c: Contents, rng: np.random.Generator) -> None:
    """Scores that fall, and rise in the last key: the running maximum is found early, and again at the end."""
    c.k[:] = 0.25 * c.k + np.linspace(3.0, -3.0, c.k.shape[2])[:, None] if c.k.shape[2] else c.k
    c.k[:, :, -1:] += 7.0
    c.q[:] = np.abs(c.q)


def _ascending(c: Contents, rng: np.random.Generator) -> None:
    """Every tile brings a new maximum."""
    c.k[:] = 0.25 * c.k + np.linspace(-4.0, 4.0, c.k.shape[2])[:, None] if c.k.shape[2] else c.k
    c.q[:] = np.abs(c.q)


def _steep(c: Contents, rng: np.random.Generator) -> None:
    """Later scores are larger than earlier ones by more than an exponential without a shift can hold."""
    c.k[:] = 0.25 * c.k + np.linspace(-160.0, 160.0, c.k.shape[2])[:, None] if c.k.shape[2] else c.k
    c.q[:] = np.abs(c.q)


def _negative(c: Contents, rng: np.random.Generator) -> None:
    """All scores lie far below 0, by more than an exponential without a shift can hold."""
    c.k[:] = 0.25 * c.k - 200.0
    c.q[:] = np.abs(c.q)


CONTENTS: dict[str, Callable[[Contents, np.random.Generator], None]] = {
    "plain": _plain,
    "peaked": _peaked,
    "offset": _offset,
    "ties": _ties,
    "one-hot": _one_hot,
    "skewed": _skewed,
    "tiny": _tiny,
    "descending": _descending,
    "ascending": _ascending,
    "steep": _steep,
    "negative": _negative,
    "poison": _plain,
}
"""Name -> how the arrays are changed in place. ``poison``: :func:`poisoned` is applied once the mask is known."""


def drawn(rng: np.random.Generator, q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...], name: str) -> Contents:
    """Arrays of the given shapes."""
    shapes = (q, k, v, (*q[:3], v[3]), q, k, v)
    q_, k_, v_, g, dq, dk, dv = (rng.standard_normal(shape) for shape in shapes)
    made = Contents(q_, k_, v_, g, (dq, dk, dv))
    CONTENTS[name](made, rng)
    return made


def poisoned(c: Contents, unseen: np.ndarray, largest: float, rng: np.random.Generator) -> None:
    """Fill keys and values that no query may see with numbers as large as products and sums with them still fit.

    ``unseen``: Boolean, ``(B, G, Lk)``; ``largest``: the largest number of the storage format.
    """

    def room(*arrays: Floats) -> float:
        widest = max((float(np.abs(a).sum(axis=-1).max(initial=0.0)) for a in arrays), default=0.0)
        return 0.05 * largest / max(1.0, widest)

    signs = rng.choice([-1.0, 1.0], size=c.k.shape)
    c.k[unseen] = (signs * room(c.q, c.tangents[0]))[unseen]
    signs = rng.choice([-1.0, 1.0], size=c.v.shape)
    c.v[unseen] = (signs * room(c.cotangent))[unseen]
