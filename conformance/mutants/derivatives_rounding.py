"""Mutants whose derivatives have the right formula and lose digits that their tier promises."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ...adapters.subject import Array
from .jacobian import Rows, Rule, along, faulty
from .kit import top_of, weights_of
from .mutant import Mutant

WIDER = ("float64", "float32")


def _rounded(values: Array, dtype: type) -> Array:
    """The values after a detour through a narrower format."""
    return np.asarray(values.astype(dtype).astype(values.dtype))


def _with_weights(weights: Array, r: Rows) -> Array:
    return r.inside(weights * (r.vector - along(weights * r.vector)))


def _with_vector(vector: Array, r: Rows) -> Array:
    return r.weights * (vector - along(r.weights * vector))


def _summed_in(dtype: type) -> Rule:
    """The centre by a running sum in a narrow format."""

    def rule(r: Rows) -> Array:
        total: Array = np.zeros((len(r.mask), 1), dtype)
        for product in (r.weights * r.vector).astype(dtype).T:
            total = (total + product[:, None]).astype(dtype)
        return r.inside(r.weights * (r.vector - total.astype(r.vector.dtype)))

    return rule


def _from_log_sum(r: Rows) -> Array:
    """Weights rebuilt as ``exp(s - L)``, with ``L`` the log of the sum in the format computed in."""
    top = top_of(r.scores, r.mask)
    e = np.where(r.mask, np.exp(np.where(r.mask, r.scores - top, 0)), 0)
    log_sum = top + np.log(np.where(r.empty, 1, along(e)))
    return _with_weights(np.where(r.mask, np.exp(np.where(r.mask, r.scores - log_sum, 0)), 0).astype(e.dtype), r)


def _products_in_storage(r: Rows) -> Array:
    """The products of the centre are rounded to the storage format before they are summed."""
    products = (r.weights * r.vector).astype(r.storage).astype(r.vector.dtype)
    return r.weights * (r.vector - along(products))


def _scaled(factor: float) -> Rule:
    return lambda r: r.right * np.asarray(factor, r.right.dtype)


def _centre_scaled(r: Rows) -> Array:
    return r.weights * (r.vector - r.centre * np.asarray(1 + 1e-4, r.vector.dtype))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        faulty("vjp-scaled-1e-2", "numeric", "The VJP is too large by one percent.", _scaled(1.01), modes=("vjp",)),
        faulty(
            "jvp-scaled-1e-4", "numeric", "The JVP is too large by 1e-4.", _scaled(1.0001), modes=("jvp",), dtypes=WIDER
        ),
        faulty("centre-scaled-1e-4", "numeric", "The centre is too large by 1e-4.", _centre_scaled),
        faulty(
            "vjp-centre-summed-in-float16",
            "numeric",
            "The VJP's centre is a running sum in float16.",
            _summed_in(np.float16),
            modes=("vjp",),
        ),
        faulty(
            "vjp-centre-summed-in-bfloat16",
            "numeric",
            "The VJP's centre is a running sum in bfloat16.",
            _summed_in(ml_dtypes.bfloat16),
            modes=("vjp",),
        ),
        faulty(
            "jvp-centre-summed-in-float32",
            "numeric",
            "The JVP's centre is a running sum in float32.",
            _summed_in(np.float32),
            modes=("jvp",),
            dtypes=("float64",),
        ),
        faulty(
            "cotangents-in-float32",
            "numeric",
            "The cotangents are cast to float32.",
            lambda r: _with_vector(_rounded(r.vector, np.float32), r),
            modes=("vjp",),
            dtypes=("float64",),
        ),
        faulty(
            "cotangents-in-bfloat16",
            "numeric",
            "The cotangents are cast to bfloat16.",
            lambda r: _with_vector(_rounded(r.vector, ml_dtypes.bfloat16), r),
            modes=("vjp",),
            dtypes=(*WIDER, "float16"),
        ),
        faulty(
            "weights-saved-in-bfloat16",
            "numeric",
            "The weights are saved for the VJP in bfloat16.",
            lambda r: _with_weights(_rounded(r.weights, ml_dtypes.bfloat16), r),
            modes=("vjp",),
            dtypes=(*WIDER, "float16"),
        ),
        faulty(
            "weights-saved-in-float16",
            "numeric",
            "The weights are saved for both derivatives in float16.",
            lambda r: _with_weights(_rounded(r.weights, np.float16), r),
            dtypes=(*WIDER, "bfloat16"),
        ),
        faulty(
            "vjp-from-log-sum-exp",
            "numeric",
            "The VJP rebuilds the weights as exp(s - L), which loses digits as scores grow.",
            _from_log_sum,
            modes=("vjp",),
        ),
        faulty(
            "scores-rounded-for-vjp",
            "numeric",
            "The VJP rebuilds the weights from scores in bfloat16.",
            lambda r: _with_weights(weights_of(_rounded(r.inside(r.scores), ml_dtypes.bfloat16), r.mask), r),
            modes=("vjp",),
            dtypes=(*WIDER, "float16"),
        ),
        faulty(
            "products-in-half",
            "numeric",
            "The products of the VJP's centre are rounded to the half format.",
            _products_in_storage,
            modes=("vjp",),
            dtypes=("float16", "bfloat16"),
            promises=frozenset({"vjp-from-output"}),
        ),
    ]
