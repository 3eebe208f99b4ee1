"""The formula is right and the arithmetic is not good enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from ....adapters.numpy_heads import product, turned
from ....spec.batch import Array, Bools
from ....spec.formats import HALVES
from ...mutants.kit import weights_of
from .kit import State, mutant, plain_output, plain_scores
from .mutant import AttentionMutant

BELOW = "Below half a rounding of the storage format for random inputs."


def rounded(x: Array, dtype: Any) -> Array:
    """Rounded to another format and back."""
    return x.astype(dtype).astype(x.dtype)


def _tf32(x: Array) -> Array:
    """Rounded to 11 bits of significand, as the inputs of TF32 products are; float32 only."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    return ((bits + 0x0FFF + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(np.float32)


def _exp(relative: float) -> Callable[[Array, Bools], Array]:
    """An exponential with a relative error of about that size, which depends on the argument."""

    def exp(t: Array) -> Array:
        return np.asarray(np.exp(t) * (1 + relative * np.cos(37 * t))).astype(t.dtype)

    return lambda scores, mask: weights_of(scores, mask, exp=exp)


def _sum_in(dtype: Any) -> Callable[[Array, Bools], Array]:
    """The sum is accumulated in a half format, one key after another."""

    def total(e: Array, mask: Bools) -> Array:
        out = np.zeros(e.shape[:-1], dtype)
        for j in range(e.shape[-1]):
            out = (out + e[..., j].astype(dtype)).astype(dtype)
        return out[..., None].astype(e.dtype)

    return lambda scores, mask: weights_of(scores, mask, total=total)


def _eps(eps: float) -> Callable[[Array, Bools], Array]:
    return lambda scores, mask: weights_of(scores, mask, total=lambda e, m: np.sum(e, axis=-1, keepdims=True) + eps)


def _no_shift(scores: Array, mask: Bools) -> Array:
    return weights_of(scores, mask, top=lambda x, m: np.zeros((*x.shape[:-1], 1), x.dtype))


def _clamped_shift(scores: Array, mask: Bools) -> Array:
    return weights_of(scores, mask, top=lambda x, m: np.zeros((*x.shape[:-1], 1), x.dtype) + x.dtype.type(20))


def _shift_over_blocked(scores: Array, mask: Bools) -> Array:
    return weights_of(scores, mask, top=lambda x, m: np.max(x, axis=-1, keepdims=True, initial=-np.inf))


def _block_maxima(scores: Array, mask: Bools) -> Array:
    """Every block of four keys is shifted by its own maximum, and nothing is rescaled."""
    shifted = scores.copy()
    for at in range(0, scores.shape[-1], 4):
        part = np.where(mask[..., at : at + 4], scores[..., at : at + 4], -np.inf)
        top = np.max(part, axis=-1, keepdims=True, initial=-np.inf)
        shifted[..., at : at + 4] -= np.where(np.isfinite(top), top, 0).astype(scores.dtype)
    return _no_shift(shifted, mask)


def _log2e(scores: Array, mask: Bools) -> Array:
    return weights_of(scores, mask, exp=lambda t: np.exp2(t * t.dtype.type(1.4427)))


def _weights_in(dtype: Any) -> Callable[[Array, Bools], Array]:
    return lambda scores, mask: rounded(weights_of(scores, mask), dtype)


def _scores_in(dtype: Any) -> Callable[[State], Array]:
    return lambda c: rounded(plain_scores(c), dtype)


def _tf32_output(c: State) -> Array:
    c.k = _tf32(c.k)
    return product(_tf32(c.weights), _tf32(c.v), c.mask)


def _narrow(x: Array) -> Array:
    return x.astype(np.float32)


def _scaled(factor: Callable[[State], float]) -> Callable[[State], Array]:
    return lambda c: np.asarray(factor(c) * (c.q @ turned(c.k)))


def _summed_in_half(c: State) -> Array:
    """The output is accumulated in float16, one key after another."""
    out = np.zeros((*c.weights.shape[:-1], c.v.shape[-1]), np.float16)
    for j in range(c.v.shape[-2]):
        seen = c.mask[..., j, None]
        out = out + np.where(seen, c.weights[..., j, None] * c.v[..., j, None, :], 0).astype(np.float16)
    return out.astype(c.v.dtype)


def mutants() -> list[AttentionMutant]:
    """All of them."""
    halves = dict.fromkeys(HALVES, BELOW)
    no_bf16 = {"bfloat16": BELOW}

    def scale_of(c: State) -> float:
        return c.scale * c.scale

    return [
        mutant("scale-of-the-width", "L", "The scale is 1 / d instead of 1 / sqrt d.", scores=_scaled(scale_of)),
        mutant("scale-missing", "L", "The scores are not scaled.", scores=_scaled(lambda c: 1.0)),
        mutant(
            "tf32-inputs",
            "numeric",
            "The inputs of the products are rounded to 11 bits.",
            scores=lambda c: c.scale * (_tf32(c.q) @ turned(_tf32(c.k))),
            output=_tf32_output,
            declared={"dtypes": ("float32",)},
        ),
        mutant(
            "scores-in-bfloat16",
            "numeric",
            "The scores are rounded to bfloat16.",
            scores=_scores_in(ml_dtypes.bfloat16),
        ),
        mutant("scores-in-float16", "numeric", "The scores are rounded to float16.", scores=_scores_in(np.float16)),
        mutant(
            "weights-in-bfloat16",
            "numeric",
            "The weights are rounded to bfloat16.",
            weights=_weights_in(ml_dtypes.bfloat16),
        ),
        mutant("weights-in-float16", "numeric", "The weights are rounded to float16.", weights=_weights_in(np.float16)),
        mutant("eps-1e-6", "numeric", "1e-6 is added to the sum.", weights=_eps(1e-6), survivors=halves),
        mutant("fast-exp-1e-3", "numeric", "The exponential is off by 1e-3.", weights=_exp(1e-3)),
        mutant("fast-exp-1e-4", "numeric", "The exponential is off by 1e-4.", weights=_exp(1e-4)),
        mutant("fast-exp-1e-5", "numeric", "The exponential is off by 1e-5.", weights=_exp(1e-5)),
        mutant(
            "fast-exp-1e-6",
            "numeric",
            "The exponential is off by 1e-6.",
            weights=_exp(1e-6),
            survivors=halves,
        ),
        mutant("log2e-1.4427", "numeric", "log2 e is taken for 1.4427.", weights=_log2e, survivors=no_bf16),
        mutant("sum-in-float16", "numeric", "The sum is accumulated in float16.", weights=_sum_in(np.float16)),
        mutant("output-summed-in-float16", "numeric", "The output is accumulated in float16.", output=_summed_in_half),
        mutant(
            "no-shift",
            "L",
            "No maximum is subtracted.",
            weights=_no_shift,
        ),
        mutant(
            "shift-of-20",
            "L",
            "20 is subtracted instead of the maximum.",
            weights=_clamped_shift,
        ),
        mutant("shift-over-blocked", "L", "The maximum counts blocked keys.", weights=_shift_over_blocked),
        mutant("block-maxima-not-rescaled", "L", "Each block has a maximum of its own.", weights=_block_maxima),
        mutant(
            "float64-in-float32",
            "numeric",
            "float64 is computed in float32.",
            wide=_narrow,
            declared={"dtypes": ("float64",)},
        ),
        mutant(
            "half-in-bfloat16",
            "numeric",
            "Everything is rounded to bfloat16 on the way in.",
            wide=lambda x: x.astype(ml_dtypes.bfloat16).astype(np.float32),
            declared={"dtypes": ("float32", "float16")},
        ),
        mutant(
            "output-truncated",
            "numeric",
            "The output is cut to storage instead of rounded.",
            output=lambda c: np.nextafter(plain_output(c), 0) * (1 - 2.0**-8),
        ),
    ]
