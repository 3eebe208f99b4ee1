"""The fast engines: what they claim encloses the truth, and tightly enough to be of use."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from hardmask.spec.batch import Batch, Bools, Floats
from hardmask.spec.formats import FORMATS
from hardmask.spec.oracle import Audit, DoubleDoubleEngine, Engine, Float64Engine, audit, engine_for
from hardmask.spec.oracle import dd_engine as dd_module
from hardmask.spec.oracle import float64 as float64_module
from hardmask.spec.oracle.exact import Exact

BITS = 400
MAX64, MAX32 = FORMATS["float64"].max, FORMATS["float32"].max
ENGINES: list[Engine] = [DoubleDoubleEngine(), Float64Engine()]
Make = Callable[[np.random.Generator, int], Floats]

SCORES: dict[str, Make] = {
    "normal": lambda rng, n: rng.standard_normal(n) * 5.0,
    "ties": lambda rng, n: rng.integers(0, 3, n).astype(np.float64),
    "spread": lambda rng, n: -rng.uniform(0.0, 760.0, n),
    "subnormal": lambda rng, n: np.where(rng.random(n) < 0.5, -rng.uniform(700.0, 747.0, n), 0.0),
    "offset": lambda rng, n: 1e6 + rng.standard_normal(n),
    "coarse": lambda rng, n: 1e15 + rng.standard_normal(n) * 100.0,
    "tiny": lambda rng, n: rng.standard_normal(n) * 1e-310,
    "extreme": lambda rng, n: rng.choice([MAX64, -MAX64, 1e308, 0.0, 5e-324, 1.0], n),
    "extreme32": lambda rng, n: rng.choice([MAX32, -MAX32, 1.0, MAX32 - 2.0**104], n),
}
VECTORS: dict[str, Make] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "one-hot": lambda rng, n: np.eye(n)[rng.integers(n)],
    "constant": lambda rng, n: np.full(n, 0.1),
    "shifted": lambda rng, n: 1000.0 + 1e-3 * rng.standard_normal(n),
    "subnormal": lambda rng, n: rng.standard_normal(n) * 1e-310,
    "large32": lambda rng, n: rng.choice([MAX32, -MAX32], n),
    "large64": lambda rng, n: rng.standard_normal(n) * 1e300,
    "largest64": lambda rng, n: rng.choice([MAX64, -MAX64], n),
    "mixed64": lambda rng, n: 10.0 ** rng.uniform(-300.0, 300.0, n) * rng.choice([-1.0, 1.0], n),
}
LENGTHS = [1, 2, 3, 7, 33, 131]


def truth(scores: Floats, mask: Bools, vector: Floats | None = None) -> list[mpmath.mpf]:
    """The plain textbook formula of one row in mpmath, apart from all code of the suite."""
    allowed = [i for i in range(len(scores)) if mask[i]]
    zero = mpmath.mpf(0)
    if not allowed:
        return [zero] * len(scores)
    top = max(mpmath.mpf(scores[i]) for i in allowed)
    e = {i: mpmath.exp(mpmath.mpf(scores[i]) - top) for i in allowed}
    total = mpmath.fsum(e.values())
    w = {i: e[i] / total for i in allowed}
    if vector is None:
        return [w.get(i, zero) for i in range(len(scores))]
    v = {i: mpmath.mpf(vector[i]) for i in allowed}
    centre = mpmath.fsum(w[i] * v[i] for i in allowed)
    return [w[i] * (v[i] - centre) if i in w else zero for i in range(len(scores))]


def assert_encloses(exact: Exact, true: list[mpmath.mpf], mask: Bools) -> None:
    """Every entry of a one-row answer is within its claimed error, and exactly 0 at blocked keys."""
    for i, t in enumerate(true):
        value, low, error = (float(part[0, i]) for part in (exact.value, exact.low, exact.error))
        assert abs(mpmath.mpf(value) + mpmath.mpf(low) - t) <= mpmath.mpf(error), i
        if not mask[i]:
            assert (value, low, error) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("family", SCORES)
def test_the_claims_enclose_the_truth(engine: Engine, family: str) -> None:
    rng = np.random.default_rng([len(family), ord(family[0])])
    vectors = [v for v in VECTORS if engine.name == "double-double" or "64" not in v]
    with mpmath.workprec(BITS):
        for n in LENGTHS:
            scores, mask = SCORES[family](rng, n), rng.random(n) < 0.8
            poisoned = np.where(mask, scores, rng.choice([np.nan, np.inf, -np.inf, 1e300], n))[None]
            answer = engine.weights(poisoned, mask[None])
            assert_encloses(answer.weights, truth(scores, mask), mask)
            for name in vectors if n < 100 else vectors[:: len(vectors) - 1]:
                vector = VECTORS[name](rng, n)
                claim = engine.derivative(answer, np.where(mask, vector, np.nan)[None])
                assert_encloses(claim, truth(scores, mask, vector), mask)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_long_rows_are_enclosed(engine: Engine) -> None:
    rng = np.random.default_rng(3)
    n = 4096
    scores, mask = rng.standard_normal(n), rng.random(n) < 0.7
    vector = rng.standard_normal(n)
    answer = engine.weights(scores[None], mask[None])
    with mpmath.workprec(200):
        assert_encloses(answer.weights, truth(scores, mask), mask)
        assert_encloses(engine.derivative(answer, vector[None]), truth(scores, mask, vector), mask)


@pytest.mark.parametrize(
    ("engine", "unit", "share"), [(Float64Engine(), 2.0**-24, 1e-6), (DoubleDoubleEngine(), 2.0**-53, 2.0**-35)]
)
def test_the_claims_are_narrow_beside_a_budget(engine: Engine, unit: float, share: float) -> None:
    rng = np.random.default_rng(4)
    scores, mask = rng.standard_normal((200, 64)) * 5.0, rng.random((200, 64)) < 0.8
    vector = rng.standard_normal((200, 64))
    answer = engine.weights(scores, mask)
    w = answer.weights
    assert np.all(w.error <= share * 70.0 * unit * w.value)
    y = engine.derivative(answer, vector)
    size = (w.value * np.abs(vector)).sum(axis=1, keepdims=True) + np.abs(vector)
    assert np.all(y.error <= share * 70.0 * unit * w.value * size)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_gap_and_total_are_what_the_budgets_expect(engine: Engine) -> None:
    scores = np.array([[1.0, 3.0, np.nan, -1.0], [np.inf, np.nan, 0.0, 0.0], [MAX64, -MAX64, 0.0, 0.0]])
    mask = np.array([[True, True, False, True], [False] * 4, [True, True, False, False]])
    answer = engine.weights(scores, mask)
    assert answer.gap.tolist() == [[2.0, 0.0, 0.0, 4.0], [0.0] * 4, [0.0, np.inf, 0.0, 0.0]]
    with mpmath.workprec(100):
        first = 1 + mpmath.exp(-2) + mpmath.exp(-4)
        assert abs(answer.total[0] - first) < 2.0**-50
    assert answer.total[1:].tolist() == [1.0, 1.0]
    assert answer.weights.value[1].tolist() == [0.0] * 4
    assert answer.weights.value[2].tolist() == [1.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0), (4, 1)])
def test_degenerate_shapes_are_answered(engine: Engine, shape: tuple[int, int]) -> None:
    answer = engine.weights(np.zeros(shape), np.ones(shape, bool))
    assert answer.weights.value.shape == answer.gap.shape == shape
    assert answer.total.shape == (shape[0],)
    assert np.all(answer.weights.value == 1.0)
    assert engine.derivative(answer, np.ones(shape)).value.tolist() == np.zeros(shape).tolist()
    assert engine.total(np.ones(shape)).value.tolist() == [float(shape[1])] * shape[0]
    assert engine.inner(np.ones(shape), np.ones(shape)).value.tolist() == [float(shape[1])] * shape[0]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_chunks_and_memory_order_change_nothing(engine: Engine) -> None:
    rng = np.random.default_rng(5)
    scores, mask, vector = rng.standard_normal((3000, 7)), rng.random((3000, 7)) < 0.7, rng.standard_normal((3000, 7))
    answer = engine.weights(np.asfortranarray(scores), mask)
    y = engine.derivative(answer, vector[:, ::-1][:, ::-1])
    inner = engine.inner(scores, vector)
    for r in range(0, 3000, 501):
        one = slice(r, r + 1)
        alone = engine.weights(scores[one], mask[one])
        assert alone.weights.value.tolist() == answer.weights.value[one].tolist()
        assert alone.weights.low.tolist() == answer.weights.low[one].tolist()
        assert engine.derivative(alone, vector[one]).value.tolist() == y.value[one].tolist()
        assert engine.inner(scores[one], vector[one]).value.tolist() == inner.value[one].tolist()


def exactly(exact: Exact, r: int) -> tuple[Fraction, Fraction]:
    value = Fraction(float(exact.value[r])) + Fraction(float(exact.low[r]))
    return value, Fraction(float(exact.error[r]))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("family", VECTORS)
def test_sums_and_inner_products_are_enclosed(engine: Engine, family: str) -> None:
    rng = np.random.default_rng(6)
    if engine.name != "double-double" and "64" in family:
        family = "large32"
    a = np.stack([VECTORS[family](rng, 50) for _ in range(20)])
    b = np.stack([VECTORS["normal"](rng, 50) * 2.0**-12 for _ in range(20)])
    b[:5] = np.where(rng.random((5, 50)) < 0.5, 5e-324, b[:5])
    a[0, ::2] = -a[0, 1::2]  # an exact cancellation
    total, inner = engine.total(a[:, :40] * 2.0**-8), engine.inner(a, b)
    for r in range(20):
        value, error = exactly(total, r)
        assert abs(value - sum(map(Fraction, (a[r, :40] * 2.0**-8).tolist()), Fraction(0))) <= error
        value, error = exactly(inner, r)
        products = [Fraction(x) * Fraction(y) for x, y in zip(a[r].tolist(), b[r].tolist(), strict=True)]
        assert abs(value - sum(products, Fraction(0))) <= error


def test_double_double_sums_do_not_overflow_on_the_way() -> None:
    engine = DoubleDoubleEngine()
    assert engine.total(np.array([[MAX64, MAX64, -MAX64, -1.0]])).value[0] == MAX64
    answer = engine.inner(np.array([[MAX64, 1e-300]]), np.array([[0.0, 1e300]]))
    value, error = exactly(answer, 0)
    assert abs(value - Fraction(1e-300) * Fraction(1e300)) <= error
    assert engine.total(np.array([[MAX64, MAX64]])).value[0] == np.inf


def test_double_double_derivatives_stay_finite_for_the_largest_vectors() -> None:
    rng = np.random.default_rng(7)
    engine = DoubleDoubleEngine()
    scores = rng.standard_normal((50, 9)) * 100.0
    answer = engine.weights(scores, np.ones((50, 9), bool))
    y = engine.derivative(answer, rng.choice([MAX64, -MAX64], (50, 9)))
    assert np.isfinite(y.value).all()
    assert np.isfinite(y.low).all()
    assert np.isfinite(y.error).all()


@pytest.mark.parametrize("dtype", FORMATS)
def test_the_engine_of_a_dtype_is_far_more_precise_than_the_dtype(dtype: str) -> None:
    answer = engine_for(dtype).weights(np.array([[0.0, 1.0, 2.0]]), np.ones((1, 3), bool)).weights
    assert np.all(answer.error < 2.0**-20 * FORMATS[dtype].u * answer.value)


def batch(dtype: str = "float64") -> Batch:
    rng = np.random.default_rng(13)
    scores = rng.standard_normal((40, 12)) * 3.0
    mask = rng.random((40, 12)) < 0.7
    mask[3] = False
    scores[5, np.flatnonzero(mask[5])[0]] = np.nan  # a row of facts: the theorems do not speak of it
    scores[~mask] = np.nan
    cotangents, tangents = rng.standard_normal((2, 40, 12))
    storage = FORMATS[dtype].dtype
    arrays = (a.astype(storage) for a in (cotangents, tangents))
    return Batch("x", dtype, scores.astype(storage), mask, *arrays, np.zeros(40, np.int64), ("normal",))


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("lib", ["flint", "mpmath"])
def test_the_audit_finds_nothing_in_the_engines(engine: Engine, lib: str) -> None:
    rows = 39 if lib == "flint" else 5
    report = audit(engine, batch(), sample=rows, rng=np.random.default_rng(0), lib=lib)  # type: ignore[arg-type]
    assert report == Audit(rows=rows, checked=3 * rows * 12, outside=0, share=report.share)
    assert 0.0 < report.share <= 1.0


def test_the_audit_leaves_rows_of_facts_out() -> None:
    assert audit(Float64Engine(), batch("float32"), sample=1000, rng=np.random.default_rng(0)).checked == 3 * 39 * 12


def test_the_audit_catches_a_wrong_exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    right64, right_dd = float64_module.exp64, dd_module.dd_exp
    monkeypatch.setattr(float64_module, "exp64", lambda x: right64(x) * (1.0 + 2.0**-44 * (x < -1.0)))

    def wrong_dd(high: Floats, low: Floats) -> tuple[Floats, Floats, Floats]:
        h, l, k = right_dd(high, low)
        return h, l + 2.0**-86 * (high < -1.0), k

    monkeypatch.setattr(dd_module, "dd_exp", wrong_dd)
    for engine in ENGINES:
        report = audit(engine, batch(), sample=10, rng=np.random.default_rng(0))
        assert report.outside > 0
        assert report.row is not None


def test_audits_add_up() -> None:
    total = Audit(2, 20, 0, 0.25) + Audit(3, 30, 1, 0.5, row=7) + Audit(1, 10, 2, 0.125, row=9)
    assert total == Audit(6, 60, 3, 0.5, row=7)


def test_the_audit_catches_a_wrong_derivative() -> None:
    class Uncentred(DoubleDoubleEngine):
        def derivative(self, exact, vector):  # type: ignore[no-untyped-def]
            y = super().derivative(exact, vector)
            return Exact(exact.weights.value * np.where(exact.mask, vector, 0.0), y.low, y.error)

    class NotANumber(DoubleDoubleEngine):
        def derivative(self, exact, vector):  # type: ignore[no-untyped-def]
            y = super().derivative(exact, vector)
            return Exact(y.value * np.nan, y.low, y.error)

    for engine in (Uncentred(), NotANumber()):
        report = audit(engine, batch(), sample=10, rng=np.random.default_rng(0))
        assert report.outside > report.checked / 4
