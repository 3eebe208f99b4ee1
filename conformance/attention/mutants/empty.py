"""What a query without an allowed key gets, and what it gives to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....adapters.numpy_heads import turned
from ....spec.batch import Array, Bools
from ...mutants.kit import over_all, weights_of
from .kit import State, mutant, plain_output, selected, valid
from .mutant import AttentionMutant


def _instead(value: Any) -> Callable[[Array, Bools], Array]:
    """Weights that are something else in empty rows."""

    def weights(scores: Array, mask: Bools) -> Array:
        found = value(scores) if callable(value) else value
        allowed = mask.any(axis=-1, keepdims=True)
        return np.asarray(np.where(allowed, weights_of(scores, mask), found).astype(scores.dtype))

    return weights


def _uniform(scores: Array) -> float:
    return 1.0 / max(1, scores.shape[-1])


def _first(scores: Array) -> Array:
    return np.asarray(np.arange(scores.shape[-1]) == 0)


def _product(c: State) -> Array:
    return c.weights @ c.v


def _mean_of_values(c: State) -> Array:
    mean = np.mean(c.v, axis=-2, keepdims=True) if c.v.shape[-2] else np.zeros(1, c.v.dtype)
    return np.asarray(np.where(valid(c), plain_output(c), mean).astype(c.v.dtype))


def mutants() -> list[AttentionMutant]:
    """All of them."""
    everywhere: dict[str, Any] = {
        "centred": lambda c, x: c.weights * (x - np.sum(c.weights * x, axis=-1, keepdims=True))
    }
    return [
        mutant("empty-uniform", "B", "An empty row is uniform.", weights=_instead(_uniform), output=_product),
        mutant("empty-nan", "A", "An empty row is NaN.", weights=_instead(np.nan), output=_product),
        mutant("empty-raw", "B", "An empty row is a softmax of all keys.", weights=_instead(over_all), output=_product),
        mutant("empty-first-key", "B", "An empty row sees the first key.", weights=_instead(_first), output=_product),
        mutant("empty-mean-of-values", "B", "The output of an empty row is the mean value.", output=_mean_of_values),
        mutant(
            "empty-row-counts-in-dv",
            "C",
            "The output of an empty row is 0, but dv counts it as uniform.",
            cotangent=lambda c: c.g,
            d_v=lambda c: turned(np.where(valid(c), c.weights, _uniform(c.scores)).astype(c.g.dtype)) @ c.g,
        ),
        mutant(
            "empty-row-counts-in-dk",
            "C",
            "The output of an empty row is 0, but the gradients of its scores are those of a uniform row.",
            cotangent=lambda c: c.g,
            back=lambda c: np.where(valid(c), c.weights, _uniform(c.scores)).astype(c.g.dtype),
            **everywhere,
            d_q=lambda c, x: c.scale * x @ c.k,
            d_k=lambda c, x: c.scale * turned(x) @ c.q,
        ),
        mutant(
            "empty-cotangent-multiplied",
            "C",
            "The cotangent of an empty row is multiplied by 0, which makes NaN of NaN.",
            cotangent=lambda c: c.g,
            d_v=lambda c: turned(c.weights) @ c.g,
            declared={"promises": frozenset({"isolation"})},
        ),
        mutant(
            "empty-nan-in-derivatives",
            "C",
            "The output of an empty row is 0, but its derivatives are those of NaN.",
            back=lambda c: np.where(valid(c), c.weights, np.nan).astype(c.g.dtype),
            centred=lambda c, x: c.weights * selected(x, c.mask),
        ),
        mutant(
            "almost-empty-is-empty",
            "P",
            "A row with one allowed key is taken for empty.",
            mask=lambda m: m & (m.sum(axis=-1, keepdims=True) > 1),
        ),
        mutant(
            "largest-key-blocked-makes-empty",
            "P",
            "A row is taken for empty if its last key is blocked, and another one is not.",
            mask=lambda m: m & (m[..., -1:] | (m.sum(axis=-1, keepdims=True) < 2)) if m.shape[-1] else m,
        ),
    ]
