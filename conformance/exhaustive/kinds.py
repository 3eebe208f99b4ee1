"""The kinds of rows that a sweep enumerates, and the declarations that they decide."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from ...spec.batch import Array, Bools
from ...spec.formats import FORMATS
from ..checks import derivative, empty_row, forward

Part = Literal["pairs", "blocked", "empty", "short", "vjp"]
PARTS: tuple[Part, ...] = ("pairs", "blocked", "empty", "short", "vjp")
"""What can be asked for: all pairs of allowed scores; one of two blocked; both blocked; lengths 1 and 3; the VJP."""


@dataclass(frozen=True)
class Kind:
    """Rows of one shape of mask that are enumerated together.

    ``mask`` is that of all rows, None where the rows have every mask. ``cotangent`` is there for the VJP only.
    ``declarations`` are the keys of what the rows decide.
    """

    key: str
    part: Part
    words: str
    declarations: tuple[str, ...]
    mask: tuple[bool, ...] | None = None
    cotangent: tuple[float, ...] | None = None
    keys: int = 2

    @property
    def method(self) -> Literal["forward", "vjp"]:
        """The method of the subject that is called."""
        return "forward" if self.cotangent is None else "vjp"

    def rows(self, dtype: str) -> int:
        """Rows for every value of the score that runs first."""
        if self.keys != 2:
            return len(patterns(self.keys, dtype)[0])
        return len(partners(self, dtype))


_ONE = (*forward.VALUES, *forward.ZEROS, *forward.ONE)

KINDS: tuple[Kind, ...] = (
    Kind(
        "pairs (1,1)", "pairs", "every pair of finite scores, both allowed: both weights", forward.VALUES, (True, True)
    ),
    Kind(
        "pairs (1,0)",
        "blocked",
        "every finite score allowed beside every blocked one, NaN and infinities included: both weights",
        _ONE,
        (True, False),
    ),
    Kind(
        "pairs (0,1)",
        "blocked",
        "every finite score allowed behind every blocked one, NaN and infinities included: both weights",
        _ONE,
        (False, True),
    ),
    Kind(
        "pairs (0,0)",
        "empty",
        "every finite score beside every score, both blocked: the row of the contract",
        empty_row.EMPTY,
        (False, False),
    ),
    Kind(
        "length 1",
        "short",
        "every finite score alone, allowed and blocked",
        (*forward.VALUES, *forward.ONE, *empty_row.EMPTY),
        keys=1,
    ),
    Kind(
        "length 3",
        "short",
        "every finite score at every place of three under every mask, with listed scores at the other places",
        (*forward.VALUES, *forward.ZEROS, *empty_row.EMPTY),
        keys=3,
    ),
    Kind(
        "VJP (1,0)",
        "vjp",
        "every pair of finite scores, both allowed: the VJP of the cotangent (1, 0), both entries",
        derivative.VJP,
        (True, True),
        (1.0, 0.0),
    ),
    Kind(
        "VJP (0,1)",
        "vjp",
        "every pair of finite scores, both allowed: the VJP of the cotangent (0, 1), both entries",
        derivative.VJP,
        (True, True),
        (0.0, 1.0),
    ),
)

BY_KEY = {kind.key: kind for kind in KINDS}


def all_scores(dtype: str) -> Array:
    """All 65,536 scores of a 16-bit format: the finite ones in ascending order, then infinities and NaN.

    >>> scores = all_scores("float16")
    >>> len(scores), float(scores[0]), float(scores[63487]), float(scores[63488])
    (65536, -65504.0, 65504.0, inf)
    """
    every = np.arange(1 << 16, dtype=np.uint16).view(FORMATS[dtype].dtype)
    finite = finite_of(every)
    order = np.argsort(finite.astype(np.float64), kind="stable")
    return np.concatenate([finite[order], every[~np.isfinite(_wide(every))]])


def finite_scores(dtype: str) -> Array:
    """All finite scores of a 16-bit format in ascending order, both zeros included.

    >>> len(finite_scores("float16")), len(finite_scores("bfloat16"))
    (63488, 65280)
    """
    return finite_of(all_scores(dtype))


def finite_of(scores: Array) -> Array:
    """The finite ones among some scores, in their order."""
    return scores[np.isfinite(_wide(scores))]


def _wide(scores: Array) -> Array:
    with np.errstate(invalid="ignore"):
        wide: Array = scores.astype(np.float32)
    return wide


def partners(kind: Kind, dtype: str) -> Array:
    """The scores that stand beside each first score of a pair."""
    both = kind.mask is not None and all(kind.mask)
    return finite_scores(dtype) if both else all_scores(dtype)


def fillings(dtype: str) -> tuple[Array, Array]:
    """What stands at the other places of a row of three: at blocked ones, and at allowed ones."""
    f = FORMATS[dtype]
    blocked = np.array([0.0, 1.0, f.eta, f.max, -f.max, np.inf, -np.inf, np.nan]).astype(f.dtype)
    return blocked, np.array([0.0, 1.5, -3.25]).astype(f.dtype)


def patterns(keys: int, dtype: str) -> tuple[Array, Bools, Array]:
    """Every mask of a row with every place of the running score and every filling of the others.

    Returns scores of shape ``(patterns, keys)``, masks of that shape, and the place of the running score.
    """
    blocked, allowed = fillings(dtype)
    rows, masks, places = [], [], []
    for mask in product((True, False), repeat=keys):
        for place in range(keys):
            choices = [blocked[:1] if i == place else allowed if allows else blocked for i, allows in enumerate(mask)]
            for filling in product(*choices):
                rows.append(filling)
                masks.append(mask)
                places.append(place)
    return np.array(rows, dtype=FORMATS[dtype].dtype), np.array(masks), np.array(places)
