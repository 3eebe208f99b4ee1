"""Mutants that are right forward and wrong in the VJP, the JVP or both: the formula itself is another."""

from __future__ import annotations

import numpy as np

from ...adapters.subject import Array, Bools
from .jacobian import Rows, along, faulty
from .kit import top_of, weights_of
from .mutant import Mutant


def _uncentred(r: Rows) -> Array:
    return r.weights * r.vector


def _mean_of_allowed(r: Rows) -> Array:
    return r.weights * (r.vector - along(r.vector) / np.maximum(along(r.mask), 1).astype(r.vector.dtype))


def _weights_of_everything(r: Rows) -> Array:
    """Weights as if every key were allowed, with 0 for what stands at a blocked score."""
    return weights_of(r.inside(r.scores), np.ones(r.mask.shape, bool))


def _centred_over_batch(r: Rows) -> Array:
    return r.weights * (r.vector - np.sum(r.weights * r.vector, dtype=r.vector.dtype))


def _leaking(r: Rows) -> Array:
    return np.where(r.mask, r.right, _weights_of_everything(r) * (r.vector - r.centre))


def _reading_blocked(r: Rows) -> Array:
    return r.inside(r.weights * (r.vector - r.centre - along(r.given - r.vector)))


def _ignoring_mask(r: Rows) -> Array:
    w = _weights_of_everything(r)
    return w * (r.given - along(w * r.given))


def _asymmetric(r: Rows) -> Array:
    return r.weights * r.vector - r.weights * r.weights * along(r.vector)


def _neighbours_centre(r: Rows) -> Array:
    return r.inside(r.weights * (r.vector - along(np.roll(r.weights, 1, axis=0) * r.vector)))


def _shifted_vector(r: Rows) -> Array:
    return r.weights * (r.vector - along(r.weights * np.roll(r.vector, 1, axis=1)))


def _of_neighbours_vector(r: Rows) -> Array:
    moved = r.inside(np.roll(r.vector, 1, axis=0))
    return r.weights * (moved - along(r.weights * moved))


def _squared(r: Rows) -> Array:
    return r.weights * r.weights * (r.vector - r.centre)


def _diagonal(r: Rows) -> Array:
    return r.weights * (1 - r.weights) * r.vector


def _of_logarithm(r: Rows) -> Array:
    return r.inside(r.vector - r.weights * along(r.vector))


def _unweighted(r: Rows) -> Array:
    return r.inside(r.vector - r.centre)


def _maxima(r: Rows) -> Bools:
    return np.asarray(r.mask & (r.scores == top_of(r.scores, r.mask)))


def _first_maximum(r: Rows) -> Bools:
    tied = _maxima(r)
    return np.asarray(tied & (np.cumsum(tied, axis=1) == 1))


def _maximum_forgotten(r: Rows) -> Array:
    """The numerators' share of the maximum's cotangent, without the share of the sum that cancels it."""
    return r.inside(r.right - np.where(_first_maximum(r), r.centre, 0))


def _maximum_forgotten_forward(r: Rows) -> Array:
    """The same in forward mode: the numerators see the maximum's tangent, their sum does not."""
    return r.right - r.weights * along(np.where(_first_maximum(r), r.vector, 0))


def _at_ties(r: Rows) -> Array:
    """The numerators' share goes to all keys at the maximum in equal parts, the sum's share to the first of them."""
    tied = _maxima(r)
    return r.inside(r.right + r.centre * (_first_maximum(r) - tied / np.maximum(along(tied), 1)).astype(r.vector.dtype))


def _weights_differentiated_twice(r: Rows) -> Array:
    w = weights_of(r.weights, r.mask)
    return w * (r.vector - along(w * r.vector))


def _without_shift(r: Rows) -> Array:
    w = weights_of(r.scores, r.mask, top=lambda x, mask: np.zeros_like(x[:, :1]))
    return r.inside(w * (r.vector - along(w * r.vector)))


def _squared_sum(r: Rows) -> Array:
    """``e v / S - e <e, v> / S^2`` with ``S^2`` in the storage format: in float16 it is infinite from S = 256."""
    x = np.where(r.mask, r.scores - top_of(r.scores, r.mask), -np.inf)
    e = np.exp(x)
    s = np.where(r.empty, 1, along(e))
    square = (s.astype(r.storage) * s.astype(r.storage)).astype(e.dtype)
    return r.inside(e * r.vector / s - e * along(e * r.vector) / square)


def _difference(r: Rows) -> Array:
    """A central difference quotient along the vector, with the step that one would take in float32."""
    h = np.asarray(1e-3, dtype=r.vector.dtype)
    ahead, behind = (weights_of(r.inside(r.scores) + step * r.vector, r.mask) for step in (h, -h))
    return r.inside((ahead - behind) / (2 * h))


def mutants() -> list[Mutant]:
    """The mutants of this module."""
    return [
        faulty("uncentred", "K", "Derivatives w v, without the centre <w, v>.", _uncentred),
        faulty("vjp-uncentred", "K", "VJP w v, without the centre <w, v>.", _uncentred, modes=("vjp",)),
        faulty("jvp-uncentred", "K", "JVP w v, without the centre <w, v>.", _uncentred, modes=("jvp",)),
        faulty("centred-by-mean", "K", "Centred by the mean of the allowed entries, not by <w, v>.", _mean_of_allowed),
        faulty(
            "centred-by-blocked-keys",
            "K",
            "The centre is taken with weights in which blocked keys count as scores of 0.",
            lambda r: r.inside(r.weights * (r.vector - along(_weights_of_everything(r) * r.vector))),
        ),
        faulty(
            "centred-over-batch", "K", "One centre for all rows: <w, v> is summed over the batch.", _centred_over_batch
        ),
        faulty("vjp-leak", "K", "The VJP of a blocked key is that of a key with score 0.", _leaking, modes=("vjp",)),
        faulty("jvp-leak", "K", "The JVP of a blocked key is that of a key with score 0.", _leaking, modes=("jvp",)),
        faulty(
            "vjp-reads-blocked",
            "K",
            "The VJP's centre adds the cotangents of blocked keys.",
            _reading_blocked,
            modes=("vjp",),
        ),
        faulty(
            "jvp-reads-blocked",
            "K",
            "The JVP's centre adds the tangents of blocked keys.",
            _reading_blocked,
            modes=("jvp",),
        ),
        faulty(
            "derivative-ignores-mask", "K", "The derivatives are those of a softmax without a mask.", _ignoring_mask
        ),
        faulty(
            "derivative-masked-afterwards",
            "K",
            "The derivatives of a softmax without a mask, with blocked entries set to 0.",
            lambda r: r.inside(_ignoring_mask(r)),
        ),
        faulty(
            "vjp-not-self-adjoint",
            "K",
            "VJP w v - w^2 sum(v): the Jacobian transposed wrongly.",
            _asymmetric,
            modes=("vjp",),
        ),
        faulty(
            "jvp-not-self-adjoint",
            "K",
            "JVP w v - w^2 sum(v): the Jacobian transposed wrongly.",
            _asymmetric,
            modes=("jvp",),
        ),
        faulty("neighbours-centre", "K", "The centre is taken with the weights of the row before.", _neighbours_centre),
        faulty(
            "centre-of-moved-vector",
            "K",
            "The centre pairs each weight with the entry of the key before.",
            _shifted_vector,
        ),
        faulty("vjp-sign", "K", "The VJP has the wrong sign.", lambda r: -r.right, modes=("vjp",)),
        faulty("jvp-sign", "K", "The JVP has the wrong sign.", lambda r: -r.right, modes=("jvp",)),
        faulty(
            "jvp-of-neighbour",
            "K",
            "The JVP is taken along the tangent of the row before.",
            _of_neighbours_vector,
            modes=("jvp",),
        ),
        faulty("squared-weights", "K", "Derivatives w^2 (v - <w, v>).", _squared),
        faulty("diagonal-jacobian", "K", "Derivatives w (1 - w) v: the diagonal of the Jacobian only.", _diagonal),
        faulty("of-logarithm", "K", "The VJP of log-softmax: v - w sum(v).", _of_logarithm, modes=("vjp",)),
        faulty("unweighted", "K", "Derivatives v - <w, v>, without the weight in front.", _unweighted),
        faulty(
            "straight-through",
            "K",
            "The VJP passes the cotangents through, as for a hard choice.",
            lambda r: r.vector,
            modes=("vjp",),
        ),
        faulty("stop-gradient", "K", "The derivatives are zero.", lambda r: np.zeros_like(r.weights)),
        faulty("jvp-zero", "K", "The JVP is zero.", lambda r: np.zeros_like(r.weights), modes=("jvp",)),
        faulty(
            "vjp-mean-reduced",
            "K",
            "The VJP is divided by the number of keys.",
            lambda r: r.right / r.mask.shape[1],
            modes=("vjp",),
        ),
        faulty(
            "vjp-maximum-not-cancelled",
            "K",
            "The VJP lets the numerators' gradient flow into the maximum, and not the sum's, which cancels it.",
            _maximum_forgotten,
            modes=("vjp",),
        ),
        faulty(
            "jvp-maximum-not-cancelled",
            "K",
            "The JVP moves the numerators by the maximum's tangent, and not their sum.",
            _maximum_forgotten_forward,
            modes=("jvp",),
        ),
        faulty(
            "vjp-split-at-ties",
            "K",
            "At ties of the maximum two shares of its gradient go to different keys.",
            _at_ties,
            modes=("vjp",),
        ),
        faulty(
            "consumes-softmax-of-weights",
            "K",
            "The derivatives take the softmax of the saved weights.",
            _weights_differentiated_twice,
        ),
        faulty(
            "backward-without-shift",
            "K",
            "The VJP rebuilds the weights without the maximum.",
            _without_shift,
            modes=("vjp",),
        ),
        faulty(
            "squared-sum-overflows",
            "K",
            "The VJP divides by the square of the sum in the half format, which overflows and loses the centre.",
            _squared_sum,
            modes=("vjp",),
            dtypes=("float16",),
            survivors={"float16": "needs exponentials that sum to 256, so longer rows: killed by --effort deep"},
            tier={"vjp:half": "half-ops"},
        ),
        faulty("difference-quotient", "K", "The derivatives are central differences with a step of 1e-3.", _difference),
    ]
