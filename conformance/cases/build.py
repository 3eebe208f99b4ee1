"""Build the batches: one function per kind, each a mixture of families that need the same surroundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ...spec.batch import Batch, Bools, Floats
from ...spec.formats import FORMATS, Format
from . import masks
from .poison import POISONS, poisoned
from .scores import SHAPES, Generator, normal, rotating
from .vectors import vectors

SHORT = 16
"""Length of the short rows, and of the prefix that holds all allowed keys of the truncation family.

A multiple of every usual number of vector lanes and of small tiles; the long rows are a multiple of none.
"""

FORWARD_ONLY = ("single", "causal", "truncation")
"""Kinds that are there for statements about weights; as long rows they say nothing new about derivatives."""

BESIDE = "beside empty rows"
"""Family of rows that have empty rows for neighbours."""

TWINS = "twins"
"""Relation of rows that have the same scores and different masks."""

ISOLATED = "empty, nan vector"
"""Family of empty rows that receive a NaN cotangent and a NaN tangent."""

UNREAD = "nan at blocked vector entries"
"""Family of rows whose cotangent and tangent are NaN at the blocked keys and real at the others."""

SEARCHED = "directed search"
"""Family of rows that were bred to use much of an error budget."""

GIVEN = "given"
"""Family of rows that a caller gives."""

Parts = dict[str, Any]
Builder = Callable[[Generator, Format, int, int], Parts]
Codes = npt.NDArray[np.int64]


def rounded(values: Floats, form: Format) -> Floats:
    """The nearest finite numbers of a format, as float64."""
    finite = np.clip(values, -form.max, form.max)
    return np.where(np.isfinite(values), finite, values).astype(form.dtype).astype(np.float64)


def shapes(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Every score family under every density of mask, and for each row a permuted copy in the second half."""
    base = rows // 2
    s, which = rotating(rng, form, base, keys)
    mask = masks.mixed(rng, base, keys)
    order = np.argsort(rng.random((base, keys)), axis=1)
    g, u = vectors(rng, form, mask), vectors(rng, form, mask)
    pairs = np.stack([np.arange(base), np.arange(base) + base], axis=1)

    def pick(a: Any) -> Any:
        return np.concatenate([a, np.take_along_axis(a, order, axis=1)])

    return {
        "scores": pick(s),
        "mask": pick(mask),
        "cotangents": pick(g),
        "tangents": pick(u),
        "family": np.concatenate([which, which]),
        "families": tuple(SHAPES),
        "relations": {"permutation": pairs},
        "permutation": order,
    }


def poison(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Each poison at the blocked scores; exactly one row is empty, and its cotangent is zero."""
    which = np.arange(rows) % len(POISONS)
    mask = masks.half(rng, rows, keys)
    s = poisoned(rounded(normal(rng, form, rows, keys), form), mask, form, which)
    g = vectors(rng, form, mask)
    lone = int(rng.integers(0, rows))
    mask[lone] = False
    s[lone] = rng.standard_normal(keys)
    g[lone] = 0.0
    which[lone] = len(POISONS)
    families = (*(f"poison {p}" for p in POISONS), "one empty row")
    return {"scores": s, "mask": mask, "cotangents": g, "family": which, "families": families}


def full(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """All keys allowed; the second half repeats the first, shifted by a constant for which every sum is exact."""
    base = rows // 2
    # Multiples of 1/8 below 16 in size: adding ±2^k stays exact while |s| + 2^k <= 2^(p - 3).
    s = np.clip(np.rint(normal(rng, form, base, keys) * 8.0) / 8.0, -15.0, 15.0)
    largest = min(form.precision - 4, 24)
    shift = 2.0 ** rng.integers(3, largest + 1, base) * rng.choice([-1.0, 1.0], base)
    pairs = np.stack([np.arange(base), np.arange(base) + base], axis=1)
    mask = np.ones((2 * base, keys), bool)
    g, u = vectors(rng, form, mask[:base]), vectors(rng, form, mask[:base])
    return {
        "scores": np.concatenate([s, s + shift[:, None]]),
        "mask": mask,
        "cotangents": np.concatenate([g, g]),
        "tangents": np.concatenate([u, u]),
        "family": np.repeat([0, 1], base),
        "families": ("full", "shifted"),
        "relations": {"shift": pairs},
    }


def single(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """One allowed key."""
    s, _ = rotating(rng, form, rows, keys)
    return {"scores": s, "mask": masks.single(rng, rows, keys), "families": ("single",)}


def causal(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """The rows of causal masks; the second half repeats the first at other places of the batch."""
    base = rows // 2
    s, _ = rotating(rng, form, base, keys)
    mask = masks.causal(base, keys)
    g, u = vectors(rng, form, mask), vectors(rng, form, mask)
    order = rng.permutation(base)
    pairs = np.stack([order, np.arange(base) + base], axis=1)

    def again(a: Any) -> Any:
        return np.concatenate([a, a[order]])

    return {
        "scores": again(s),
        "mask": again(mask),
        "cotangents": again(g),
        "tangents": again(u),
        "families": ("causal",),
        "relations": {"position": pairs},
    }


def empty(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """No allowed key in any row; scores of every family, and in every fifth row a non-finite one."""
    s, _ = rotating(rng, form, rows, keys)
    family = np.zeros(rows, np.int64)
    if keys:
        hot = np.arange(4, rows, 5)
        s[hot, rng.integers(0, keys, len(hot))] = rng.choice([np.nan, np.inf, -np.inf], len(hot))
        family[hot] = 1
    return {"scores": s, "mask": np.zeros((rows, keys), bool), "family": family, "families": ("empty", "empty poison")}


def truncation(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Allowed keys among the first few only: deleting the blocked tail must change nothing."""
    s, _ = rotating(rng, form, rows, keys)
    s[:, SHORT:] = np.where(np.arange(rows) % 2, 1e4, -30.0)[:, None]
    return {"scores": s, "mask": masks.prefix(rng, rows, keys, SHORT), "families": ("truncation",)}


def mixture(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Empty rows among others, some of them neighbours; every two rows share their scores."""
    s, _ = rotating(rng, form, (rows + 1) // 2, keys)
    mask = masks.mixed(rng, rows, keys)
    gone = rng.random(rows) < 0.3
    mask[gone] = False
    return {
        "scores": np.repeat(s, 2, axis=0)[:rows],
        "mask": mask,
        "family": gone.astype(np.int64),
        "families": (BESIDE, "empty"),
        "relations": {TWINS: np.arange(rows // 2 * 2).reshape(-1, 2)},
    }


def tiles(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Rows of whole tiles: every score family, every second row poisoned, every eighth empty."""
    s, _ = rotating(rng, form, rows, keys)
    mask = masks.mixed(rng, rows, keys)
    row = np.arange(rows)
    s[::2] = poisoned(rounded(s, form), mask, form, row % len(POISONS))[::2]
    gone = row % 8 == 5
    mask[gone] = False
    return {"scores": s, "mask": mask, "family": gone.astype(np.int64), "families": ("whole tiles", "empty")}


def lengths(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """The rows of :func:`tiles` at a length that is no whole number of tiles, or few."""
    return {**tiles(rng, form, rows, keys), "families": ("other lengths", "empty")}


def jacobian(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Groups of ``keys`` copies of one row, one for each unit vector: the full Jacobian by both modes."""
    groups = rows // keys
    s, _ = rotating(rng, form, groups, keys)
    mask = masks.mixed(rng, groups, keys)
    units = np.tile(np.eye(keys), (groups, 1))
    index = np.arange(groups * keys).reshape(groups, keys)
    return {
        "scores": np.repeat(s, keys, axis=0),
        "mask": np.repeat(mask, keys, axis=0),
        "cotangents": units,
        "tangents": units,
        "families": ("jacobian",),
        "relations": {"jacobian": index},
    }


def facts(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Rows that the theorems do not speak of, because a number in them is not real. Reported; judged where promised.

    An allowed score is NaN or infinite, or an empty row receives a NaN cotangent and tangent, or other rows do so at
    their blocked keys. Every third row is real and judged: its neighbours must not reach it.
    """
    families = ("allowed nan", "allowed +inf", "allowed -inf", "all -inf", ISOLATED, UNREAD, "beside unreal rows")
    row = np.arange(rows)
    last = len(families) - 1
    which = np.where(row % 3 == 1, last, (row // 3 * 2 + row % 3 // 2) % last)
    s = normal(rng, form, rows, keys)
    mask = masks.half(rng, rows, keys)
    at = (rng.random((rows, keys)) + mask).argmax(axis=1)
    s[row, at] = np.array([np.nan, np.inf, -np.inf, -np.inf, 0.0, 0.0, 0.0])[which]
    s = np.where((which == 3)[:, None] & mask, -np.inf, s)
    # "allowed -inf" keeps a real score beside it.
    beside = (at + 1) % keys
    few = which == 2
    mask[few, beside[few]] = True
    g, u = vectors(rng, form, mask), vectors(rng, form, mask)
    mask[which == families.index(ISOLATED)] = False
    unread = np.isin(which, [families.index(ISOLATED), families.index(UNREAD)])[:, None] & ~mask
    g[unread], u[unread] = np.nan, np.nan
    return {"scores": s, "mask": mask, "cotangents": g, "tangents": u, "family": which, "families": families}


def one(rng: Generator, form: Format, rows: int, keys: int) -> Parts:
    """Rows of a single slot, allowed or blocked."""
    s, _ = rotating(rng, form, rows, keys)
    mask = np.arange(rows)[:, None] % 3 > 0
    return {"scores": s, "mask": mask, "family": (~mask[:, 0]).astype(np.int64), "families": ("single", "empty")}


KINDS: dict[str, Builder] = {
    f.__name__: f
    for f in (shapes, poison, full, single, causal, empty, truncation, mixture, tiles, lengths, jacobian, facts, one)
}


def build(kind: str, key: str, seed: tuple[int, ...], dtype: str, rows: int, keys: int) -> Batch:
    """The batch of one kind; the same arguments always give the same bits.

    Every batch of one length has exactly ``rows`` rows, so that a compiler sees one shape: a kind that needs pairs or
    groups repeats its first rows at the end.
    """
    form = FORMATS[dtype]
    rng = np.random.default_rng(seed)
    parts = KINDS[kind](rng, form, rows, keys)
    mask: Bools = parts["mask"]
    for name in ("cotangents", "tangents"):
        if name not in parts:
            parts[name] = vectors(rng, form, mask)
    family: Codes = parts.get("family", np.zeros(len(mask), np.int64))
    fill = np.arange(rows) % max(len(mask), 1)

    def stored(name: str) -> Any:
        with np.errstate(over="ignore"):
            return rounded(parts[name], form).astype(form.dtype)[fill]

    return Batch(
        key=key,
        dtype=dtype,
        scores=stored("scores"),
        mask=mask[fill],
        cotangents=stored("cotangents"),
        tangents=stored("tangents"),
        family=family[fill].astype(np.int64),
        families=parts["families"],
        relations=parts.get("relations", {}),
        permutation=parts.get("permutation"),
        forward_only=kind in FORWARD_ONLY and keys > SHORT,
    )
