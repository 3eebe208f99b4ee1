"""NumPy's masked attention: the materialised reference with hand-written derivatives, and the same in other encodings.

The reference selects and never multiplies by a mask: whatever stands at a blocked key, in a query without an allowed
key or in the cotangent of such a query is not read. The halves are computed in float32 and rounded once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..spec.attention.problem import Alignment
from ..spec.formats import DTYPES
from .attention import Attention, AttentionAnswer
from .encodings import causal_mask, first_keys, lengths_of
from .numpy_heads import Heads, product, turned
from .numpy_rows import softmax_where
from .numpy_tiled import tiled
from .subject import Array, Bools

PROMISES = frozenset({"isolation", "allowed-nan-visible"})


def _scores(h: Heads, scale: float) -> Array:
    return np.asarray(float(scale) * (h.q @ turned(h.k)))


def _centred(h: Heads, weights: Array, x: Array) -> Array:
    """``softmaxBackwardFromWeightsSpec`` of every row; what stands at a blocked key of ``x`` is not read."""
    x = np.where(h.mask, x, 0).astype(weights.dtype)
    return np.where(h.mask, weights * (x - np.sum(weights * x, axis=-1, keepdims=True)), 0).astype(weights.dtype)


def _weights(h: Heads, scale: float) -> Array:
    weights = softmax_where(_scores(h, scale), h.mask).weights
    # Where an allowed score is NaN so is the sum, and 0 / NaN; in dv that would reach keys which the query may not see.
    return np.where(h.mask, weights, 0).astype(weights.dtype)


def attention(q: Array, k: Array, v: Array, mask: Bools, scale: float) -> AttentionAnswer:
    """Masked scaled dot-product attention (Lean ``Spec.scaledDotProductAttention``), with its weights materialised.

    ``q``: ``(B, H, Lq, d)``; ``k``: ``(B, G, Lk, d)``; ``v``: ``(B, G, Lk, dv)``, ``G`` dividing ``H``; any of the four
    formats, any length may be 0. ``mask``: Boolean, True = allowed, of a shape that broadcasts to ``(B, H, Lq, Lk)``.
    Returns output, weights and ``valid``. Raises ValueError, as NumPy does, for shapes that do not fit.

    >>> q, k = np.zeros((1, 1, 1, 2)), np.zeros((1, 1, 2, 2))
    >>> v = np.array([3.0, np.nan]).reshape(1, 1, 2, 1)
    >>> attention(q, k, v, np.array([True, False]).reshape(1, 1, 1, 2), 1.0).output.ravel()
    array([3.])
    """
    with np.errstate(all="ignore"):
        h = Heads.of(q, k, v, mask)
        weights = _weights(h, scale)
        return h.answer(product(weights, h.v, h.mask), weights, q.dtype)


def attention_vjp(
    q: Array, k: Array, v: Array, mask: Bools, scale: float, cotangent: Array
) -> tuple[Array, Array, Array]:
    """``(dq, dk, dv)`` of :func:`attention` for a cotangent of the output, ``(B, H, Lq, dv)`` (Lean
    ``Spec.scaledDotProductAttentionBackward``).

    The cotangent of a query without an allowed key is not read.

    >>> one = np.ones((1, 1, 1, 1))
    >>> [x.item() for x in attention_vjp(one, one, one, one.astype(bool), 1.0, 5 * one)]
    [0.0, 0.0, 5.0]
    """
    with np.errstate(all="ignore"):
        h = Heads.of(q, k, v, mask)
        weights = _weights(h, scale)
        g = np.where(h.valid, h.by_group(cotangent), 0).astype(weights.dtype)
        d_scores = float(scale) * _centred(h, weights, g @ turned(h.v))
        d_q = product(d_scores, h.k, h.mask)
        d_k = product(turned(d_scores), h.q, turned(h.mask))
        d_v = product(turned(weights), g, turned(h.mask))
        return h.by_head(d_q).astype(q.dtype), d_k.astype(k.dtype), d_v.astype(v.dtype)


def attention_jvp(
    q: Array, k: Array, v: Array, mask: Bools, scale: float, tangents: tuple[Array, Array, Array]
) -> Array:
    """The tangent of the output of :func:`attention` along ``tangents = (dq, dk, dv)`` (Lean
    ``Spec.scaledDotProductAttentionJvp``).

    >>> one = np.ones((1, 1, 1, 1))
    >>> attention_jvp(one, one, one, one.astype(bool), 1.0, (one, one, 5 * one)).item()
    5.0
    """
    with np.errstate(all="ignore"):
        h, moved = Heads.of(q, k, v, mask), Heads.of(*tangents, mask)
        weights = _weights(h, scale)
        d_scores = float(scale) * (moved.q @ turned(h.k) + h.q @ turned(moved.k))
        tangent = product(_centred(h, weights, d_scores), h.v, h.mask) + product(weights, moved.v, h.mask)
        return h.by_head(tangent).astype(q.dtype)


def attention_additive(q: Array, k: Array, v: Array, mask: Bools, scale: float) -> Array:
    """The form written most often: ``-inf`` is added to the scores of blocked keys. An empty row is NaN, and so is
    what a NaN at a blocked key meets."""
    with np.errstate(all="ignore"):
        h = Heads.of(q, k, v, mask)
        scores = _scores(h, scale)
        scores = scores + np.where(h.mask, 0, -np.inf).astype(scores.dtype)
        e = np.exp(scores - np.max(scores, axis=-1, keepdims=True, initial=-np.inf))
        return h.by_head(e / np.sum(e, axis=-1, keepdims=True) @ h.v).astype(q.dtype)


def _told(plain: Attention, name: str, mask_of: Callable[[Array, Array, Bools], Bools], **declared: Any) -> Attention:
    """The reference, told of the mask by a flag or by lengths only, from which it makes its own."""

    def told(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda q, k, v, mask, scale, *vector: function(q, k, v, mask_of(q, k, mask), scale, *vector)

    return replace(
        plain,
        id=f"{plain.id}[{name}]",
        forward=told(attention),
        vjp=told(attention_vjp),
        jvp=told(attention_jvp),
        rows=False,
        **declared,
    )


def _from_lengths(q: Array, k: Array, mask: Bools) -> Bools:
    return first_keys(lengths_of(mask, len(q), k.shape[2]), k.shape[2])[:, None, None, :]


def _from_flag(alignment: Alignment) -> Callable[[Array, Array, Bools], Bools]:
    return lambda q, k, mask: causal_mask(q.shape[2], k.shape[2], alignment)[None, None]


def subjects() -> list[Attention]:
    """The reference, as it is and told by lengths or a causal flag, the tiled references, and the additive form."""
    plain = Attention(
        "numpy.attention",
        attention,
        vjp=attention_vjp,
        jvp=attention_jvp,
        adapter="numpy",
        role="reference",
        dtypes=DTYPES,
        contract="zero+valid",
        promises=PROMISES,
        group="numpy.attention",
        kernel="NumPy's own operations.",
        rows={"contract": "zero"},
    )
    # Of no group: its empty rows are NaN, where the others have 0.
    additive = Attention(
        "numpy.attention[-inf]",
        attention_additive,
        adapter="numpy",
        dtypes=DTYPES,
        role="specimen",
        contract="nan",
        encoding="additive",
        unsupported=dict.fromkeys(("vjp", "jvp"), "NumPy does not differentiate, and nobody has written this by hand."),
        kernel="NumPy's own operations.",
    )
    return [
        plain,
        _told(plain, "lengths", _from_lengths, encoding="lengths"),
        _told(plain, "causal", _from_flag("top-left"), encoding="causal", causal="top-left"),
        _told(plain, "causal-bottom-right", _from_flag("bottom-right"), encoding="causal", causal="bottom-right"),
        additive,
        tiled(32),
        tiled(64, rows=False),
    ]
