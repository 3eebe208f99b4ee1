"""The engines under the proofs: polynomials, dual numbers, samples, the collapse lemma and remainders."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from hardmask.spec import catalogue, definitions
from hardmask.spec.arithmetic import Arithmetic
from hardmask.spec.proofs import numeric, remainder, wrong, wrong_gradients
from hardmask.spec.proofs.claims import BlockedRead, Equal, NonNegative, Unreadable
from hardmask.spec.proofs.collapse import prove_collapse
from hardmask.spec.proofs.definitions_record import SHIPPED
from hardmask.spec.proofs.dual import along
from hardmask.spec.proofs.polynomials import Log, exponential, space
from hardmask.spec.proofs.samples import samples

FLOAT = Arithmetic("float", math.exp, 0.0)


def test_elements_are_fractions() -> None:
    numbers = space(("a", "b"), ("u",))
    a, b, u = numbers.positive["a"], numbers.positive["b"], numbers.free["u"]
    assert (a / (a + b) + b / (a + b) - 1).is_zero()
    assert (1 / a + 1 / b - (a + b) / (a * b)).is_zero()
    assert ((u / a) / (b / a) - u / b).is_zero()
    assert (2 * u - u - u).is_zero()
    assert (3 - (a * 3) / a).is_zero()
    assert not (a / (a + b) - b / (a + b)).is_zero()
    assert repr(u / (a + b)) == "(u) / (a + b)"


def test_elements_know_their_sign() -> None:
    numbers = space(("a", "b"), ("u",))
    a, b, u = numbers.positive["a"], numbers.positive["b"], numbers.free["u"]
    assert (a / (a + b)).is_non_negative(strict=True)
    assert (1 - a / (a + b)).is_non_negative()
    assert numbers.zero.is_non_negative()
    assert not numbers.zero.is_non_negative(strict=True)
    assert not (a - b).is_non_negative()
    assert not u.is_non_negative()


def test_elements_refuse_a_denominator_that_may_vanish() -> None:
    numbers = space(("a", "b"), ("u",))
    a, b, u = numbers.positive["a"], numbers.positive["b"], numbers.free["u"]
    for divisor in (numbers.zero, a - b, u, -a, 0):
        with pytest.raises(ZeroDivisionError, match="may vanish"):
            a / divisor
    with pytest.raises(ZeroDivisionError):
        numbers.zero / numbers.zero


def test_logarithms_divide_and_exponentials_give_back() -> None:
    numbers = space(("a", "b"), ())
    a, b = numbers.positive["a"], numbers.positive["b"]
    assert (exponential(Log(a) - Log(b)) - a / b).is_zero()
    assert (exponential(Log(a) + Log(b)) - a * b).is_zero()
    assert (exponential(-Log(a)) - 1 / a).is_zero()


def test_dual_numbers_differentiate_the_code() -> None:
    def f(y: Any, ar: Arithmetic) -> list[Any]:
        return [ar.exp(y[0]) / y[1], 3 - y[0] * y[1], -y[1], 2 * y[0] + 1 - y[1]]

    assert along(f, [0.0, 2.0], [1.0, 0.0], FLOAT) == [0.5, -2.0, 0.0, 2.0]
    assert along(f, [0.0, 2.0], [0.0, 1.0], FLOAT) == [-0.25, 0.0, -1.0, -1.0]


def test_nested_dual_numbers_give_second_derivatives() -> None:
    def first(y: Any, ar: Arithmetic) -> list[Any]:
        return along(lambda z, inner: [z[0] * z[0] * z[1] + inner.exp(z[0])], y, [1.0, 0.0], ar)

    # d/dx (x^2 y + e^x) = 2 x y + e^x; then along (0, 1) and (1, 0), at (0, 5).
    assert along(first, [0.0, 5.0], [0.0, 1.0], FLOAT) == [0.0]
    assert along(first, [0.0, 5.0], [1.0, 0.0], FLOAT) == [11.0]


def test_an_unreadable_score_raises_when_it_is_read() -> None:
    numbers = space(("a",), ())
    with pytest.raises(BlockedRead, match="a blocked score was read"):
        exponential(Unreadable())  # type: ignore[arg-type]
    for use in (
        lambda s: s + 1,
        lambda s: 1 - s,
        lambda s: s > 0,
        lambda s: -s,
        lambda s: Log(numbers.positive["a"]) - s,
    ):
        with pytest.raises(BlockedRead):
            use(Unreadable())


def test_samples_cover_the_adversarial_rows() -> None:
    rows = samples()
    allowed = [[x for x, m in zip(row.x, row.mask, strict=True) if m] for row in rows]
    assert any(len(row.mask) == 0 for row in rows)
    assert any(row.mask and not any(row.mask) for row in rows)
    assert any(len(scores) == 1 and len(row.mask) > 1 for row, scores in zip(rows, allowed, strict=True))
    assert any(len(scores) > 1 and scores.count(max(scores)) > 1 for scores in allowed)
    assert any(0 < max(scores) - sorted(scores)[-2] < Fraction(1, 10**29) for scores in allowed if len(scores) > 1)
    assert any(max(scores) - min(scores) == 10000 for scores in allowed if scores)
    assert samples() == samples(numeric.SEED)
    assert samples(1)[0].x != samples(2)[0].x


def test_engines_hold_the_samples_exactly() -> None:
    points, intervals = numeric.engines()
    for row in samples():
        for value in (*row.x, *row.u, *row.g):
            # Multiplying by a power of two is exact, so this compares every bit.
            assert points.number(value) * value.denominator == value.numerator
            enclosed = intervals.number(value)
            assert enclosed.a == enclosed.b


def test_engines_judge_claims() -> None:
    points, intervals = numeric.engines()
    for engine in (points, intervals):
        one, tiny = engine.context.mpf(1), engine.context.mpf(10) ** -42
        assert engine.holds(engine.error(Equal("", one, one)))
        assert not engine.holds(engine.error(Equal("", one, one + tiny)))
        assert not engine.holds(engine.error(Equal("", tiny * tiny, engine.context.mpf(0), relative=True)))
        assert not engine.holds(engine.error(Equal("", tiny * 2, tiny, relative=True)))
        assert not engine.holds(engine.error(NonNegative("", engine.context.mpf(0), strict=True)))
        assert not engine.holds(engine.error(NonNegative("", -one)))
        assert engine.holds(engine.error(NonNegative("", tiny, strict=True)))
        assert not engine.holds(engine.error(Equal("", True, False)))
    assert not points.holds(points.error(Equal("", points.context.mpf("nan"), points.context.mpf(0))))
    wide = intervals.context.mpf([-1, 1])
    assert not intervals.holds(intervals.error(Equal("", wide, intervals.context.mpf(0))))


def test_the_collapse_lemma_holds_for_the_shipped_definitions() -> None:
    lemma = prove_collapse(SHIPPED)
    assert lemma.failure is None
    assert lemma.identities > 400


def test_the_collapse_lemma_fails_for_code_that_sees_more_than_sums() -> None:
    def weights_counting_keys(mask: Any, x: Any, ar: Any) -> list[Any]:
        return [w / (1 + sum(mask)) for w in definitions.weights(mask, x, ar)]

    def spec_with_squares(scores: Any, mask: Any, ar: Any) -> list[Any]:
        w = definitions.hardMaskedSoftmaxVecSpec(scores, mask, ar)
        total = ar.zero + 1
        for value in w:
            total = total + value * value
        return [value / total for value in w]

    for field, broken in (("weights", weights_counting_keys), ("hardMaskedSoftmaxVecSpec", spec_with_squares)):
        lemma = prove_collapse(replace(SHIPPED, **{field: broken}))
        assert lemma.failure is not None
        assert "changes when two keys of the rest are merged" in lemma.failure


@pytest.mark.parametrize("function", ["weights", "hardMaskedSoftmaxVecSpec"])
def test_remainders_keep_bound_and_order(function: str) -> None:
    found = remainder.measure(function, SHIPPED)
    assert found.failure is None
    assert found.rows == len(remainder.BASES)
    assert found.smallest_step < 1e-40
    assert found.digits > 100
    assert 0 < found.share < 1


def test_a_step_moves_the_maximum() -> None:
    base = next(base for base in remainder.BASES if base.switching)
    step = Fraction(1, 1000)
    before = [base.x[0] + step / 2, *base.x[1:]]
    after = [x + step * d for x, d in zip(before, base.direction, strict=True)]
    allowed = [i for i, m in enumerate(base.mask) if m]
    assert max(allowed, key=lambda i: before[i]) != max(allowed, key=lambda i: after[i])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"derivative": wrong_gradients.derivative_uncentred}, "exceeds its bound"),
        ({"derivative": wrong_gradients.derivative_identity_when_empty}, "is not exactly 0"),
        (
            {"weights": wrong.weights_uniform_when_empty, "derivative": wrong_gradients.derivative_negated},
            "exceeds its bound",
        ),
    ],
)
def test_remainders_reject_mistakes(change: dict[str, Any], sentence: str) -> None:
    found = remainder.measure("weights", replace(SHIPPED, **change))
    assert found.failure is not None
    assert sentence in found.failure


def test_remainders_reject_a_wrong_order(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_order = replace(remainder.BASES[4], order=2)
    monkeypatch.setattr(remainder, "BASES", (wrong_order,))
    found = remainder.measure("weights", SHIPPED)
    assert found.failure is not None
    assert "has order 2.99999" in found.failure


def test_every_proof_is_about_its_own_declaration() -> None:
    for key, proof in catalogue.proofs().items():
        assert proof.declaration.key == key
        assert set(proof.symbols) <= {"u", "v", "g", "c"}
