"""Flax: ``flax.linen.dot_product_attention``, and the layer that is built on it with projections that do nothing.

The scale is ``1 / sqrt d`` always. Arrays are translated to Flax's layout ``(B, L, H, d)`` inside the call, which runs
on JAX's CPU device.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import linen

from .attention import Attention
from .jax_attention import jax_attention
from .jax_rows import cpu_device

LIMITS = {
    "scale": "Flax divides the queries by the root of their width, and offers no other scale.",
    "grouped heads": "Flax demands as many heads of keys as of queries.",
    "head width": "Flax divides by the root of the width, which must not be 0.",
}
SAME_WIDTH = "The layer has one number of features per head for queries, keys and values."


def _heads_last(x: jax.Array) -> jax.Array:
    return jnp.swapaxes(x, 1, 2)


def linen_function(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array, scale: float) -> jax.Array:
    """``flax.linen.dot_product_attention`` for arrays with the axes ``(B, H, L, d)``."""
    output = linen.dot_product_attention(_heads_last(q), _heads_last(k), _heads_last(v), mask=mask)
    return _heads_last(output)


def linen_layer(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array, scale: float) -> jax.Array:
    """``flax.linen.MultiHeadDotProductAttention`` whose four projections are identities, which are exact."""
    batch, heads, queries, width = q.shape
    features = heads * width
    inward = {"kernel": jnp.eye(features, dtype=q.dtype).reshape(features, heads, width)}
    outward = {"kernel": jnp.eye(features, dtype=q.dtype).reshape(heads, width, features)}
    layer = linen.MultiHeadDotProductAttention(heads, use_bias=False, deterministic=True, precision="highest")
    flat = (_heads_last(x).reshape(batch, x.shape[2], features) for x in (q, k, v))
    parameters = {"query": inward, "key": inward, "value": inward, "out": outward}
    output: Any = layer.apply({"params": parameters}, *flat, mask=mask)
    return _heads_last(output.reshape(batch, queries, heads, width))


def _subject(name: str, formula: Any, *, jit: bool, **declared: Any) -> Attention:
    declared = {"limits": LIMITS, **declared}
    return jax_attention(
        f"flax.linen.{name}[{'jit' if jit else 'eager'}]",
        formula,
        jit=jit,
        adapter="flax",
        tier={"half": "half-ops"},
        widths=lambda d: d > 0,
        group="flax.linen",
        kernel="Einsums and jax.nn.softmax on JAX's CPU device.",
        **declared,
    )


def subjects() -> list[Attention]:
    """The function, eager and jitted, and the layer, jitted."""
    cpu_device()
    layer = {**LIMITS, "values of another width": SAME_WIDTH}
    return [
        _subject("dot_product_attention", linen_function, jit=False),
        _subject("dot_product_attention", linen_function, jit=True, rows={"tier": {"half": "half-ops"}}),
        _subject("MultiHeadDotProductAttention", linen_layer, jit=True, limits=layer),
    ]
