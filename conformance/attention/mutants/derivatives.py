"""The output is right and a derivative is not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy_heads import product, turned
from ....spec.batch import Array
from .kit import (
    State,
    inner,
    mutant,
    plain_centred,
    plain_d_k,
    plain_d_q,
    plain_d_v,
    plain_d_weights,
    plain_moved_scores,
    plain_tangent,
    selected,
)
from .mutant import AttentionMutant


def _uncentred(c: State, x: Array) -> Array:
    return selected(c.weights * x, c.mask)


def _mean_centred(c: State, x: Array) -> Array:
    count = np.maximum(c.mask.sum(axis=-1, keepdims=True), 1)
    mean = np.sum(selected(x, c.mask), axis=-1, keepdims=True) / count
    return selected(c.weights * (x - mean).astype(x.dtype), c.mask)


def _centred_over_all(c: State, x: Array) -> Array:
    """The mean counts what blocked keys would add under the softmax over all."""
    every = np.exp(c.scores - np.max(c.scores, axis=-1, keepdims=True, initial=-np.inf))
    every = every / np.sum(every, axis=-1, keepdims=True)
    return selected(c.weights * (x - inner(every, x)), c.mask)


def _weights_twice(c: State, x: Array) -> Array:
    return np.asarray(c.weights * plain_centred(c, x))


def _not_transposed(c: State, x: Array) -> Array:
    queries, keys = x.shape[-2:]
    return np.asarray(c.scale * (x.reshape(*x.shape[:-2], keys, queries) @ np.where(np.isfinite(c.q), c.q, 0)))


def _values_reversed(c: State) -> Array:
    return np.asarray(c.g @ turned(c.v[..., ::-1]))


def _first_rows(x: Array, axis: int, limit: int) -> Array:
    """What lies past the limit is lost."""
    out = x.copy()
    out[(slice(None),) * axis + (slice(limit, None),)] = 0
    return out


def _d_q_of(c: State, x: Array, limit: int) -> Array:
    return c.scale * product(_first_rows(x, 3, limit), c.k, c.mask)


def _d_k_of(c: State, x: Array, limit: int) -> Array:
    return plain_d_k(c, _first_rows(x, 2, limit))


def _d_v_of(c: State, limit: int) -> Array:
    c.g = _first_rows(c.g, 2, limit)
    return plain_d_v(c)


def _part(*kept: int) -> Any:
    """Scores moved by some of the tangents of q and k only."""

    def moved(c: State, tangents: tuple[Array, Array, Array]) -> Array:
        chosen = [t if i in kept else np.zeros_like(t) for i, t in enumerate(tangents)]
        return plain_moved_scores(c, (chosen[0], chosen[1], chosen[2]))

    return moved


def _d_output(c: State, d_weights: Array, d_v: Array) -> Array:
    return product(d_weights, c.v, c.mask)


def _unscaled(c: State, x: Array) -> Array:
    return product(x, c.k, c.mask)


def _unscaled_k(c: State, x: Array) -> Array:
    return product(turned(x), c.q, turned(c.mask))


def mutants() -> list[AttentionMutant]:
    """All of them."""
    return [
        mutant("dq-unscaled", "K", "dq is not scaled.", d_q=_unscaled),
        mutant("dk-unscaled", "K", "dk is not scaled.", d_k=_unscaled_k),
        mutant("dq-and-dk-unscaled", "K", "Neither dq nor dk is scaled.", d_q=_unscaled, d_k=_unscaled_k),
        mutant("dq-scaled-twice", "K", "dq is scaled twice.", d_q=lambda c, x: c.scale * plain_d_q(c, x)),
        mutant("dk-negated", "K", "dk has the wrong sign.", d_k=lambda c, x: -plain_d_k(c, x)),
        mutant("vjp-not-centred", "K", "The backward pass does not subtract the mean.", centred=_uncentred),
        mutant("vjp-mean-of-keys", "K", "The backward pass subtracts an unweighted mean.", centred=_mean_centred),
        mutant("vjp-mean-over-blocked", "E", "The mean counts blocked keys.", centred=_centred_over_all),
        mutant("vjp-weights-twice", "K", "The gradients of the scores have the weights twice.", centred=_weights_twice),
        mutant("dk-not-transposed", "K", "dS is read as its transpose for dk.", d_k=_not_transposed),
        mutant(
            "dv-from-unnormalised-weights",
            "K",
            "dv takes the numerators for the weights.",
            d_v=lambda c: product(
                turned(c.weights / np.maximum(np.max(c.weights, axis=-1, keepdims=True, initial=0), 1e-30)),
                c.g,
                turned(c.mask),
            ).astype(c.g.dtype),
        ),
        mutant("d-weights-reversed", "K", "The features of v are reversed in dO v^T.", d_weights=_values_reversed),
        mutant("dv-missing", "K", "dv is 0.", d_v=lambda c: np.zeros_like(plain_d_v(c))),
        mutant("dq-of-first-tile", "I", "dq sums over the first 16 keys.", d_q=lambda c, x: _d_q_of(c, x, 16)),
        mutant("dk-of-first-tile", "I", "dk sums over the first 16 queries.", d_k=lambda c, x: _d_k_of(c, x, 16)),
        mutant("dv-of-first-tile", "I", "dv sums over the first 16 queries.", d_v=lambda c: _d_v_of(c, 16)),
        mutant("dq-constant-weights", "K", "dq and dk are 0, as if the weights were constant.", centred=_nothing),
        mutant("jvp-without-dv", "J", "The tangent misses the tangents of v.", tangent=_d_output),
        mutant("jvp-without-dk", "J", "The tangent misses the tangents of k.", moved_scores=_part(0)),
        mutant("jvp-without-dq", "J", "The tangent misses the tangents of q.", moved_scores=_part(1)),
        mutant("jvp-not-centred", "J", "The forward mode does not subtract the mean.", pushed=_uncentred),
        mutant(
            "jvp-unscaled",
            "J",
            "The tangents of the scores are not scaled.",
            moved_scores=lambda c, t: t[0] @ turned(c.k) + c.q @ turned(t[1]),
        ),
        mutant(
            "jvp-only-dv",
            "J",
            "The tangent is that of constant weights.",
            tangent=lambda c, d_weights, d_v: plain_tangent(c, np.zeros_like(d_weights), d_v),
        ),
        mutant(
            "vjp-leaks-into-dk",
            "E",
            "The mean is subtracted at blocked keys too, which moves their dk and the dq of every query.",
            centred=lambda c, x: c.weights * x - inner(c.weights, selected(x, c.mask)) / max(1, x.shape[-1]),
            d_q=lambda c, x: c.scale * (x @ np.where(np.isfinite(c.k), c.k, 0)),
            d_k=lambda c, x: c.scale * (turned(x) @ np.where(np.isfinite(c.q), c.q, 0)),
        ),
        mutant("vjp-ignores-cotangent", "K", "The cotangent of the first query serves all.", d_weights=_first_g),
    ]


def _nothing(c: State, x: Array) -> Array:
    return np.zeros_like(x)


def _first_g(c: State) -> Array:
    c.g = np.broadcast_to(c.g[..., :1, :], c.g.shape) if c.g.shape[-2] else c.g
    return plain_d_weights(c)
