"""The mask is lost, moved or replaced by a number, on all inputs or on some."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....adapters.numpy_heads import product, turned
from ....spec.batch import Array, Bools
from ...mutants.kit import over_all
from .kit import Pieces, State, mutant, selected, valid
from .mutant import AttentionMutant

ISOLATED = {"promises": frozenset({"isolation"})}


def _moved(mask: Bools, by: int) -> Bools:
    """The mask moved by that many keys; what comes in is what stood there."""
    out = mask.copy()
    if by > 0:
        out[..., by:] = mask[..., :-by]
    else:
        out[..., :by] = mask[..., -by:]
    return out


def _open(mask: Bools, at: Bools) -> Bools:
    return np.asarray(mask | at)


def _heads(mask: Bools, chosen: slice) -> Bools:
    out = mask.copy()
    out[:, chosen] = True
    return out


def _tail_open(mask: Bools, axis: int, start: int) -> Bools:
    out = mask.copy()
    out[(slice(None),) * axis + (slice(start, None),)] = True
    return out


def _causal_moved(mask: Bools) -> Bools:
    """A mask that is a causal flag is taken with the other alignment."""
    queries, keys = mask.shape[-2:]
    for offset, other in ((0, keys - queries), (keys - queries, 0)):
        if queries != keys and bool((mask == np.tri(queries, keys, offset, dtype=bool)).all()):
            return np.broadcast_to(np.tri(queries, keys, other, dtype=bool), mask.shape)
    return mask


def _causal_strict(mask: Bools) -> Bools:
    """A square causal mask loses its diagonal, except for the first query."""
    queries, keys = mask.shape[-2:]
    if queries == keys and queries > 1 and bool((mask == np.tri(queries, keys, dtype=bool)).all()):
        strict = np.tri(queries, keys, -1, dtype=bool)
        strict[0, 0] = True
        return np.broadcast_to(strict, mask.shape)
    return mask


def _filled(value: float) -> dict[str, Any]:
    def weights(scores: Array, mask: Bools) -> Array:
        return over_all(np.where(mask, scores, value).astype(scores.dtype))

    return {"weights": weights, "output": lambda c: c.weights @ c.v}


def _penalty(value: float) -> dict[str, Any]:
    def weights(scores: Array, mask: Bools) -> Array:
        return over_all((scores + np.where(mask, 0, value)).astype(scores.dtype))

    return {"weights": weights, "output": lambda c: c.weights @ c.v}


def _remasked(scores: Array, mask: Bools) -> Array:
    return selected(over_all(scores), mask)


def _zeroed(scores: Array, mask: Bools) -> Array:
    return selected(over_all(selected(scores, mask)), mask)


def _unselected_output(c: State) -> Array:
    return c.weights @ c.v


def _rebuilt(c: State) -> Array:
    """The weights as the backward pass rebuilds them when it forgets the mask."""
    top = np.max(np.where(c.mask, c.scores, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(valid(c), top, 0)
    total = np.where(valid(c), np.sum(selected(np.exp(c.scores - top), c.mask), axis=-1, keepdims=True), 1)
    return np.asarray(np.where(valid(c), np.exp(c.scores - top) / total, 0).astype(c.scores.dtype))


def mutants() -> list[AttentionMutant]:
    """All of them."""
    mine = [
        mutant("mask-moved-right", "F", "The mask is moved by one key.", mask=lambda m: _moved(m, 1)),
        mutant("mask-moved-left", "F", "The mask is moved by one key to the left.", mask=lambda m: _moved(m, -1)),
        mutant("mask-inverted", "G", "True is taken for blocked.", mask=lambda m: ~m),
        mutant("mask-ignored", "F", "The mask is ignored.", mask=np.ones_like),
        mutant("causal-other-alignment", "H", "A causal mask is aligned to the other corner.", mask=_causal_moved),
        mutant("causal-without-diagonal", "H", "A causal mask loses its diagonal.", mask=_causal_strict),
        mutant(
            "mask-dropped-for-one-query",
            "F",
            "The path for a single query ignores the mask.",
            mask=lambda m: np.ones_like(m) if m.shape[2] == 1 else m,
        ),
        mutant(
            "mask-dropped-for-odd-heads", "F", "Odd heads see all keys.", mask=lambda m: _heads(m, slice(1, None, 2))
        ),
        mutant(
            "mask-dropped-for-one-head", "F", "The last head sees all keys.", mask=lambda m: _heads(m, slice(-1, None))
        ),
        mutant(
            "mask-dropped-past-64-keys",
            "F",
            "Keys from the 65th on are always allowed.",
            mask=lambda m: _tail_open(m, 3, 64),
        ),
        mutant(
            "mask-dropped-past-32-queries",
            "F",
            "Queries from the 33rd on see all keys.",
            mask=lambda m: _tail_open(m, 2, 32),
        ),
        mutant(
            "mask-dropped-without-gradients",
            "F",
            "The path that needs no gradients ignores the mask.",
            mask=np.ones_like,
            back_mask=lambda m: m,
        ),
        mutant("mask-dropped-in-derivatives", "F", "The derivatives are those without a mask.", back_mask=np.ones_like),
        mutant(
            "mask-kept-only-for-keys",
            "F",
            "A mask that differs between queries is reduced to keys that some query sees.",
            mask=lambda m: np.broadcast_to(m.any(axis=2, keepdims=True), m.shape),
        ),
        mutant("fill-1e4", "D", "-1e4 replaces blocked scores.", **_filled(-1e4)),
        mutant("fill-1e9", "D", "-1e9 replaces blocked scores.", **_filled(-1e9)),
        mutant("penalty-1e4", "D", "-1e4 is added to blocked scores.", **_penalty(-1e4)),
        mutant("penalty-1e9", "D", "-1e9 is added to blocked scores.", **_penalty(-1e9)),
        mutant("remask-without-renormalising", "F", "A softmax over all keys is masked afterwards.", weights=_remasked),
        mutant("scores-zeroed", "F", "Blocked scores become 0 and stay in the sum.", weights=_zeroed),
        mutant(
            "blocked-values-multiplied",
            "E",
            "Blocked values are multiplied by 0, which makes NaN of infinity.",
            output=_unselected_output,
            declared=ISOLATED,
        ),
    ]
    leaks: dict[str, dict[str, Any]] = {
        "dk": {"d_k": lambda c, x: c.scale * turned(_leaky_scores(c)) @ c.q},
        "dv": {"d_v": lambda c: turned(_rebuilt(c)) @ c.g},
        "dq": {"d_q": lambda c, x: c.scale * _leaky_scores(c) @ c.k},
    }
    stories = {name: f"The backward pass forgets the mask when it rebuilds the weights for {name}." for name in leaks}
    mine += [mutant(f"leak-in-{name}", "E", stories[name], **steps) for name, steps in leaks.items()]
    return mine


def _leaky_scores(c: State) -> Array:
    rebuilt, d_weights = _rebuilt(c), Pieces().d_weights(c)
    mean = np.sum(c.g * product(c.weights, c.v, c.mask), axis=-1, keepdims=True)
    return np.asarray(rebuilt * (d_weights - mean))
