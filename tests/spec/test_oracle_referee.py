"""The referee: rigorous, undecided only at equality, the same with either library, and without side effects."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import flint
import mpmath
import numpy as np
import pytest

from hardmask.spec.oracle import libraries, referee
from hardmask.spec.oracle.interval import Interval, rounded_down
from hardmask.spec.oracle.libraries import Name, library
from hardmask.spec.oracle.referee import (
    decide,
    decide_backward,
    decide_sum,
    enclose,
    engine_name,
    exceeding,
)

LIBRARIES: list[Name] = ["flint", "mpmath"]
both = pytest.mark.parametrize("lib", LIBRARIES)


@both
def test_enclosures_contain_the_truth_and_are_narrow(lib: Name) -> None:
    scores, mask = [0.3, -700.0, math.nan, 2.5, 2.5], [True, True, False, True, True]
    vector = [1.0, 1e30, math.inf, -3.0, 0.0]
    w, y = enclose(scores, mask, lib=lib), enclose(scores, mask, vector, lib=lib)
    with mpmath.workprec(600):
        keep = [0, 1, 3, 4]
        e = {i: mpmath.exp(mpmath.mpf(scores[i])) for i in keep}
        true = {i: e[i] / mpmath.fsum(e.values()) for i in keep}
        centre = mpmath.fsum(true[i] * vector[i] for i in keep)
        slope = {i: true[i] * (mpmath.mpf(vector[i]) - centre) for i in keep}
        pairs = [(w[i], true[i]) for i in keep] + [(y[i], slope[i]) for i in keep]
        for got, t in pairs:
            low, high = (mpmath.mpf(end.numerator) / end.denominator for end in (got.lo, got.hi))
            assert low * (1 - mpmath.mpf(2) ** -500 * mpmath.sign(low)) <= t
            assert t <= high * (1 + mpmath.mpf(2) ** -500 * mpmath.sign(high))
            assert high - low <= mpmath.mpf(2) ** -85 * abs(t)
    assert w[2] == y[2] == Interval(Fraction(0), Fraction(0))


@both
@pytest.mark.parametrize("vector", [None, [1.0, -2.0, 0.5, 1e20]])
def test_a_hair_on_either_side_of_the_budget_is_decided(lib: Name, vector: list[float] | None) -> None:
    scores, mask = [0.1, 0.2, -40.0, 3.0], [True] * 4
    for index, true in enumerate(enclose(scores, mask, vector, bits=600, lib=lib)):
        returned = true.floats()[0]
        error = true.lo - Fraction(returned)
        below, above = Interval(error, error).floats()
        assert below < error < above
        hairs = [(below, True), (above, False), (math.nextafter(above, math.inf), False), (0.0, True)]
        for budget, exceeds in hairs:
            decision = decide(scores, mask, index, returned, budget, vector, lib=lib)
            assert decision.decided
            assert decision.exceeds is exceeds
            assert decision.true.lo <= true.hi
            assert true.lo <= decision.true.hi
            assert decision.error.lo <= error + true.width


@both
def test_precision_grows_until_a_cancellation_is_resolved(lib: Name) -> None:
    # The true derivative at key 0 is w0 w1, about e^-700; both operands of the difference are 1 to 1000 bits.
    scores, mask, vector = [0.0, -700.0], [True, True], [1.0, 0.0]
    decision = decide(scores, mask, 0, 0.0, 1e-310, vector, lib=lib)
    assert decision.exceeds
    assert decision.bits >= 1024
    assert not decide(scores, mask, 0, 0.0, 1e-300, vector, lib=lib).exceeds


@both
def test_exact_equality_is_within_the_budget(lib: Name) -> None:
    decision = decide([5.0, 5.0], [True, True], 0, 0.5 + 2.0**-30, 2.0**-30, lib=lib)
    assert (decision.exceeds, decision.decided, decision.bits) == (False, True, 128)
    assert decision.error == Interval(Fraction(1, 2**30), Fraction(1, 2**30))


@both
def test_what_cannot_be_decided_says_so(lib: Name) -> None:
    # w_i = 1/3 is no binary fraction: that a constant vector has derivative 0 shows at no precision.
    decision = decide([1.0] * 3, [True] * 3, 0, 0.0, 0.0, [1.0] * 3, lib=lib, cap=512)
    assert (decision.exceeds, decision.decided, decision.bits) == (False, False, 512)
    assert "cannot be told from the budget" in str(decision)


def test_both_libraries_decide_alike() -> None:
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(60):
        n = int(rng.integers(1, 9))
        scores, mask = rng.standard_normal(n) * 10.0 ** rng.integers(0, 3), rng.random(n) < 0.8
        vector = rng.standard_normal(n)
        index = int(rng.integers(n))
        along = vector if rng.random() < 0.5 else None
        low, high = enclose(scores, mask, along)[index].floats()
        returned, budget = float(rng.choice([low, high, 0.0])), float(rng.choice([0.0, high - low, 1e-17, abs(high)]))
        decisions = [decide(scores, mask, index, returned, budget, along, lib=lib) for lib in LIBRARIES]
        assert decisions[0].exceeds == decisions[1].exceeds
        verdicts.append(decisions[0].exceeds)
    assert 10 < sum(verdicts) < 50


@both
def test_other_questions_are_decided(lib: Name) -> None:
    assert decide_backward([0.25, 0.5], [1.0, 3.0], 1, 0.625, 0.0, lib=lib).decided
    assert not decide_backward([0.25, 0.5], [1.0, 3.0], 1, 0.625, 0.0, lib=lib).exceeds
    assert decide_backward([0.25, 0.5], [1.0, 3.0], 1, 0.626, 1e-4, lib=lib).exceeds
    error = abs(sum(map(Fraction, [0.1] * 10)) - 1)
    assert decide_sum([0.1] * 10, 1.0, math.nextafter(float(error), 0.0), lib=lib).exceeds
    assert not decide_sum([0.1] * 10, 1.0, float(error), lib=lib).exceeds
    huge = decide_sum([1e308, 1e308, 5e-324], 5e-324 * 2.0, 0.0, [2.0, -2.0, 2.0], lib=lib)
    assert (huge.exceeds, huge.decided) == (False, True)


@both
def test_many_entries_of_a_row_are_decided_as_one_by_one(lib: Name) -> None:
    rng = np.random.default_rng(2)
    scores, mask, vector = rng.standard_normal(20).tolist(), [True] * 18 + [False] * 2, rng.standard_normal(20).tolist()
    for along in (None, vector):
        returned = [x.floats()[0] for x in enclose(scores, mask, along, lib=lib)]
        budgets = [float(abs(r) * 2.0 ** rng.uniform(-56.0, -51.0)) for r in returned]
        indices = [19, *range(0, 18, 2)]
        got = exceeding(
            scores, mask, indices, [returned[i] for i in indices], [budgets[i] for i in indices], along, lib=lib
        )
        assert got == [decide(scores, mask, i, returned[i], budgets[i], along, lib=lib).exceeds for i in indices]
        assert 0 < sum(got) < len(got)
    third = enclose([0.0] * 3, [True] * 3, lib=lib)[0].floats()[0]
    gap = Fraction(1, 3) - Fraction(third)
    low = float(gap)
    pairs = [(0.0, True), (low, False)]
    assert exceeding(
        [0.0] * 3, [True] * 3, [0, 0], [third] * 2, [2.0**-100] * 2, low=[p[0] for p in pairs], lib=lib
    ) == [p[1] for p in pairs]
    with pytest.raises(ValueError, match="of at least 0"):
        exceeding(scores, mask, [0], [math.inf], [1.0], lib=lib)


@both
def test_extreme_and_degenerate_rows(lib: Name) -> None:
    big = 1.7976931348623157e308
    w = enclose([big, -big, 5e-324], [True] * 3, lib=lib)
    assert 1.0 <= w[0].floats()[1] <= math.nextafter(1.0, 2.0)
    assert w[1].floats()[1] == 5e-324
    assert enclose([], [], lib=lib) == []
    assert enclose([math.nan], [False], [math.nan], lib=lib) == [Interval(Fraction(0), Fraction(0))]
    assert enclose([7.0], [True], [big], lib=lib) == [Interval(Fraction(0), Fraction(0))]


@both
def test_no_precision_leaks(lib: Name) -> None:
    before = flint.ctx.prec, mpmath.mp.prec, mpmath.iv.prec, library("mpmath")._context.prec  # type: ignore[attr-defined]
    decide([0.0, 1.0], [True, True], 0, 0.3, 0.1, lib=lib)
    with pytest.raises(ValueError, match="the score at key 1 is nan"):
        enclose([0.0, math.nan], [True, True], bits=999, lib=lib)
    after = flint.ctx.prec, mpmath.mp.prec, mpmath.iv.prec, library("mpmath")._context.prec  # type: ignore[attr-defined]
    assert after == before


def test_impossible_requests_get_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="against a finite budget of at least 0; it was given nan and 1"):
        decide([0.0], [True], 0, math.nan, 1.0)
    with pytest.raises(ValueError, match="of at least 0"):
        decide([0.0], [True], 0, 1.0, -1.0)
    with pytest.raises(ValueError, match="knows no library 'gmp'"):
        engine_name("gmp")  # type: ignore[arg-type]
    assert engine_name() == "flint"
    monkeypatch.setattr(libraries, "find_spec", lambda name: None)
    assert engine_name() == "mpmath"
    with pytest.raises(ImportError, match="pip install python-flint"):
        enclose([0.0], [True], lib="flint")


def test_the_referee_runs_the_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(w: list, g: list, ar: object) -> list:  # type: ignore[type-arg]
        return list(reversed(w))

    monkeypatch.setattr(referee, "softmaxBackwardFromWeightsSpec", swapped)
    assert [x.floats()[0] for x in enclose([0.0, 800.0], [True] * 2, [1.0, 1.0])] == [math.nextafter(1.0, 0.0), 0.0]


def test_importing_the_oracle_loads_no_slow_library() -> None:
    slow = ("mpmath", "flint", "sympy")
    code = f"import sys, hardmask.spec.oracle.referee; print([m for m in {slow} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_decimal_rendering_never_claims_more_than_the_interval() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        middle = Fraction(float(rng.standard_normal() * 10.0 ** rng.integers(-320, 300)))
        width = abs(middle) * Fraction(float(10.0 ** rng.uniform(-40.0, 1.0)))
        interval = Interval(middle - width, middle + width * Fraction(float(rng.random())))
        shown, _, missing = str(interval).partition(" ± ")
        radius = Fraction(Decimal(missing or "0"))
        assert Fraction(Decimal(shown)) - radius <= interval.lo
        assert interval.hi <= Fraction(Decimal(shown)) + radius
        assert radius <= 12 * interval.width + abs(middle) / 10**24
    assert str(Interval(Fraction(0), Fraction(0))) == "0"
    assert str(Interval(Fraction(-1), Fraction(1))) == "0 ± 1.0E+0"


def test_floats_of_an_interval_are_rounded_outwards() -> None:
    huge = Fraction(10) ** 400
    assert Interval(-huge, huge).floats() == (-math.inf, math.inf)
    tiny = Fraction(1, 10**400)
    assert Interval(-tiny, tiny).floats() == (-5e-324, 5e-324)
    assert Interval(Fraction(1, 2), Fraction(1, 2)).floats() == (0.5, 0.5)
    assert Interval(huge, huge).floats() == (sys.float_info.max, math.inf)
    assert rounded_down(3, -(10**20)) == 0
    assert rounded_down(-3, 4) == -48
    assert rounded_down(-(2**5000) - 1, -5000) == -1 - Fraction(1, 2**4300)
