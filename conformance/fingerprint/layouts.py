"""Problems that show one thing each, made so that a given kernel takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...adapters.attention import Attention
from ...spec.attention.problem import Alignment, Problem
from ...spec.batch import Array, Bools, Floats
from ...spec.formats import FORMATS
from ..attention.masks import causal

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)

Pattern = tuple[bool, ...]


@dataclass(frozen=True, eq=False)
class Arranged:
    """A mask that a kernel takes, and the query ``(b, h, i)`` that has the pattern that was asked for."""

    mask: Bools
    at: tuple[int, int, int]
    causal: Alignment | None = None
    lengths: bool = False


def width(subject: Attention, least: int) -> int | None:
    """The smallest power of two from ``least`` that the kernel takes as the width of a head; None where there is none.

    Powers of four make ``1 / sqrt d`` exact, and are preferred where they are no more than twice as wide.
    """
    taken = [d for d in WIDTHS if d >= least and ("head width" not in subject.limits or subject.widths(d))]
    exact = [d for d in taken if round(d**0.5) ** 2 == d]
    return next((d for d in exact if d <= 2 * taken[0]), taken[0]) if taken else None


def arranged(
    subject: Attention, patterns: Sequence[Pattern], wanted: int, *, alignment: str = "", queries: int = 0
) -> Arranged | None:
    """A mask in which some query has ``patterns[wanted]``; the other patterns stand beside it.

    One pattern per query, repeated up to ``queries`` (or as many as there are keys), where the kernel takes a mask that
    differs between queries; else one per batch entry. A causal kernel has its one pattern, of the ``alignment`` that it
    shows: None where that has no such query.
    """
    keys = len(patterns[0])
    queries = queries or keys
    if subject.encoding == "causal":
        corner: Alignment = "bottom-right" if alignment == "bottom-right" else "top-left"
        longer = () if "queries other than keys" in subject.limits else (keys + 2,)
        for lq in (queries, keys, *longer):
            mask = causal(lq, keys, corner)
            hits = np.flatnonzero((mask == np.asarray(patterns[wanted])).all(axis=1))
            if hits.size:
                return Arranged(mask[None, None], (0, 0, int(hits[0])), causal=corner)
        return None
    rows = np.asarray(patterns, np.bool_)
    if subject.encoding == "lengths" or "mask per query" in subject.limits:
        mask = np.broadcast_to(rows[:, None, None, :], (len(rows), 1, queries, keys)).copy()
        return Arranged(mask, (wanted, 0, 0), lengths=subject.encoding == "lengths")
    mask = rows[np.arange(max(queries, len(rows))) % len(rows)][None, None]
    return Arranged(mask, (0, 0, wanted))


def problem(
    subject: Attention, dtype: str, arrangement: Arranged, scores: Floats, *, heads: int, d: int, family: str
) -> Problem:
    """A problem in which every query scores the keys by ``scores``, and values are the identity.

    ``q = (sqrt d, 0, …)`` and ``k_j = (s_j, 0, …)`` with the scale ``1 / sqrt d``: the score of a key depends on that
    key alone, and column ``j`` of an output is the weight of key ``j``. With a root that is no number of the format,
    scores are near to what was asked for.
    """
    form = FORMATS[dtype].dtype
    batch, _, queries, keys = arrangement.mask.shape
    q = np.zeros((batch, heads, queries, d))
    q[..., 0] = d**0.5
    k = np.zeros((batch, heads, keys, d))
    k[..., 0] = scores
    # A value of another width than the head is a limit of many kernels.
    v = np.zeros((batch, heads, keys, d))
    v[..., np.arange(keys), np.arange(keys) % d] = 1.0
    return Problem(
        key=family,
        family=family,
        dtype=dtype,
        q=q.astype(form),
        k=k.astype(form),
        v=v.astype(form),
        mask=arrangement.mask,
        scale=d**-0.5,
        cotangent=wave(q.shape, form, 1),
        tangents=(wave(q.shape, form, 2), wave(k.shape, form, 3), wave(v.shape, form, 4)),
        causal=arrangement.causal,
        lengths=arrangement.lengths,
    )


def wave(shape: tuple[int, ...], form: np.dtype[np.generic], start: int) -> Array:
    """Small numbers that differ from place to place: -3 to 3, and never 0."""
    turns = np.arange(start, start + int(np.prod(shape)))
    values = np.array([1.0, -2.0, 3.0, -1.0, 2.0, -3.0, 0.5])[turns * (turns + 1) // 2 % 7]
    return np.asarray(values.reshape(shape).astype(form))
