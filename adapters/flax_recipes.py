"""The recipes of Flax's attention."""

from __future__ import annotations

from .jax_recipes import JIT_SCALE, both
from .recipe import Recipe

LINEN = """
from flax import linen


def forward(q, k, v, mask, scale):
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))  # (B, L, H, d)
    return jnp.swapaxes(linen.dot_product_attention(q, k, v, mask=mask), 1, 2)
"""

LAYER = """
from flax import linen


def forward(q, k, v, mask, scale):
    batch, heads, queries, width = q.shape
    one = jnp.eye(heads * width, dtype=q.dtype)  # projections that change nothing
    inward, outward = {"kernel": one.reshape(-1, heads, width)}, {"kernel": one.reshape(heads, width, -1)}
    layer = linen.MultiHeadDotProductAttention(heads, use_bias=False, deterministic=True, precision="highest")
    flat = [jnp.swapaxes(x, 1, 2).reshape(batch, x.shape[2], -1) for x in (q, k, v)]
    parameters = {"query": inward, "key": inward, "value": inward, "out": outward}
    output = layer.apply({"params": parameters}, *flat, mask=mask)
    return jnp.swapaxes(output.reshape(batch, queries, heads, width), 1, 2)
"""


def _flax() -> dict[str, Recipe]:
    name = "flax.linen.dot_product_attention"
    found = both(name, LINEN, JIT_SCALE)
    found["flax.linen.MultiHeadDotProductAttention[jit]"] = Recipe("jax", LAYER, JIT_SCALE)
    return found


RECIPES: dict[str, Recipe] = _flax()
"""By the id of the subject."""
