"""Correct attentions that look unusual."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.attention import Attention
from ....adapters.numpy_heads import product, turned
from ....adapters.numpy_tiled import Tiled
from ....spec.batch import Array, Bools
from ....spec.formats import DTYPES
from ...mutants.kit import weights_of
from .kit import Pieces, State, inner, selected, valid
from .mutant import AttentionVariant
from .tiles import Online, flash_centred

FUSED = {"tier": "fused"}


def _safe(scores: Array, mask: Bools) -> Array:
    """A softmax of the scores with ``-inf`` at blocked keys, over zeros where there is nothing else."""
    some = mask.any(axis=-1, keepdims=True)
    filled = np.where(mask, scores, np.where(some, -np.inf, 0)).astype(scores.dtype)
    e = np.exp(filled - np.max(filled, axis=-1, keepdims=True, initial=-np.inf))
    return selected(e / np.sum(e, axis=-1, keepdims=True), mask)


def _exp2(scores: Array, mask: Bools) -> Array:
    factor = scores.dtype.type(np.log2(np.e))
    return weights_of(scores * factor, mask, exp=np.exp2)


def _lse(scores: Array, mask: Bools) -> Array:
    some = mask.any(axis=-1, keepdims=True)
    top = np.where(some, np.max(np.where(mask, scores, -np.inf), axis=-1, keepdims=True, initial=-np.inf), 0)
    total = np.sum(selected(np.exp(np.where(mask, scores - top, 0)), mask), axis=-1, keepdims=True)
    lse = (top + np.log(np.where(some, total, 1))).astype(scores.dtype)
    return selected(np.exp(np.where(mask, scores - lse, 0)), mask)


def _queries_scaled(c: State) -> Array:
    return np.asarray((c.scale * c.q) @ turned(c.k))


def _both_scaled(c: State) -> Array:
    root = float(np.sqrt(c.scale)) if c.scale >= 0 else 1.0
    return np.asarray((root * c.q) @ turned(root * c.k)) if c.scale >= 0 else _queries_scaled(c)


def _normalised_last(c: State) -> Array:
    """The numerators meet the values, and the sum divides the output."""
    top = np.where(valid(c), np.max(np.where(c.mask, c.scores, -np.inf), axis=-1, keepdims=True, initial=-np.inf), 0)
    e = selected(np.exp(np.where(c.mask, c.scores - top, 0)).astype(c.v.dtype), c.mask)
    total = np.where(valid(c), np.sum(e, axis=-1, keepdims=True), 1)
    return np.asarray(product(e, c.v, c.mask) / total).astype(c.v.dtype)


def _reversed_keys(c: State) -> Array:
    return product(c.weights[..., ::-1], c.v[..., ::-1, :], c.mask[..., ::-1])


def _one_key_at_a_time(c: State) -> Array:
    out = np.zeros((*c.weights.shape[:-1], c.v.shape[-1]), c.weights.dtype)
    for j in range(c.v.shape[-2]):
        seen = c.mask[..., j, None]
        out += np.where(seen, c.weights[..., j, None] * c.v[..., j, None, :], 0).astype(out.dtype)
    return out


def _double(x: Array) -> Array:
    return x.astype(np.float64)


def _twice(c: State, x: Array) -> Array:
    """The mean subtracted in two steps: what is left of it after the first is subtracted again."""
    x = selected(x, c.mask)
    x = x - inner(c.weights, x)
    return selected(c.weights * (x - inner(c.weights, x)), c.mask)


def _of(name: str, story: str, declared: dict[str, Any] | None = None, **steps: Any) -> AttentionVariant:
    subject = Pieces(**steps).subject(f"variant.attention.{name}", adapter="variant", **(declared or {}))
    return AttentionVariant(name, story, subject)


def _by_tiles(tile: int, lse: bool) -> AttentionVariant:
    name, made = f"tiles-of-{tile}" + ("-by-lse" if lse else ""), Tiled(tile, lse)
    how = "their log-sum-exp" if lse else "maximum and sum"
    subject = Attention(
        f"variant.attention.{name}",
        made.forward,
        made.vjp,
        made.jvp,
        adapter="variant",
        dtypes=DTYPES,
        contract="zero+valid",
        tier="fused",
    )
    return AttentionVariant(name, f"Tiles of {tile} queries and keys; rows are rebuilt from {how}.", subject)


def variants() -> list[AttentionVariant]:
    """All of them."""
    online: dict[str, Any] = {"output": Online(), "centred": flash_centred, "declared": FUSED}
    return [
        _of("plain", "As it is written, with keys and values repeated for the heads of a group."),
        _of(
            "where-safe",
            "Blocked scores are -inf, and a row without an allowed key is normalised over zeros.",
            weights=_safe,
        ),
        _of("queries-scaled", "The queries are scaled before the product.", scores=_queries_scaled),
        _of("both-scaled", "Queries and keys are scaled by the root of the scale.", scores=_both_scaled),
        _of("normalised-last", "The output is divided by the sum.", output=_normalised_last, declared=FUSED),
        _of("keys-reversed", "The keys are summed from the last to the first.", output=_reversed_keys),
        _of("keys-one-by-one", "The keys are summed one after another.", output=_one_key_at_a_time),
        _of("in-float64", "Everything is computed in float64 and rounded once.", wide=_double),
        _of("centred-twice", "The mean is subtracted twice.", centred=_twice),
        _of("base-2", "The exponentials have base 2.", weights=_exp2, declared=FUSED),
        _of("by-lse", "The weights are exp(s - lse).", weights=_lse, declared=FUSED),
        _of("with-flags", "Weights and flags are returned too.", flags=True, declared={"contract": "zero+valid"}),
        _of("online", "An online softmax over tiles of 16 keys, centred by <dO, O>.", **online),
        _of("online-by-one", "An online softmax, one key at a time.", **{**online, "output": Online(tile=1)}),
        _of(
            "weights-cast",
            "The weights are rounded to float16 before they meet the values, as kernels for float16 do.",
            weights=lambda s, m: weights_of(s, m).astype(np.float16).astype(np.float32),
            declared={**FUSED, "dtypes": ("float16",)},
        ),
        *(_by_tiles(tile, lse) for tile, lse in ((1, False), (16, False), (48, True))),
    ]
