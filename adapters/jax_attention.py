"""JAX's ``jax.nn.dot_product_attention`` on the CPU: a Boolean mask, a bias of ``-inf``, key lengths, a causal flag.

The implementation ``xla`` is asked for by name. Arrays are translated to JAX's layout ``(B, L, H, d)`` and back inside
the call. Every call runs with 64-bit types enabled, for that call only. ``float64`` is offered because the entry point
takes it and returns it; inside, it casts the scores to float32 before the softmax, so its accuracy is not that of
float64, and a run says so. A jitted subject compiles once per shape, dtype and scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..spec.formats import DTYPES
from .attention import Attention
from .encodings import lengths_of
from .jax_rows import cpu_device, enable_x64
from .subject import Array, Bools

Formula = Callable[..., jax.Array]
"""``(q, k, v, told, scale)`` in the layout ``(B, H, L, d)`` -> the output; ``told`` is what it is told of the mask."""

NO_FLOAT16 = (
    "Under jit, JAX refuses float16 attention on the CPU: it asks for products of the kind F16_F16_F32, which XLA does "
    "not offer there."
)
LIMITS = {"values of another width": "The entry point demands values of the width of the keys."}

COMPILED = "Every shape is compiled anew, which takes a third of a second."

TIER = {"half": "fused", "vjp:half": "half-ops", "jvp:half": "half-ops"}
"""With halves the weights are cast to storage before they meet the values, and so are, one after another, the
cotangents and tangents of weights, scores and products."""


def jax_attention(
    id: str,
    formula: Formula,
    *,
    jit: bool = True,
    tell: Callable[[Array, Array, Bools], Array] = lambda q, k, mask: mask,
    **declared: Any,
) -> Attention:
    """An attention subject with all three methods from one function of JAX arrays, ``formula(q, k, v, told, scale)``.

    Arrays have the axes ``(B, H, L, d)``; ``tell(q, k, mask)`` makes ``told`` of the Boolean mask in NumPy, by default
    the mask itself; ``scale`` is a Python float. The VJP is ``jax.vjp``, the JVP ``jax.jvp``; with ``jit`` each of the
    three is compiled as a whole. ``declared`` are fields of Attention.

    >>> def attend(q, k, v, mask, scale):
    ...     scores = jnp.where(mask, scale * (q @ k.mT), -jnp.inf)
    ...     return jax.nn.softmax(scores, where=mask) @ v
    >>> jax_attention("mine.attention[jit]", attend).methods
    ('forward', 'vjp', 'jvp')
    """

    def forward(q: jax.Array, k: jax.Array, v: jax.Array, told: jax.Array, scale: float) -> jax.Array:
        return formula(q, k, v, told, scale)

    def pull(
        q: jax.Array, k: jax.Array, v: jax.Array, told: jax.Array, scale: float, cotangent: jax.Array
    ) -> tuple[jax.Array, ...]:
        _, back = jax.vjp(lambda *x: formula(*x, told, scale), q, k, v)
        return tuple(back(cotangent))

    def push(
        q: jax.Array, k: jax.Array, v: jax.Array, told: jax.Array, scale: float, tangents: tuple[jax.Array, ...]
    ) -> jax.Array:
        return jax.jvp(lambda *x: formula(*x, told, scale), (q, k, v), tuple(tangents))[1]

    def on_numpy(function: Callable[..., Any]) -> Callable[..., Any]:
        run = jax.jit(function, static_argnames="scale") if jit else function

        def call(q: Array, k: Array, v: Array, mask: Bools, scale: float, *vector: Any) -> Any:
            cpu = cpu_device()
            with enable_x64(True), jax.default_device(cpu):
                told = tell(q, k, mask)
                placed = jax.device_put((q, k, v, told), cpu)
                return jax.tree.map(np.asarray, run(*placed, float(scale), *jax.device_put(vector, cpu)))

        return call

    offered = tuple(d for d in DTYPES if d not in declared.get("unsupported", {}))
    declared = {"dtypes": offered, "path": "jit" if jit else "eager", "few_shapes": COMPILED, **declared}
    if not jit:
        declared = {"opt_in": "every operation is compiled for every shape", **declared}
    return Attention(id, on_numpy(forward), on_numpy(pull), on_numpy(push), **declared)


def _heads_last(x: jax.Array) -> jax.Array:
    return jnp.swapaxes(x, 1, 2)


def dot_product_attention(q: jax.Array, k: jax.Array, v: jax.Array, scale: float, **told: Any) -> jax.Array:
    """``jax.nn.dot_product_attention(implementation="xla")`` for arrays with the axes ``(B, H, L, d)``."""
    turned = map(_heads_last, (q, k, v))
    return _heads_last(jax.nn.dot_product_attention(*turned, scale=scale, implementation="xla", **told))


def _by_mask(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array, scale: float) -> jax.Array:
    return dot_product_attention(q, k, v, scale, mask=mask)


def _by_bias(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array, scale: float) -> jax.Array:
    zero = jnp.zeros((), q.dtype)
    return dot_product_attention(q, k, v, scale, bias=jnp.where(mask, zero, jnp.full_like(zero, -jnp.inf)))


def _by_lengths(q: jax.Array, k: jax.Array, v: jax.Array, lengths: jax.Array, scale: float) -> jax.Array:
    return dot_product_attention(q, k, v, scale, key_value_seq_lengths=lengths)


def _by_flag(q: jax.Array, k: jax.Array, v: jax.Array, _: jax.Array, scale: float) -> jax.Array:
    return dot_product_attention(q, k, v, scale, is_causal=True)


def _lengths(q: Array, k: Array, mask: Bools) -> Array:
    return lengths_of(mask, k.shape[0], k.shape[2])


def _subject(form: str, formula: Formula, *, jit: bool = True, **declared: Any) -> Attention:
    path = ",".join(filter(None, ("jit" if jit else "eager", form)))
    return jax_attention(
        f"jax.dot_product_attention[{path}]",
        formula,
        jit=jit,
        adapter="jax",
        tier=TIER,
        limits=LIMITS,
        unsupported={"float16": NO_FLOAT16} if jit else {},
        group="jax.dot_product_attention",
        kernel="implementation='xla' is passed; on the CPU there is no other.",
        **declared,
    )


def subjects() -> list[Attention]:
    """``jax.nn.dot_product_attention`` by a mask, eager and jitted, and jitted by a bias, lengths and its own flag."""
    cpu_device()  # Refuse now, rather than at the first call of each subject.
    return [
        _subject("", _by_mask, jit=False),
        _subject("", _by_mask, rows={"tier": {"half": "half-ops"}}),
        _subject("-inf", _by_bias, encoding="additive", contract="nan"),
        _subject("lengths", _by_lengths, tell=_lengths, encoding="lengths"),
        _subject("causal", _by_flag, encoding="causal", causal="top-left"),
    ]
