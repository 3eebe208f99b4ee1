"""Correct variants: one softmax under every contract of the empty row, and one that makes every promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ...adapters.numpy_rows import softmax_where, softmax_where_derivative
from ...adapters.specimens import policies
from ...adapters.subject import Array, Bools, Subject
from ...spec.formats import DTYPES
from .kit import weights_of
from .mutant import Variant
from .recipe import centred, variant

POLICIES = {
    "zero-with-flag": "An empty row is zero, and a flag says so.",
    "reject": "A row without an allowed key is refused.",
    "fallback": "An empty row puts its weight on key 0.",
}


def _unguarded(x: Array, mask: Bools) -> Array:
    """Nothing guards the division: an empty row is 0 / 0."""
    e = weights_of(x, mask)
    with np.errstate(invalid="ignore"):
        return np.asarray(e / np.any(mask, axis=1, keepdims=True)).astype(x.dtype)


def _unguarded_derivative(x: Array, mask: Bools, v: Array) -> Array:
    return centred(_unguarded(x, mask), v)


def _promising() -> Variant:
    """The reference, which selects before it computes and differentiates the weights that it returned."""
    subject = Subject(
        "variant.promising",
        softmax_where,
        vjp=softmax_where_derivative,
        jvp=softmax_where_derivative,
        adapter="variant",
        dtypes=DTYPES,
        contract="zero+valid",
        promises=frozenset({"isolation", "allowed-nan-visible", "vjp-from-output"}),
    )
    return Variant("promising", "Keeps every promise: isolation, visible NaN, VJP from the output.", subject)


def variants() -> list[Variant]:
    """The variants of this module."""
    nan = variant(
        "nan", "An empty row is NaN, its derivatives are 0.", _unguarded, vjp=_unguarded_derivative, contract="nan"
    )
    plain = variant("plain", "", weights_of).subject
    kept = [(s.id.partition(".")[2], s) for s in policies(plain)]
    return [
        _promising(),
        nan,
        *(Variant(name, POLICIES[name], replace(s, role="entry-point")) for name, s in kept if name in POLICIES),
    ]
