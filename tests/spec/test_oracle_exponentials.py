"""The two exponentials and the double-double arithmetic under the fast engines."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hardmask.spec.oracle import dd_exp as dd_module
from hardmask.spec.oracle import doubledouble as dd
from hardmask.spec.oracle import exp64 as exp64_module
from hardmask.spec.oracle.dd_exp import DD_EXP_BOUND, dd_exp
from hardmask.spec.oracle.exp64 import EXP64_BOUND, LOWEST, UNIT, exp64

U = Fraction(1, 2**53)


def adversarial(rng: np.random.Generator, count: int) -> np.ndarray:
    """Arguments in ``[-746, 0]``: everywhere, close to 0, at the edges of the reduction, down to underflow."""
    k = rng.integers(0, 1076, count)
    edges = -np.minimum((k + 0.5) * math.log(2.0) * (1.0 + rng.normal(0.0, 1e-15, count)), 746.0)
    return np.concatenate(
        [
            -rng.uniform(0.0, 746.0, count),
            -np.exp(rng.uniform(-40.0, 6.6, count)),
            -rng.uniform(0.0, 1.0, count),
            -rng.uniform(700.0, 746.0, count),
            edges,
            [0.0, -0.0, -5e-324, -1e-300, -745.13, -745.14, LOWEST],
        ]
    )


def test_the_constants_of_exp64_are_what_its_derivation_says() -> None:
    with mpmath.workprec(300):
        head, tail = mpmath.mpf(exp64_module._LN2_HEAD), mpmath.mpf(exp64_module._LN2_TAIL)
        assert abs(head + tail - mpmath.log(2)) < mpmath.mpf(2) ** -86
        assert (Fraction(exp64_module._LN2_HEAD) * 2**32).denominator == 1
        assert float(1 / mpmath.log(2)) == exp64_module._LOG2E
        assert math.log(2.0) / 2.0 + 746.0 * 2.0**-51 < exp64_module.RADIUS
    for k, coefficient in enumerate(exp64_module._COEFFICIENTS):
        assert coefficient == float(Fraction(1, math.factorial(k)))


def test_the_bound_of_exp64_follows_from_its_recursion_in_exact_arithmetic() -> None:
    radius = Fraction(exp64_module.RADIUS)
    value = Fraction(exp64_module._COEFFICIENTS[-1])
    error = value * U
    for coefficient in map(Fraction, exp64_module._COEFFICIENTS[-2::-1]):
        product = value * radius
        error = error * radius + (product + error * radius) * U
        value = product + coefficient
        error += (value + error) * U + coefficient * U
    with mpmath.workprec(200):
        smallest = Fraction(str(mpmath.exp(-mpmath.mpf(exp64_module.RADIUS)) * (1 - mpmath.mpf(2) ** -100)))
    remainder = 2 * radius**14 / math.factorial(14)
    polynomial = (error + remainder) / smallest
    bound = polynomial + Fraction(exp64_module.REDUCTION) * (1 + polynomial + Fraction(1, 2**40))
    assert bound <= Fraction(EXP64_BOUND) < 6 * U


def test_the_double_double_exponential_keeps_its_bound() -> None:
    rng = np.random.default_rng(7)
    x = adversarial(rng, 500)
    low = x * 2.0**-53 * rng.choice([-0.5, 0.0, 0.499], x.size)
    h, l, k = dd_exp(x, low)
    with mpmath.workprec(250):
        for i in range(x.size):
            true = mpmath.exp(mpmath.mpf(x[i]) + mpmath.mpf(low[i])) * mpmath.mpf(2) ** -int(k[i])
            assert abs(mpmath.mpf(h[i]) + mpmath.mpf(l[i]) - true) <= DD_EXP_BOUND * true, x[i]
    assert h.min() >= 0.99
    assert h.max() <= 2.01


def test_the_table_of_the_double_double_exponential_is_right() -> None:
    high, low = dd_module._table()
    with mpmath.workprec(250):
        for j in range(0, 4096, 13):
            true = mpmath.mpf(2) ** (mpmath.mpf(j) / 4096)
            assert abs(mpmath.mpf(high[j]) + mpmath.mpf(low[j]) - true) <= mpmath.mpf(2) ** -106 * true


def test_exp64_keeps_its_bound_on_millions_of_points_and_comes_near_it() -> None:
    rng = np.random.default_rng(8)
    worst = 0.0
    for _ in range(10):
        x = adversarial(rng, 50_000)
        y = exp64(x)
        h, l, k = dd_exp(x, np.zeros_like(x))
        relative = np.abs((np.ldexp(y, -k) - h) - l) / h
        absolute = np.ldexp(1.0, -1075 - k)  # half of the smallest subnormal, on the scale of h
        assert np.all(relative <= EXP64_BOUND + 1.01 * absolute)
        worst = max(worst, float(relative[x > -708.0].max()))
    assert worst > 1.0 * UNIT


def test_exp64_underflows_to_zero_and_takes_minus_infinity() -> None:
    assert exp64(np.array([-np.inf, -1e308, -746.0])).tolist() == [0.0, 0.0, 0.0]
    assert exp64(np.array([-745.0]))[0] == 2.0**-1074
    assert exp64(np.zeros((0, 3))).shape == (0, 3)


def pairs(rng: np.random.Generator, count: int) -> dd.Pair:
    """Normalised double-doubles of mixed sign and size, many with a low word on the edge of half an ulp."""
    high = rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(-40.0, 40.0, count)
    low = np.spacing(np.abs(high)) * rng.choice([-0.5, -0.4999, 0.0, 0.3, 0.4999], count)
    return dd.two_sum(high, low)


def exact(pair: dd.Pair, i: int) -> Fraction:
    return Fraction(float(pair[0][i])) + Fraction(float(pair[1][i]))


def test_the_error_free_transformations_are_exact() -> None:
    rng = np.random.default_rng(9)
    a, b = pairs(rng, 400)[0], pairs(rng, 400)[0]
    a[:3], b[:3] = [1.7e308, 2.0**1023, 2.0**-1074], [-1.6e308, -(2.0**-1074), 2.0**-1074]
    total = dd.two_sum(a, b)
    bigger, smaller = np.where(np.abs(a) >= np.abs(b), a, b), np.where(np.abs(a) >= np.abs(b), b, a)
    fast = dd.fast_two_sum(bigger, smaller)
    product = dd.two_prod(a[3:], b[3:])
    for i in range(400):
        assert exact(total, i) == exact(fast, i) == Fraction(float(a[i])) + Fraction(float(b[i]))
    for i in range(397):
        assert exact(product, i) == Fraction(float(a[i + 3])) * Fraction(float(b[i + 3]))


@pytest.mark.parametrize(
    ("name", "units"), [("add", 3), ("add_same_sign", 3), ("add_float", 2), ("multiply", 5), ("multiply_float", 2)]
)
def test_the_published_bounds_hold(name: str, units: int) -> None:
    rng = np.random.default_rng(10)
    a, b = pairs(rng, 1000), pairs(rng, 1000)
    nearly = rng.random(1000) < 0.3
    if name.startswith("add") and name != "add_same_sign":  # provoke cancellation
        b = np.where(nearly, -a[0] * (1.0 + 2.0**-50), b[0]), np.where(nearly, 0.0, b[1])
    if name == "add_same_sign":
        a, b = dd.two_sum(np.abs(a[0]), a[1]), dd.two_sum(np.abs(b[0]), b[1])
    single = name.endswith("float")
    got = getattr(dd, name)(a, b[0] if single else b)
    for i in range(1000):
        other = Fraction(float(b[0][i])) if single else exact(b, i)
        true = exact(a, i) * other if name.startswith("multiply") else exact(a, i) + other
        assert abs(exact(got, i) - true) <= (units * U**2 + 40 * U**3) * abs(true)
        assert got[0][i] + got[1][i] == got[0][i]


def test_the_reciprocal_keeps_its_bound() -> None:
    a = pairs(np.random.default_rng(11), 1000)
    got = dd.reciprocal(a)
    for i in range(1000):
        assert abs(exact(got, i) * exact(a, i) - 1) <= 10 * U**2


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 64, 1000])
def test_the_tree_sum_adds_every_term_once(n: int) -> None:
    values = np.random.default_rng(12).integers(-(10**6), 10**6, (n, 3)).astype(np.float64)
    high, low = dd.tree_sum((values.copy(), np.zeros_like(values)))
    assert high.tolist() == values.sum(axis=0).tolist()
    assert low.tolist() == [0.0, 0.0, 0.0]


def test_scaling_rows_reaches_from_the_smallest_to_the_largest_number() -> None:
    values = np.array([[5e-324, 1.7e308, 0.0], [0.0, 1.0, 0.0]])
    exponent = dd.row_exponent(values)
    assert exponent.tolist() == [-1073, 1024, 0]
    up = dd.scaled(values, 900 - exponent)
    assert up[0].tolist() == [2.0**899, math.ldexp(1.7e308, -124), 0.0]
    assert dd.scaled(up, exponent - 900).tolist() == values.tolist()
