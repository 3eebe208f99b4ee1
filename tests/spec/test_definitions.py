"""The definitions over several kinds of number: exact rationals, floats and NumPy columns."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hardmask.spec import definitions, masks
from hardmask.spec.arithmetic import Arithmetic, first_maximum
from hardmask.spec.hessian import second_derivative

FLOAT = Arithmetic("float", math.exp, 0.0)
# exp replaced by a power of two: whole scores then give exact rational weights.
RATIONAL = Arithmetic("rational", lambda z: Fraction(2) ** int(z), Fraction(0))


def column_arithmetic(maximum: int | None) -> Arithmetic:
    """NumPy columns, one per key, of rows that share a mask; the score to subtract is given."""
    return Arithmetic("columns", np.exp2, np.float64(0), lambda mask, scores: maximum)


def test_weights_are_exact_over_the_rationals() -> None:
    mask, scores = [True, False, True, True], [1, 50, 0, 2]
    expected = [Fraction(2, 7), Fraction(0), Fraction(1, 7), Fraction(4, 7)]
    assert definitions.weights(mask, scores, RATIONAL) == expected
    assert definitions.hardMaskedSoftmaxVecSpec(scores, mask, RATIONAL) == expected
    assert definitions.denominator(mask, scores, RATIONAL) == 7


def test_backward_and_derivative_agree_over_the_rationals() -> None:
    mask, scores, g = [True, True, False], [0, 1, 9], [Fraction(3), Fraction(0), Fraction(100)]
    w = definitions.weights(mask, scores, RATIONAL)
    expected = [Fraction(2, 3), Fraction(-2, 3), Fraction(0)]
    assert definitions.softmaxBackwardFromWeightsSpec(w, g, RATIONAL) == expected
    assert definitions.derivative(mask, scores, g, RATIONAL) == expected


def test_second_derivative_over_the_rationals() -> None:
    # w = (1/3, 2/3), u = v = (1, 0): mean 1/3, variance 2/9.
    value = second_derivative([True, True], [0, 1], [1, 0], [1, 0], RATIONAL)
    assert value == [
        Fraction(1, 3) * (Fraction(4, 9) - Fraction(2, 9)),
        Fraction(2, 3) * (Fraction(1, 9) - Fraction(2, 9)),
    ]


@pytest.mark.parametrize("mask", [[], [False], [False, False, False]])
def test_an_empty_row_is_zero_and_not_valid(mask: list[bool]) -> None:
    x = [math.nan] * len(mask)
    zeros = [0.0] * len(mask)
    assert definitions.weights(mask, x, FLOAT) == zeros
    assert definitions.hardMaskedSoftmaxVecSpec(x, mask, FLOAT) == zeros
    assert definitions.softmaxBackwardFromWeightsSpec(zeros, [1.0] * len(mask), FLOAT) == zeros
    assert not masks.valid(mask)
    assert first_maximum(mask, x) is None


def test_blocked_scores_are_not_read() -> None:
    mask = [True, False, True]
    clean = definitions.hardMaskedSoftmaxVecSpec([1.0, 0.0, 2.0], mask, FLOAT)
    for poison in (math.nan, math.inf, -math.inf, 1e308, object()):
        assert definitions.hardMaskedSoftmaxVecSpec([1.0, poison, 2.0], mask, FLOAT) == clean


def test_the_fold_keeps_the_first_of_equal_maxima() -> None:
    assert first_maximum([True, True, True], [1, 2, 2]) == 1
    assert first_maximum([True, False, True], [1, 9, 0]) == 0


def test_a_stable_shift_does_not_overflow_floats() -> None:
    assert definitions.hardMaskedSoftmaxVecSpec([1e6, 1e6], [True, True], FLOAT) == [0.5, 0.5]
    with pytest.raises(OverflowError):
        definitions.weights([True, True], [1e6, 1e6], FLOAT)


@pytest.mark.parametrize("mask", [[True, False, True, True], [False, True, False, False], [False] * 4])
def test_columns_give_what_rows_give(mask: list[bool]) -> None:
    rng = np.random.default_rng(7)
    scores = rng.integers(-20, 20, size=(50, 4)).astype(np.float64)
    tangents = rng.integers(-9, 9, size=(50, 4)).astype(np.float64)
    chosen = next((i for i, m in enumerate(mask) if m), None)
    columns = column_arithmetic(chosen)

    def rows(function: Any) -> np.ndarray[Any, Any]:
        parts = function(list(scores.T), list(tangents.T))
        return np.stack([np.broadcast_to(part, 50) for part in parts], axis=1)

    def row_by_row(function: Any) -> np.ndarray[Any, Any]:
        return np.array([function(list(s), list(u)) for s, u in zip(scores, tangents, strict=True)])

    for function in (
        lambda s, u: definitions.weights(mask, s, columns),
        lambda s, u: definitions.hardMaskedSoftmaxVecSpec(s, mask, columns),
        lambda s, u: definitions.derivative(mask, s, u, columns),
        lambda s, u: definitions.softmaxBackwardFromWeightsSpec(definitions.weights(mask, s, columns), u, columns),
    ):
        # Powers of two and small whole numbers: both sides round in the same places.
        assert np.array_equal(rows(function), row_by_row(function))


def test_causal_and_future_masks_are_complements() -> None:
    for n in range(6):
        causal, future = masks.causalMask(n), masks.futureMask(n)
        assert all(causal[i][j] != future[i][j] for i in range(n) for j in range(n))
    assert masks.causalMask(3) == [[True, False, False], [True, True, False], [True, True, True]]


def test_the_lifted_definition_works_at_every_rank() -> None:
    row, mask = [0, 1, 5], [True, True, False]
    expected = [Fraction(1, 3), Fraction(2, 3), Fraction(0)]
    assert masks.hardMaskedSoftmaxSpec(row, mask, RATIONAL) == expected
    assert masks.hardMaskedSoftmaxSpec([[row]], [[mask]], RATIONAL) == [[expected]]
    assert masks.hardMaskedSoftmaxSpec([], [], RATIONAL) == []
    assert masks.hardMaskedSoftmaxSpec([[], []], [[], []], RATIONAL) == [[], []]
    assert (masks.hardMaskedSoftmaxSpec(7, True, RATIONAL), masks.hardMaskedSoftmaxSpec(7, False, RATIONAL)) == (1, 0)


def test_the_unmasked_softmax() -> None:
    assert masks.softmaxVecSpec([0, 1], RATIONAL) == [Fraction(1, 3), Fraction(2, 3)]
    assert masks.softmaxVecSpec([], RATIONAL) == []
    assert masks.softmaxSpec([[0, 0], [1, 0]], RATIONAL)[1] == [Fraction(2, 3), Fraction(1, 3)]
