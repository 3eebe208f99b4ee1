"""What attention mutants are made of: a correct masked attention whose steps can be replaced one at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....adapters.attention import Attention, AttentionAnswer
from ....adapters.numpy_heads import product, turned
from ....adapters.numpy_heads import wide as computed
from ....spec.batch import Array, Bools
from ....spec.formats import DTYPES
from ...mutants.kit import weights_of
from .mutant import AttentionMutant


@dataclass(eq=False)
class State:
    """One call, in the format computed in, with keys and values repeated for every head: ``q`` ``(B, H, Lq, d)``, ``k``
    ``(B, H, Lk, d)``, ``v`` ``(B, H, Lk, dv)``, ``mask`` ``(B, H, Lq, Lk)``, ``group``: the group of each head;
    ``scores``, ``weights`` and ``output`` as they are computed; ``g``: the cotangent of the output."""

    q: Array
    k: Array
    v: Array
    mask: Bools
    scale: float
    group: Any
    groups: int
    scores: Array = field(init=False)
    weights: Array = field(init=False)
    output: Array = field(init=False)
    g: Array = field(init=False)


Step = Callable[[State], Array]


def plain_group(heads: int, groups: int) -> Any:
    """The group of each head: ``h // (H // G)``."""
    return np.arange(heads) // max(1, heads // max(1, groups))


def plain_scores(c: State) -> Array:
    """``scale q k^T``."""
    return np.asarray(c.scale * (c.q @ turned(c.k)))


def plain_weights(scores: Array, mask: Bools) -> Array:
    """The masked softmax of every row."""
    return weights_of(scores, mask)


def plain_output(c: State) -> Array:
    """``A v``, in which blocked values are not read."""
    return product(c.weights, c.v, c.mask)


def inner(a: Array, b: Array) -> Array:
    """The inner product of every two rows, with an axis of length 1."""
    return np.asarray(np.sum(a * b, axis=-1, keepdims=True))


def plain_centred(c: State, x: Array) -> Array:
    """``w (x - <w, x>)`` of each row, where ``x`` is read at allowed keys only."""
    x = selected(x, c.mask)
    return selected(c.weights * (x - inner(c.weights, x)), c.mask)


def plain_d_weights(c: State) -> Array:
    """``dO v^T``."""
    return np.asarray(c.g @ turned(c.v))


def plain_d_v(c: State) -> Array:
    """``A^T dO``."""
    return product(turned(c.weights), c.g, turned(c.mask))


def plain_d_q(c: State, d_scores: Array) -> Array:
    """``dS k`` times the scale."""
    return c.scale * product(d_scores, c.k, c.mask)


def plain_d_k(c: State, d_scores: Array) -> Array:
    """``dS^T q`` times the scale."""
    return c.scale * product(turned(d_scores), c.q, turned(c.mask))


def plain_sum(x: Array, group: Any, groups: int) -> Array:
    """What the heads of each group add to its gradient."""
    out = np.zeros((x.shape[0], groups, *x.shape[2:]), x.dtype)
    for head, g in enumerate(group):
        out[:, g] += x[:, head]
    return out


def plain_moved_scores(c: State, tangents: tuple[Array, Array, Array]) -> Array:
    """``scale (dq k^T + q dk^T)``."""
    return np.asarray(c.scale * (tangents[0] @ turned(c.k) + c.q @ turned(tangents[1])))


def plain_tangent(c: State, d_weights: Array, d_v: Array) -> Array:
    """``dA v + A dv``."""
    return product(d_weights, c.v, c.mask) + product(c.weights, d_v, c.mask)


def selected(x: Array, mask: Bools) -> Array:
    """The array, 0 where the mask is False."""
    return np.asarray(np.where(mask, x, 0).astype(x.dtype))


def valid(c: State) -> Bools:
    """Whether each query has an allowed key, ``(B, H, Lq, 1)``."""
    return np.asarray(c.mask.any(axis=-1, keepdims=True))


def same_mask(mask: Bools) -> Bools:
    """The mask."""
    return mask


@dataclass(frozen=True)
class Pieces:
    """The steps of an attention, each by default the correct one.

    ``mask`` serves all methods, unless ``back_mask`` serves vjp and jvp. ``weights(scores, mask)`` gives ``A``;
    ``output`` the result of ``forward`` from it; ``back`` replaces the weights that the backward pass uses.
    """

    wide: Callable[[Array], Array] = computed
    mask: Callable[[Bools], Bools] = same_mask
    back_mask: Callable[[Bools], Bools] | None = None
    group: Callable[[int, int], Any] = plain_group
    scores: Step = plain_scores
    weights: Callable[[Array, Bools], Array] = plain_weights
    output: Step = plain_output
    back: Step = lambda c: c.weights
    cotangent: Step = lambda c: selected(c.g, valid(c))
    d_weights: Step = plain_d_weights
    centred: Callable[[State, Array], Array] = plain_centred
    d_q: Callable[[State, Array], Array] = plain_d_q
    d_k: Callable[[State, Array], Array] = plain_d_k
    d_v: Step = plain_d_v
    group_sum: Callable[[Array, Any, int], Array] = plain_sum
    moved_scores: Callable[[State, tuple[Array, Array, Array]], Array] = plain_moved_scores
    pushed: Callable[[State, Array], Array] = plain_centred
    tangent: Callable[[State, Array, Array], Array] = plain_tangent
    flags: bool = False

    def _state(self, q: Array, k: Array, v: Array, mask: Bools, scale: float, back: bool) -> State:
        batch, heads, queries, _ = q.shape
        groups, keys = k.shape[1:3]
        group = self.group(heads, groups)
        full = np.broadcast_to(mask, (batch, heads, queries, keys))
        chosen = self.back_mask if back and self.back_mask is not None else self.mask
        c = State(
            self.wide(q), self.wide(k)[:, group], self.wide(v)[:, group], chosen(full), float(scale), group, groups
        )
        c.scores = self.scores(c)
        c.weights = self.weights(c.scores, c.mask)
        c.output = self.output(c)
        return c

    def forward(self, q: Array, k: Array, v: Array, mask: Bools, scale: float) -> Array | AttentionAnswer:
        """The output."""
        with np.errstate(all="ignore"):
            c = self._state(q, k, v, mask, scale, False)
            output = c.output.astype(q.dtype)
            return AttentionAnswer(output, c.weights.astype(q.dtype), valid(c)[..., 0]) if self.flags else output

    def vjp(
        self, q: Array, k: Array, v: Array, mask: Bools, scale: float, cotangent: Array
    ) -> tuple[Array, Array, Array]:
        """``(dq, dk, dv)``."""
        with np.errstate(all="ignore"):
            c = self._state(q, k, v, mask, scale, True)
            c.g = self.wide(cotangent)
            c.g = self.cotangent(c)
            c.weights = self.back(c)
            d_scores = self.centred(c, self.d_weights(c))
            d_k, d_v = (
                self.group_sum(x, c.group, c.groups).astype(q.dtype) for x in (self.d_k(c, d_scores), self.d_v(c))
            )
            return self.d_q(c, d_scores).astype(q.dtype), d_k, d_v

    def jvp(
        self, q: Array, k: Array, v: Array, mask: Bools, scale: float, tangents: tuple[Array, Array, Array]
    ) -> Array:
        """The tangent of the output."""
        with np.errstate(all="ignore"):
            c = self._state(q, k, v, mask, scale, True)
            moved = (self.wide(tangents[0]), self.wide(tangents[1])[:, c.group], self.wide(tangents[2])[:, c.group])
            d_weights = self.pushed(c, self.moved_scores(c, moved))
            return self.tangent(c, d_weights, moved[2]).astype(q.dtype)

    def subject(self, id: str, **declared: Any) -> Attention:
        """All of it as a subject; ``declared`` are fields of Attention.

        >>> Pieces().subject("my.attention").methods
        ('forward', 'vjp', 'jvp')
        """
        return Attention(id, self.forward, self.vjp, self.jvp, **{"dtypes": DTYPES, **declared})


def mutant(
    name: str, kind: str, story: str, *, survivors: Mapping[str, str] | None = None, declared: Any = None, **steps: Any
) -> AttentionMutant:
    """A mutant with these ``steps`` of :class:`Pieces` replaced; ``declared``: fields of its subject."""
    subject = Pieces(**steps).subject(f"mutant.attention.{name}", adapter="mutant", **(declared or {}))
    return AttentionMutant(name, kind, story, subject, survivors or {})
