"""The recipes of JAX's entry points."""

from __future__ import annotations

from .recipe import Recipe

ROWS = {
    "jax.softmax-where": "    return jax.nn.softmax(scores, axis=-1, where=mask)",
    "jax.fill-inf": "    return jax.nn.softmax(jnp.where(mask, scores, jnp.full_like(scores, -jnp.inf)), axis=-1)",
    "jax.unguarded-inf": "    return jax.nn.softmax(jnp.where(mask, scores, jnp.full_like(scores, -jnp.inf)), axis=-1)",
}

ATTENTION = """
def forward(q, k, v, mask, scale):
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))  # (B, L, H, d)
    output = jax.nn.dot_product_attention(q, k, v, scale=scale, implementation="xla", {told})
    return jnp.swapaxes(output, 1, 2)
"""

BIAS = "bias=jnp.where(mask, jnp.zeros((), q.dtype), jnp.full((), -jnp.inf, q.dtype))"

LENGTHS = "key_value_seq_lengths=jnp.broadcast_to(mask.any((1, 2)), (len(q), k.shape[1])).sum(-1).astype(jnp.int32)"

JIT = "jax.jit(function)"
JIT_SCALE = 'jax.jit(function, static_argnames="scale")'


def both(id: str, source: str, jit: str) -> dict[str, Recipe]:
    """The recipes of an entry point that is judged eager and jitted."""
    return {f"{id}[eager]": Recipe("jax", source), f"{id}[jit]": Recipe("jax", source, jit)}


def _jax() -> dict[str, Recipe]:
    found = {}
    for id, body in ROWS.items():
        found.update(both(id, f"def forward(scores, mask):\n{body}", JIT))
    name = "jax.dot_product_attention"
    found.update(both(name, ATTENTION.format(told="mask=mask"), JIT_SCALE))
    for form, told in (("-inf", BIAS), ("lengths", LENGTHS), ("causal", "is_causal=True")):
        found[f"{name}[jit,{form}]"] = Recipe("jax", ATTENTION.format(told=told), JIT_SCALE)
    return found


RECIPES: dict[str, Recipe] = _jax()
"""By the id of the subject."""
