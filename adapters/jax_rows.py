"""JAX on its CPU device: ``jax.nn.softmax(where=)``, the double-``where`` reference and the unguarded fill.

Every call runs with 64-bit types enabled, for that call only: otherwise JAX would silently compute float64 in float32,
and a global switch would change the user's own JAX code in this process. Arrays are placed on the CPU whatever other
devices there are. A jitted subject compiles once per shape and dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..spec.formats import DTYPES
from .errors import TargetError, said
from .specimens import leaks, policies
from .subject import Array, Bools, Subject

try:
    from jax import enable_x64 as enable_x64
except ImportError:  # before JAX 0.8
    from jax.experimental import enable_x64 as enable_x64

Formula = Callable[..., jax.Array]


def jax_subject(id: str, formula: Formula, *, jit: bool = True, **declared: Any) -> Subject:
    """A subject with all three methods from one function of JAX arrays, ``formula(scores, mask) -> weights``.

    The VJP is ``jax.vjp``, the JVP ``jax.jvp``; with ``jit`` each of the three is compiled as a whole. ``scores`` and
    ``mask`` (Boolean, True = allowed) have shape ``(rows, keys)``; with ``any_axis=True`` they have any rank, and the
    formula is called as ``formula(scores, mask, axis=axis)``. The path, ``jit`` or ``eager``, is written behind
    the id in brackets. ``declared`` are fields of Subject; by default all four dtypes, and ``half-ops`` for the halves.

    >>> mine = jax_subject("mine.softmax", lambda s, m: jax.nn.softmax(s, where=m))
    >>> mine.id, mine.methods
    ('mine.softmax[jit]', ('forward', 'vjp', 'jvp'))
    """

    def pull(scores: jax.Array, mask: jax.Array, cotangents: jax.Array, **along: int) -> jax.Array:
        _, back = jax.vjp(lambda x: formula(x, mask, **along), scores)
        return back(cotangents)[0]

    def push(scores: jax.Array, mask: jax.Array, tangents: jax.Array, **along: int) -> jax.Array:
        return jax.jvp(lambda x: formula(x, mask, **along), (scores,), (tangents,))[1]

    path = "jit" if jit else "eager"
    forward, vjp, jvp = (
        _on_numpy(jax.jit(f, static_argnames="axis") if jit and declared.get("any_axis") else jax.jit(f) if jit else f)
        for f in (formula, pull, push)
    )
    declared = {"dtypes": DTYPES, "tier": {"half": "half-ops"}, **declared}
    return Subject(f"{id}[{path}]", forward, vjp, jvp, path=path, **declared)


def cpu_device() -> jax.Device:
    """JAX's CPU device. Raises TargetError where the environment has turned it off."""
    try:
        return jax.devices("cpu")[0]
    except Exception as e:  # JAX raises an AssertionError for some settings, a RuntimeError for others.
        raise TargetError(
            f"JAX offers no CPU device: {said(e)}. Add cpu to the environment variable JAX_PLATFORMS, or unset it."
        ) from e


def _on_numpy(function: Callable[..., jax.Array]) -> Callable[..., Array]:
    """``function`` over NumPy arrays, on the CPU device, with 64-bit types."""

    def call(*arrays: Array | Bools, **along: int) -> Array:
        cpu = cpu_device()
        with enable_x64(True), jax.default_device(cpu):
            return np.asarray(function(*(jax.device_put(a, cpu) for a in arrays), **along))

    return call


def softmax_where(scores: jax.Array, mask: jax.Array, axis: int = -1) -> jax.Array:
    """``jax.nn.softmax`` with its own ``where=``."""
    return jax.nn.softmax(scores, axis=axis, where=mask)


def double_where(scores: jax.Array, mask: jax.Array, axis: int = -1) -> jax.Array:
    """An empty row is normalised over zeros and then selected away, so that nothing is NaN on the way."""
    zero = jnp.zeros_like(scores)
    blocked = jnp.where(
        jnp.broadcast_to(mask, scores.shape).any(axis, keepdims=True), jnp.full_like(scores, -jnp.inf), zero
    )
    return jnp.where(mask, jax.nn.softmax(jnp.where(mask, scores, blocked), axis=axis), zero)


def fill_inf(scores: jax.Array, mask: jax.Array, axis: int = -1) -> jax.Array:
    """The form written most often. An empty row is NaN."""
    return jax.nn.softmax(jnp.where(mask, scores, jnp.full_like(scores, -jnp.inf)), axis=axis)


def _softmax(x: jax.Array) -> jax.Array:
    return jax.nn.softmax(x, axis=-1)


def subjects() -> list[Subject]:
    """Every JAX subject, specimens included."""
    cpu_device()  # Refuse now, rather than at the first call of each subject.
    promises = frozenset({"isolation", "allowed-nan-visible"})
    reference = jax_subject("jax.double-where", double_where, adapter="jax", role="reference", promises=promises)
    return [
        reference,
        jax_subject("jax.softmax-where", softmax_where, jit=False, adapter="jax"),
        jax_subject("jax.softmax-where", softmax_where, adapter="jax", any_axis=True),
        jax_subject("jax.fill-inf", fill_inf, adapter="jax", contract="nan"),
        *leaks("jax", jax_subject, jnp, _softmax),
        *policies(reference),
    ]
