"""The exact values of attention: enclosures that hold, shapes that are right, and a referee that agrees."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hardmask.spec.arithmetic import Arithmetic
from hardmask.spec.attention import definitions
from hardmask.spec.attention.audit import audit
from hardmask.spec.attention.enclosed import exact
from hardmask.spec.attention.matmul import product
from hardmask.spec.attention.oracle import AttentionTruth
from hardmask.spec.attention.problem import Problem
from hardmask.spec.attention.referee import decide, enclose, exceeding
from hardmask.spec.attention.rounding import QUANTITIES, attention_budget
from hardmask.spec.attention.tiers import ladder, model
from hardmask.spec.formats import DTYPES

from .attention_problems import KINDS, MASKS, problem


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_referee_finds_every_audited_entry_inside(dtype: str) -> None:
    rng = np.random.default_rng(1)
    checked = 0
    for sizes in ((2, 2, 1, 3, 5, 4, 3), (1, 1, 1, 2, 40, 2, 2)):
        for kind in KINDS:
            for mask in MASKS:
                found = audit(AttentionTruth(problem(rng, dtype, sizes, kind, mask)), 2, rng)
                assert not found.outside, (kind, mask, found)
                checked += found.checked
    assert checked > 500


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_oracle_is_far_more_exact_than_the_strictest_budget(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for kind in ("normal", "wide", "offset", "ties"):
        truth = AttentionTruth(problem(rng, dtype, (1, 2, 1, 9, 40, 16, 8), kind, "empty"))
        budget = attention_budget(model(ladder(dtype)[0], dtype), truth)
        for name in QUANTITIES:
            assert np.all(getattr(truth, name).error <= 1e-6 * getattr(budget, name)), (kind, name)


def test_the_audit_sees_a_wrong_value_and_an_error_stated_too_small() -> None:
    truth = AttentionTruth(problem(np.random.default_rng(3), "float64", (1, 1, 1, 2, 3, 2, 2)))
    for quantity in QUANTITIES:
        stated = getattr(truth, quantity)
        wrong = replace(stated, low=stated.low + 1e-20)
        truth.__dict__[quantity] = wrong
        assert audit(truth, 50, np.random.default_rng(0), (quantity,)).outside > 0, quantity
        truth.__dict__[quantity] = replace(wrong, error=stated.error + 2e-20)
        assert audit(truth, 50, np.random.default_rng(0), (quantity,)).outside == 0, quantity


@pytest.mark.parametrize("library", ["flint", "mpmath"])
def test_the_referee_runs_the_definitions(library: str) -> None:
    """Every entry of every quantity, against the definitions over mpmath with 200 bits."""
    p = problem(np.random.default_rng(4), "float64", (1, 1, 1, 3, 4, 2, 2), "wide", "empty", scale=-0.7)
    ar = Arithmetic("mpmath", mpmath.exp, mpmath.mpf(0))
    with mpmath.workprec(200):
        q, k, v, g, tq, tk, tv = (
            [[mpmath.mpf(float(x)) for x in row] for row in array[0, 0]]
            for array in (p.q, p.k, p.v, p.cotangent, *p.tangents)
        )
        mask, scale = p.full_mask[0, 0].tolist(), mpmath.mpf(p.scale)
        expected = dict(
            zip(
                ("dq", "dk", "dv"),
                definitions.scaledDotProductAttentionBackward(q, k, v, mask, scale, g, ar),
                strict=True,
            )
        )
        expected["output"] = definitions.scaledDotProductAttention(q, k, v, mask, scale, ar)
        expected["jvp"] = definitions.scaledDotProductAttentionJvp(q, k, v, mask, scale, (tq, tk, tv), ar)
        expected["weights"] = definitions.hardMaskedSoftmaxSpec(definitions.scaled_scores(q, k, scale, ar), mask, ar)
        truth = AttentionTruth(p)
        for quantity in QUANTITIES:
            for i, row in enumerate(expected[quantity]):
                for l, value in enumerate(row):
                    interval = enclose(p, quantity, (0, 0, i, l), lib=library)  # type: ignore[arg-type]
                    low, high = (mpmath.mpf(f.numerator) / f.denominator for f in (interval.lo, interval.hi))
                    slack = mpmath.mpf(2) ** -110 * (1 + abs(value))
                    assert low - slack <= value <= high + slack
                    assert high - low < 1e-25
                    stated = getattr(truth, quantity)
                    parts = (mpmath.mpf(float(x[0, 0, i, l])) for x in (stated.value, stated.low))
                    assert abs(value - sum(parts)) <= mpmath.mpf(float(stated.error[0, 0, i, l])) + slack


def test_decisions_are_exact_to_the_last_digit() -> None:
    one, zeros = np.ones((1, 1, 1, 1)), np.zeros((1, 1, 2, 1))
    v = np.array([2.0, 4.0]).reshape(1, 1, 2, 1)
    p = Problem("a", "a", "float64", one, zeros, v, np.ones((1, 1, 1, 2), bool), 1.0, one, (one, zeros, zeros))
    assert not decide(p, "output", (0, 0, 0, 0), 3.0, budget=0.0).exceeds
    assert decide(p, "output", (0, 0, 0, 0), 3.0 + 2.0**-50, budget=2.0**-51).exceeds
    assert not decide(p, "output", (0, 0, 0, 0), 3.0 + 2.0**-50, budget=2.0**-50).exceeds
    assert decide(p, "dv", (0, 0, 1, 0), 0.5, budget=0.0).true.lo == Fraction(1, 2)
    assert exceeding(p, "dk", [(0, 0, 0, 0), (0, 0, 1, 0)], [-0.5, 0.25], [0.0, 0.0]) == [False, True]
    with pytest.raises(ValueError, match="finite budget"):
        decide(p, "output", (0, 0, 0, 0), np.inf, budget=0.0)
    with pytest.raises(ValueError, match="no quantity 'dx'"):
        enclose(p, "dx", (0, 0, 0, 0))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_grouped_heads_are_the_heads_one_by_one(dtype: str) -> None:
    p = problem(np.random.default_rng(5), dtype, (2, 6, 2, 3, 5, 2, 4))
    truth = AttentionTruth(p)
    sums = {"dk": np.zeros(p.k.shape), "dv": np.zeros(p.v.shape)}
    for b in range(2):
        for h in range(6):
            here, group = (slice(b, b + 1), slice(h, h + 1)), (slice(b, b + 1), slice(h // 3, h // 3 + 1))
            tq, tk, tv = p.tangents
            alone = AttentionTruth(
                replace(p, q=p.q[here], k=p.k[group], v=p.v[group], mask=p.full_mask[here], cotangent=p.cotangent[here],
                        tangents=(tq[here], tk[group], tv[group]))
            )  # fmt: skip
            for name in ("output", "dq", "jvp", "weights"):
                np.testing.assert_allclose(
                    getattr(truth, name).value[here], getattr(alone, name).value, rtol=1e-13, atol=1e-14
                )
            for name, total in sums.items():
                total[group] += getattr(alone, name).value
    for name, total in sums.items():
        np.testing.assert_allclose(getattr(truth, name).value, total, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "sizes",
    [(1, 2, 1, 0, 3, 2, 2), (1, 2, 1, 3, 0, 2, 2), (1, 2, 2, 3, 3, 0, 2), (1, 2, 2, 3, 3, 2, 0), (0, 2, 1, 3, 3, 2, 2)],
)
def test_lengths_of_zero(dtype: str, sizes: tuple[int, int, int, int, int, int, int]) -> None:
    p = problem(np.random.default_rng(6), dtype, sizes, mask="full")
    batch, heads, groups, queries, keys, d, dv = sizes
    shapes = {
        "output": (batch, heads, queries, dv), "jvp": (batch, heads, queries, dv), "dq": (batch, heads, queries, d),
        "dk": (batch, groups, keys, d), "dv": (batch, groups, keys, dv), "weights": (batch, heads, queries, keys),
    }  # fmt: skip
    truth = AttentionTruth(p)
    for tier in ladder(dtype):
        budget = attention_budget(model(tier, dtype), truth)
        for name, shape in shapes.items():
            assert getattr(truth, name).value.shape == getattr(budget, name).shape == shape
    if keys == 0:
        assert not truth.output.value.any()
        assert not truth.output.error.any()
    if d == 0 and batch:
        np.testing.assert_allclose(truth.weights.value, 1.0 / keys, rtol=1e-15)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("poison", [1e30, np.inf, np.nan])
def test_numbers_at_blocked_keys_change_nothing(dtype: str, poison: float) -> None:
    p = problem(np.random.default_rng(7), dtype, (1, 2, 1, 4, 6, 3, 3), mask="empty")
    plain = AttentionTruth(p)
    k, v = p.k.copy(), p.v.copy()
    k[:, :, -1], v[:, :, -1] = poison, poison
    other = AttentionTruth(replace(p, k=k, v=v))
    assert other.real.all()
    assert other.real_keys.all()
    for name in QUANTITIES:
        for part in ("value", "low", "error"):
            np.testing.assert_array_equal(getattr(getattr(plain, name), part), getattr(getattr(other, name), part))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_huge_key_costs_only_those_that_see_it_digits(dtype: str) -> None:
    p = problem(np.random.default_rng(8), dtype, (1, 1, 1, 3, 5, 4, 4), mask="full")
    mask, k, v = p.full_mask.copy(), p.k.copy(), p.v.copy()
    mask[0, 0, 1:, 2] = False
    k[0, 0, 2], v[0, 0, 2] = 1e15, 1e30
    p = replace(p, mask=mask, k=k, v=v)
    truth = AttentionTruth(p)
    for name in ("output", "dq", "jvp", "weights"):
        stated = getattr(truth, name)
        assert np.all(stated.error[0, 0, 1:] < 1e-14 * np.abs(stated.value[0, 0, 1:]).max())
    assert not audit(truth, 20, np.random.default_rng(0)).outside


def test_a_query_that_sees_a_number_that_is_not_real_is_not_judged() -> None:
    p = problem(np.random.default_rng(9), "float32", (1, 1, 1, 3, 4, 2, 2), mask="full")
    mask, v = p.full_mask.copy(), p.v.copy()
    mask[0, 0, 0, 3] = False
    mask[0, 0, 1:, 0] = False
    v[0, 0, 3, 1] = np.nan
    truth = AttentionTruth(replace(p, mask=mask, v=v))
    assert truth.real[0, 0].tolist() == [True, False, False]
    assert truth.real_keys[0, 0].tolist() == [True, False, False, False]
    assert not truth.output.value[0, 0, 1:].any()
    assert np.isfinite(truth.output.value).all()
    with pytest.raises(ValueError, match="an allowed number of the problem is nan"):
        enclose(replace(p, mask=mask, v=v), "output", (0, 0, 1, 1))


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("balanced", [False, True])
def test_products_enclose_the_exact_ones(count: int, balanced: bool) -> None:
    """Rows and columns of all sizes, against exact rational sums."""
    rng = np.random.default_rng(10)
    for inner in (1, 2, 7, 65):
        a = rng.standard_normal((1, 3, inner)) * 2.0 ** rng.integers(-400, 400, (1, 3, inner))
        b = rng.standard_normal((1, inner, 2)) * 2.0 ** rng.integers(-400, 400, (1, inner, 2))
        a[0, 2] = 0.0
        stated = product(exact(a), exact(b), count, balanced=balanced)
        for i in range(3):
            for j in range(2):
                true = sum((Fraction(x) * Fraction(y) for x, y in zip(a[0, i], b[0, :, j], strict=True)), Fraction(0))
                parts = Fraction(stated.value[0, i, j]) + Fraction(stated.low[0, i, j])
                assert abs(true - parts) <= Fraction(stated.error[0, i, j])


def test_products_of_ordinary_numbers_have_about_a_hundred_bits() -> None:
    rng = np.random.default_rng(11)
    stated = product(exact(rng.standard_normal((2, 8, 64))), exact(rng.standard_normal((2, 64, 8))), 5)
    assert stated.error.max() < 2.0**-90
