"""Wrong attention, for negative controls: each makes one mistake that real kernels make.

The signatures are those of :mod:`~hardmask.spec.attention.definitions` and :mod:`~hardmask.spec.attention.paths`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arithmetic import Arithmetic
from ..attention import paths, unmasked
from ..attention.definitions import (
    Masks,
    Matrix,
    centred,
    hardMaskedSoftmaxSpec,
    matmul,
    scaled_scores,
    scaledDotProductAttention,
    scaledDotProductAttentionBackward,
    scaledDotProductAttentionJvp,
    transpose,
)
from ..definitions import hardMaskedSoftmaxVecSpec
from .wrong import matrix_normalised_jointly, spec_blocked_as_zero_score, spec_uniform_when_empty

Gradients = tuple[list[list[Any]], list[list[Any]], list[list[Any]]]
Weights = Callable[[Matrix, Masks, Arithmetic], list[list[Any]]]


def _uniform_when_empty(scores: Matrix, mask: Masks, ar: Arithmetic) -> list[list[Any]]:
    return [spec_uniform_when_empty(row, m, ar) for row, m in zip(scores, mask, strict=True)]


def _blocked_as_zero_score(scores: Matrix, mask: Masks, ar: Arithmetic) -> list[list[Any]]:
    return [spec_blocked_as_zero_score(row, m, ar) for row, m in zip(scores, mask, strict=True)]


def _leaking(scores: Matrix, mask: Masks, ar: Arithmetic) -> list[list[Any]]:
    return [hardMaskedSoftmaxVecSpec(row, [True] * len(row), ar) for row in scores]


def _forward(weights: Weights, q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    return matmul(weights(scaled_scores(q, k, scale, ar), mask, ar), v, len(v[0]) if v else 0, ar)


def _backward(
    weights: Weights,
    centre: Weights,
    q: Matrix,
    k: Matrix,
    v: Matrix,
    mask: Masks,
    scale: Any,
    g: Matrix,
    ar: Arithmetic,
) -> Gradients:
    w = weights(scaled_scores(q, k, scale, ar), mask, ar)
    keys, d, dv = len(k), len(k[0]) if k else 0, len(v[0]) if v else 0
    ds = [[scale * s for s in row] for row in centre(w, matmul(g, transpose(v, dv), keys, ar), ar)]
    return (
        matmul(ds, k, d, ar),
        matmul(transpose(ds, keys), q, d, ar),
        matmul(transpose(w, keys), g, dv, ar),
    )


def _mean_centred(w: Matrix, g: Matrix, ar: Arithmetic) -> list[list[Any]]:
    """Centres by the unweighted mean."""
    out = []
    for weights, row in zip(w, g, strict=True):
        total = ar.zero
        for x in row:
            total = total + x
        out.append([wi * (x - total / len(row)) for wi, x in zip(weights, row, strict=True)])
    return out


# scaledDotProductAttention(q, k, v, mask, scale, ar)
def attention_leaking(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Forgets the mask."""
    return _forward(_leaking, q, k, v, mask, scale, ar)


def attention_blocked_as_zero_score(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Multiplies the shifted scores by the mask, so that a blocked key enters the sum as exp 0."""
    return _forward(_blocked_as_zero_score, q, k, v, mask, scale, ar)


def attention_mean_when_empty(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Gives a query without an allowed key the mean of the values, as a finite replacement does."""
    return _forward(_uniform_when_empty, q, k, v, mask, scale, ar)


def attention_inverted_mask(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Reads True as blocked."""
    return scaledDotProductAttention(q, k, v, [[not m for m in row] for row in mask], scale, ar)


def attention_first_mask_for_all(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Uses the mask of the first query for every query."""
    return scaledDotProductAttention(q, k, v, [mask[0]] * len(q) if q else [], scale, ar)


def attention_normalised_jointly(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Normalises over all queries instead of each one."""
    return _forward(matrix_normalised_jointly, q, k, v, mask, scale, ar)


def attention_blocked_values_leaking(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Adds the values of blocked keys."""
    w = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    leaky = [
        [x if m else x + 1 for x, m in zip(row, allowed, strict=True)] for row, allowed in zip(w, mask, strict=True)
    ]
    return matmul(leaky, v, len(v[0]) if v else 0, ar)


def attention_scale_on_the_output(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Scales the output besides the scores."""
    return [[scale * x for x in row] for row in scaledDotProductAttention(q, k, v, mask, scale, ar)]


def attention_unscaled(q: Matrix, k: Matrix, v: Matrix, mask: Masks, scale: Any, ar: Arithmetic) -> Any:
    """Forgets the scale."""
    return scaledDotProductAttention(q, k, v, mask, ar.zero + 1, ar)


# scaledDotProductAttentionBackward(q, k, v, mask, scale, cotangent, ar)
def backward_unscaled(*args: Any) -> Gradients:
    """Forgets the scale in the gradients of the scores."""
    return _rescaled(args, lambda scale: None)


def backward_scale_squared(*args: Any) -> Gradients:
    """Applies the scale twice in the gradients of the scores."""
    return _rescaled(args, lambda scale: scale * scale)


def _rescaled(args: Sequence[Any], factor: Callable[[Any], Any]) -> Gradients:
    q, k, v, mask, scale, g, ar = args
    other = factor(scale)
    w = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    keys, d, dv = len(k), len(k[0]) if k else 0, len(v[0]) if v else 0
    ds = centred(w, matmul(g, transpose(v, dv), keys, ar), ar)
    ds = ds if other is None else [[other * s for s in row] for row in ds]
    _, _, d_v = scaledDotProductAttentionBackward(*args)
    return matmul(ds, k, d, ar), matmul(transpose(ds, keys), q, d, ar), d_v


def backward_keys_untransposed(*args: Any) -> Gradients:
    """Reads the gradients of the scores row by row where it should read columns."""
    q, k, v, mask, scale, g, ar = args
    w = hardMaskedSoftmaxSpec(scaled_scores(q, k, scale, ar), mask, ar)
    keys, d, dv = len(k), len(k[0]) if k else 0, len(v[0]) if v else 0
    ds = [[scale * s for s in row] for row in centred(w, matmul(g, transpose(v, dv), keys, ar), ar)]
    flat = [s for row in ds for s in row]
    misread = [flat[j * len(q) : (j + 1) * len(q)] for j in range(keys)]
    d_q, _, d_v = scaledDotProductAttentionBackward(*args)
    return d_q, matmul(misread, q, d, ar), d_v


def backward_mean_centred(*args: Any) -> Gradients:
    """Centres by the unweighted mean over the keys."""
    return _backward(hardMaskedSoftmaxSpec, _mean_centred, *args)


def backward_uncentred(*args: Any) -> Gradients:
    """Misses the centring."""

    def centre(w: Matrix, g: Matrix, ar: Arithmetic) -> list[list[Any]]:
        return [[x * y for x, y in zip(a, b, strict=True)] for a, b in zip(w, g, strict=True)]

    return _backward(hardMaskedSoftmaxSpec, centre, *args)


def backward_leaking(*args: Any) -> Gradients:
    """Forgets the mask."""
    return _backward(_leaking, centred, *args)


def backward_uniform_when_empty(*args: Any) -> Gradients:
    """Lets a query without an allowed key attend to all."""
    return _backward(_uniform_when_empty, centred, *args)


def backward_blocked_as_zero_score(*args: Any) -> Gradients:
    """Lets a blocked key enter the sum as exp 0."""
    return _backward(_blocked_as_zero_score, centred, *args)


def backward_values_by_scores(*args: Any) -> Gradients:
    """Gives the values the gradients of the unmasked weights."""
    d_q, d_k, _ = scaledDotProductAttentionBackward(*args)
    return d_q, d_k, backward_leaking(*args)[2]


def backward_normalised_jointly(*args: Any) -> Gradients:
    """Normalises over all queries instead of each one."""
    return _backward(matrix_normalised_jointly, centred, *args)


# scaledDotProductAttentionJvp(q, k, v, mask, scale, tangents, ar)
def _without(position: int, args: Sequence[Any]) -> list[list[Any]]:
    q, k, v, mask, scale, tangents, ar = args
    kept = list(tangents)
    kept[position] = [[ar.zero for _ in row] for row in kept[position]]
    return scaledDotProductAttentionJvp(q, k, v, mask, scale, (kept[0], kept[1], kept[2]), ar)


def jvp_without_queries(*args: Any) -> list[list[Any]]:
    """Misses the term of the queries."""
    return _without(0, args)


def jvp_without_keys(*args: Any) -> list[list[Any]]:
    """Misses the term of the keys."""
    return _without(1, args)


def jvp_without_values(*args: Any) -> list[list[Any]]:
    """Misses the term of the values."""
    return _without(2, args)


def jvp_scale_squared(*args: Any) -> list[list[Any]]:
    """Applies the scale twice to the tangents of the scores."""
    q, k, v, mask, scale, tangents, ar = args
    dq, dk = ([[scale * x for x in row] for row in tangent] for tangent in tangents[:2])
    return scaledDotProductAttentionJvp(q, k, v, mask, scale, (dq, dk, tangents[2]), ar)


def jvp_leaking(*args: Any) -> list[list[Any]]:
    """Forgets the mask."""
    q, k, v, mask, scale, tangents, ar = args
    return scaledDotProductAttentionJvp(q, k, v, [[True] * len(row) for row in mask], scale, tangents, ar)


def jvp_values_unweighted_when_empty(*args: Any) -> list[list[Any]]:
    """Passes the mean tangent of the values through to a query without an allowed key."""
    _, _, v, mask, _, tangents, ar = args
    w = _uniform_when_empty([[ar.zero] * len(row) for row in mask], mask, ar)
    mean = matmul(w, tangents[2], len(v[0]) if v else 0, ar)
    right = scaledDotProductAttentionJvp(*args)
    return [row if any(m) else other for row, other, m in zip(right, mean, mask, strict=True)]


# hardMaskedSoftmaxSpec(scores, mask, ar) and centred(weights, g, ar) of matrices
def centred_by_the_first_row(weights: Matrix, g: Matrix, ar: Arithmetic) -> list[list[Any]]:
    """Centres every row by the mean of the first one."""
    out = []
    for w, row in zip(weights, g, strict=True):
        centre = ar.zero
        for x, y in zip(weights[0], g[0], strict=True):
            centre = centre + x * y
        out.append([x * (y - centre) for x, y in zip(w, row, strict=True)])
    return out


def centred_by_the_mean(weights: Matrix, g: Matrix, ar: Arithmetic) -> list[list[Any]]:
    """Centres by the unweighted mean: not self-adjoint."""
    return _mean_centred(weights, g, ar)


def centred_as_logarithm(weights: Matrix, g: Matrix, ar: Arithmetic) -> list[list[Any]]:
    """Is the backward of log-softmax, ``g - w sum g``: not self-adjoint."""
    out = []
    for w, row in zip(weights, g, strict=True):
        total = ar.zero
        for y in row:
            total = total + y
        out.append([y - x * total for x, y in zip(w, row, strict=True)])
    return out


# unmasked attention, and the other ways to write a mask
def unmasked_without_last_key(q: Matrix, k: Matrix, v: Matrix, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """Stops one key early."""
    return unmasked.attention(q, k[:-1], v[:-1], scale, ar) if len(k) > 1 else unmasked.attention(q, k, v, scale, ar)


def bias_of_zero_score(
    q: Matrix, k: Matrix, v: Matrix, factors: Sequence[Sequence[int]], scale: Any, ar: Arithmetic
) -> list[list[Any]]:
    """Multiplies the shifted scores, not the exponentials."""
    return attention_blocked_as_zero_score(q, k, v, [[f != 0 for f in row] for row in factors], scale, ar)


def bias_uniform_when_empty(
    q: Matrix, k: Matrix, v: Matrix, factors: Sequence[Sequence[int]], scale: Any, ar: Arithmetic
) -> list[list[Any]]:
    """Is the finite replacement of -infinity on a row that has nothing else."""
    return attention_mean_when_empty(q, k, v, [[f != 0 for f in row] for row in factors], scale, ar)


def length_one_more(q: Matrix, k: Matrix, v: Matrix, length: int, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """Counts one key too many."""
    return paths.with_length(q, k, v, length + 1, scale, ar)


def causal_one_late(q: Matrix, k: Matrix, v: Matrix, offset: int, scale: Any, ar: Arithmetic) -> list[list[Any]]:
    """Sees one key ahead."""
    return paths.causal(q, k, v, offset + 1, scale, ar)


def causal_at_the_other_corner(
    q: Matrix, k: Matrix, v: Matrix, offset: int, scale: Any, ar: Arithmetic
) -> list[list[Any]]:
    """Aligns at the top left what should be aligned at the bottom right, and the other way round."""
    return paths.causal(q, k, v, len(k) - len(q) - offset, scale, ar)
