"""Wrong forward definitions and masks, for negative controls: each makes one mistake that real code makes.

The signatures are those of :mod:`~hardmask.spec.definitions`.
"""

from __future__ import annotations

from typing import Any

from ..arithmetic import Arithmetic, Mask, Vector
from ..definitions import hardMaskedSoftmaxVecSpec, weights
from .proof import Control


def _row(numerators: list[Any], ar: Arithmetic) -> list[Any]:
    total = ar.zero
    for value in numerators:
        total = total + value
    return [value / total for value in numerators]


def _exponentials(scores: Vector, mask: Mask, ar: Arithmetic, blocked: Any) -> list[Any]:
    """Shifted exponentials, with ``blocked`` where the mask is False."""
    chosen = ar.maximum(mask, scores)
    assert chosen is not None
    return [ar.exp(scores[i] - scores[chosen]) if m else blocked for i, m in enumerate(mask)]


# numerator(mask, x, i, ar)
def numerator_leaking(mask: Mask, x: Vector, i: int, ar: Arithmetic) -> Any:
    """Forgets the mask."""
    return ar.exp(x[i])


def numerator_decaying(mask: Mask, x: Vector, i: int, ar: Arithmetic) -> Any:
    """Has the wrong sign in the exponent."""
    return ar.exp(-x[i]) if mask[i] else ar.zero


def numerator_one_when_blocked(mask: Mask, x: Vector, i: int, ar: Arithmetic) -> Any:
    """Multiplies the score by the mask, so that a blocked key counts as exp 0."""
    return ar.exp(x[i]) if mask[i] else ar.zero + 1


# denominator(mask, x, ar)
def denominator_leaking(mask: Mask, x: Vector, ar: Arithmetic) -> Any:
    """Sums over blocked keys too."""
    total = ar.zero
    for score in x:
        total = total + ar.exp(score)
    return total


def denominator_without_last(mask: Mask, x: Vector, ar: Arithmetic) -> Any:
    """Stops one key early."""
    total = ar.zero
    for i in range(len(mask) - 1):
        total = total + numerator_or_zero(mask, x, i, ar)
    return total


def denominator_plus_one(mask: Mask, x: Vector, ar: Arithmetic) -> Any:
    """Adds a constant, as an epsilon does."""
    total = ar.zero + 1
    for i in range(len(mask)):
        total = total + numerator_or_zero(mask, x, i, ar)
    return total


def denominator_negated(mask: Mask, x: Vector, ar: Arithmetic) -> Any:
    """Has the wrong sign."""
    total = ar.zero
    for i in range(len(mask)):
        total = total - numerator_or_zero(mask, x, i, ar)
    return total


def numerator_or_zero(mask: Mask, x: Vector, i: int, ar: Arithmetic) -> Any:
    """The right numerator, for wrong denominators."""
    return ar.exp(x[i]) if mask[i] else ar.zero


# weights(mask, x, ar)
def weights_without_empty_branch(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """Divides 0 by 0 on an empty row."""
    return _row([numerator_or_zero(mask, x, i, ar) for i in range(len(mask))], ar)


def weights_uniform_when_empty(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """Gives an empty row equal weights, as a finite replacement does."""
    return weights(mask, x, ar) if any(mask) else [(ar.zero + 1) / len(mask) for _ in mask]


def weights_leaking(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """Is the softmax of the unmasked scores."""
    return _row([ar.exp(score) for score in x], ar)


def weights_remasked(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """Normalises over all keys, then masks, and does not normalise again."""
    return [w if m else ar.zero for w, m in zip(weights_leaking(mask, x, ar), mask, strict=True)]


def weights_doubled(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """Is off by a factor."""
    return [w * 2 for w in weights(mask, x, ar)]


def weights_halving_first(mask: Mask, x: Vector, ar: Arithmetic) -> list[Any]:
    """Treats the first position specially."""
    return [w / 2 if i == 0 else w for i, w in enumerate(weights(mask, x, ar))]


# hardMaskedSoftmaxVecSpec(scores, mask, ar)
def spec_without_empty_branch(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Divides 0 by 0 on an empty row."""
    return hardMaskedSoftmaxVecSpec(scores, mask, ar) if any(mask) else [ar.zero / ar.zero for _ in mask]


def spec_uniform_when_empty(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Gives an empty row equal weights."""
    return hardMaskedSoftmaxVecSpec(scores, mask, ar) if any(mask) else [(ar.zero + 1) / len(mask) for _ in mask]


def spec_raw_when_empty(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Falls back to the softmax of the unmasked scores on an empty row, as a finite penalty does."""
    return hardMaskedSoftmaxVecSpec(scores, mask if any(mask) else [True] * len(mask), ar)


def spec_leaking(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Is the softmax of the unmasked scores."""
    return hardMaskedSoftmaxVecSpec(scores, [True] * len(mask), ar)


def spec_remasked(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Normalises over all keys, then masks, and does not normalise again."""
    return [w if m else ar.zero for w, m in zip(spec_leaking(scores, mask, ar), mask, strict=True)]


def spec_blocked_as_zero_score(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Multiplies the shifted scores by the mask: a blocked key enters the sum as exp 0, then is masked."""
    if not any(mask):
        return [ar.zero for _ in mask]
    numerators = _exponentials(scores, mask, ar, ar.zero + 1)
    return [w if m else ar.zero for w, m in zip(_row(numerators, ar), mask, strict=True)]


def spec_unshifted_denominator(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Subtracts the maximum in the numerators and forgets it in the denominator."""
    if not any(mask):
        return [ar.zero for _ in mask]
    total = ar.zero
    for i in range(len(mask)):
        total = total + numerator_or_zero(mask, scores, i, ar)
    return [e / total for e in _exponentials(scores, mask, ar, ar.zero)]


def spec_plus_one(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Adds a constant to the denominator, as an epsilon does."""
    if not any(mask):
        return [ar.zero for _ in mask]
    numerators = _exponentials(scores, mask, ar, ar.zero)
    total = ar.zero + 1
    for e in numerators:
        total = total + e
    return [e / total for e in numerators]


def spec_without_last(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Leaves the last allowed key out of the sum, unless it is the only one."""
    if sum(mask) < 2:
        return hardMaskedSoftmaxVecSpec(scores, mask, ar)
    numerators = _exponentials(scores, mask, ar, ar.zero)
    last = max(i for i, m in enumerate(mask) if m)
    total = ar.zero
    for i, e in enumerate(numerators):
        total = total if i == last else total + e
    return [e / total for e in numerators]


def spec_centred(scores: Vector, mask: Mask, ar: Arithmetic) -> list[Any]:
    """Subtracts the mean weight, so that weights turn negative."""
    return [w - (ar.zero + 1) / len(mask) for w in hardMaskedSoftmaxVecSpec(scores, mask, ar)]


# hardMaskedSoftmaxSpec(scores, mask, ar)
def matrix_normalised_jointly(scores: Any, mask: Any, ar: Arithmetic) -> Any:
    """Normalises over the whole matrix instead of each row."""
    if _is_stack(mask):
        return [matrix_normalised_jointly(s, m, ar) for s, m in zip(scores, mask, strict=True)]
    flat_scores = [s for row in scores for s in row]
    flat = iter(hardMaskedSoftmaxVecSpec(flat_scores, [m for row in mask for m in row], ar))
    return [[next(flat) for _ in row] for row in mask]


def matrix_first_mask_for_all(scores: Any, mask: Any, ar: Arithmetic) -> Any:
    """Uses the mask of the first row for every row."""
    if _is_stack(mask):
        return [matrix_first_mask_for_all(s, m, ar) for s, m in zip(scores, mask, strict=True)]
    return [hardMaskedSoftmaxVecSpec(row, mask[0], ar) for row in scores]


def matrix_inverted_mask(scores: Any, mask: Any, ar: Arithmetic) -> Any:
    """Reads True as blocked."""
    return [hardMaskedSoftmaxVecSpec(s, [not m for m in row], ar) for s, row in zip(scores, mask, strict=True)]


def _is_stack(mask: Any) -> bool:
    """Whether a nest of Booleans has rank 3."""
    return bool(mask) and bool(mask[0]) and isinstance(mask[0][0], list)


# causalMask(n), futureMask(n)
def mask_strict_past(n: int) -> list[list[bool]]:
    """``j < i``: a causal mask that forbids the present, and the transpose of the future table."""
    return [[j < i for j in range(n)] for i in range(n)]


def mask_transposed(n: int) -> list[list[bool]]:
    """``i <= j``: the transpose of the causal mask, and a future table that counts the present."""
    return [[i <= j for j in range(n)] for i in range(n)]


def mask_one_late(n: int) -> list[list[bool]]:
    """``j <= i + 1``: sees one key ahead."""
    return [[j <= i + 1 for j in range(n)] for i in range(n)]


def controls(field: str, *wrong: Any) -> tuple[Control, ...]:
    """Controls that put each wrong function in the place of one definition; named after the function."""
    return tuple(Control(function.__name__.replace("_", " "), {field: function}) for function in wrong)
