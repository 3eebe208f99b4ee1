"""A sweep judges every row as the ordinary check does, counts what is not correctly rounded, and finds tiny errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.numpy_rows import softmax_where_derivative as derivative
from hardmask.adapters.specimens import policies
from hardmask.adapters.subject import Subject
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.document import SweepRecord
from hardmask.conformance.exhaustive import KINDS, Enumeration, counts, sample
from hardmask.conformance.exhaustive.counts import Counts
from hardmask.conformance.exhaustive.kinds import BY_KEY, all_scores, finite_scores, partners, patterns
from hardmask.conformance.exhaustive.ordinary import Open, violating
from hardmask.conformance.exhaustive.piece import enumerate_piece
from hardmask.spec.contracts import contract
from hardmask.spec.formats import FORMATS
from hardmask.spec.oracle import engine_for
from hardmask.spec.rounding import ladder, model

TWO = [kind for kind in KINDS if kind.keys == 2]
BOTH = [kind for kind in TWO if kind.mask == (True, True)]


def swept(subject: Subject, dtype: str = "float16", fraction: float = 5e-5, **fields: Any) -> Report:
    enumeration = Enumeration((dtype,), fraction, **{k: fields.pop(k) for k in ("parts", "jobs") if k in fields})
    return certify(Request((subject.id,), enumeration=enumeration, **fields), subjects=[subject])


def record(report: Report, kind: str) -> SweepRecord:
    return next(s for s in report.certificate.sweeps if s.kind == kind)


def rows_of(kind: Any, dtype: str, first: int) -> tuple[Any, Any]:
    """The rows of one first score, built in the plainest way."""
    beside = partners(kind, dtype)
    a = np.broadcast_to(finite_scores(dtype)[first], beside.shape)
    columns = [beside, a] if kind.mask == (False, True) else [a, beside]
    return np.stack(columns, axis=1), np.broadcast_to(np.array(kind.mask), (len(beside), 2)).copy()


def shaken(function: Callable[..., Any], share: float) -> Callable[..., Any]:
    """The answers of a function with some codes moved by a few units, some made negative, infinite or NaN."""

    def call(scores: Any, mask: Any, *rest: Any) -> Any:
        answer = function(scores, mask, *rest).copy()
        rng = np.random.default_rng(scores.shape[0])
        codes = answer.view(np.uint16).reshape(-1)
        at = rng.choice(codes.size, int(codes.size * share), replace=False)
        codes[at] += rng.integers(-3, 4, len(at)).astype(np.uint16)
        codes[at[:40]] ^= 0x8000
        codes[at[40:50]] = np.array([np.inf, np.nan]).astype(answer.dtype).view(np.uint16).repeat(5)
        return answer

    return call


def plain(scores: Any, mask: Any) -> Any:
    return softmax_where(scores, mask).weights


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", TWO, ids=lambda kind: kind.key)
def test_a_sweep_fails_exactly_the_rows_that_the_ordinary_check_fails(kind: Any, dtype: str) -> None:
    for tier, first in zip(ladder(dtype), (20000, 33000, 45000, 24000, 40000, 31000), strict=True):
        subject = Subject("x.shaken", shaken(plain, 0.3), vjp=shaken(derivative, 0.3), dtypes=(dtype,), tier=tier)
        counted = enumerate_piece(subject, kind, dtype, np.array([first]), "zero")
        scores, mask = rows_of(kind, dtype, first)
        vector = () if kind.cotangent is None else (np.tile(np.array(kind.cotangent, scores.dtype), (len(mask), 1)),)
        returned = getattr(subject, kind.method)(scores, mask, *vector)
        bad = violating(Open(scores, mask, returned), dtype, model(tier, dtype), contract("zero"), kind.cotangent)
        assert (counted.rows, counted.violations) == (len(scores), int(bad.sum()))
        assert 0 < counted.violations < counted.rows
        assert counted.first[0].scores == scores[bad][0].view(np.uint16).tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.key)
def test_what_is_not_correctly_rounded_is_counted(kind: Any, dtype: str) -> None:
    """Against the true values rounded to the format, found without the tables."""
    subject = Subject("x.shaken", shaken(plain, 0.01), vjp=shaken(derivative, 0.01), dtypes=(dtype,))
    first = 40000
    counted = enumerate_piece(subject, kind, dtype, np.array([first]), "zero")
    scores, mask = rows_of(kind, dtype, first)
    engine = engine_for("float64")
    exact = engine.weights(scores.astype(np.float64), mask)
    vector = None if kind.cotangent is None else np.tile(np.array(kind.cotangent), (len(mask), 1))
    true = exact.weights if vector is None else engine.derivative(exact, vector)
    right = true.value.astype(FORMATS[dtype].dtype)
    more = () if vector is None else (vector.astype(scores.dtype),)
    with np.errstate(invalid="ignore"):
        returned = getattr(subject, kind.method)(scores, mask, *more)
        numbers = np.isfinite(returned.astype(np.float64))
    same = returned == right
    assert counted.misrounded == (~same).sum(axis=0).tolist()
    ordered = [np.where(c >= 0x8000, 0x8000 - c, c) for c in (x.view(np.uint16).astype(int) for x in (returned, right))]
    assert counted.distance == np.where(numbers, np.abs(ordered[0] - ordered[1]), 0).max(axis=0).tolist()


def test_every_score_is_enumerated_once() -> None:
    for dtype, finite in (("float16", 63488), ("bfloat16", 65280)):
        scores = finite_scores(dtype).astype(np.float64)
        assert len(scores) == finite
        assert np.all(np.diff(scores) >= 0.0)
        assert len(np.unique(all_scores(dtype).view(np.uint16))) == 65536
        assert np.array_equal(all_scores(dtype)[:finite].view(np.uint16), finite_scores(dtype).view(np.uint16))


def test_short_rows_have_every_mask_and_every_place() -> None:
    for keys in (1, 3):
        rows, masks, places = patterns(keys, "float16")
        assert rows.shape == masks.shape == (len(places), keys)
        found = {(tuple(m), p) for m, p in zip(masks.tolist(), places.tolist(), strict=True)}
        assert len(found) == 2**keys * keys
    assert BY_KEY["length 3"].rows("float16") == 3 * 3**2 + 3 * (2 * 8 * 3 + 9) + 3 * (8**2 + 2 * 3 * 8) + 3 * 8**2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_good_subject_passes_every_sweep(good: Subject, dtype: str) -> None:
    report = swept(good, dtype, fraction=1e-4)
    assert (report.exit_code, report.certificate.subjects[0].verdict) == (0, "pass")
    assert [s.kind for s in report.certificate.sweeps] == [kind.key for kind in KINDS]
    for s in report.certificate.sweeps:
        assert s.complete
        assert (s.violations, s.note, s.witness) == (0, "", None)
        assert s.rows == s.first_scores * BY_KEY[s.kind].rows(dtype)
        assert s.outputs == s.rows * BY_KEY[s.kind].keys
    assert {f.verdict for f in report.certificate.findings} == {"pass"}
    assert record(report, "pairs (1,1)").largest_code_distance == [1, 1]


def float32(
    *, eps: float = 0.0, ripple: float = 0.0, log2e: float = 0.0, half_sum: bool = False, shift: Any = None
) -> Callable[..., Any]:
    """A masked softmax in float32, rounded once; with a fault, or without."""

    def forward(scores: Any, mask: Any) -> Any:
        with np.errstate(all="ignore"):
            s = np.where(mask, scores.astype(np.float32), -np.inf)
            top = s.max(axis=-1, keepdims=True)
            top = np.where(np.isfinite(top), top, 0.0).astype(np.float32)
            t = (s - (top if shift is None else shift(top))).astype(np.float32)
            e = np.exp2(t * np.float32(log2e)) if log2e else np.exp(t)
            e = (e * (1.0 + ripple * np.sin(37.0 * np.where(mask, t, 0.0)))).astype(np.float32)
            total = e.sum(axis=-1, keepdims=True) + np.float32(eps)
            if half_sum:
                total = total.astype(scores.dtype).astype(np.float32)
            return np.where(mask & (total > 0), e / total, 0.0).astype(scores.dtype)

    return forward


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        ({"eps": 1e-6}, 50),
        ({"ripple": 1e-6}, 5),
        ({"ripple": 1e-5}, 500),
        ({"log2e": 1.4427}, 500),
        ({"half_sum": True}, 10_000),
        ({"shift": lambda top: np.maximum(top, 0)}, 10_000),
        ({"shift": lambda top: 0 * top}, 100_000),
    ],
    ids=["eps 1e-6", "exp off by 1e-6", "exp off by 1e-5", "log2e = 1.4427", "sum in half", "maximum >= 0", "no shift"],
)
def test_a_small_sweep_finds_what_random_halves_hide(fault: dict[str, Any], least: int) -> None:
    report = swept(Subject("x.wrong", float32(**fault), dtypes=("float16",)), fraction=1.5e-4, parts=("pairs",))
    found = record(report, "pairs (1,1)")
    assert report.exit_code == 1
    assert found.violations >= least
    assert found.witness is not None
    assert found.witness.scores is not None
    failing = {f.declaration.rpartition(".")[2] for f in report.certificate.findings if f.verdict == "fail"}
    assert {"getScalar_hardMaskedSoftmaxVecSpec", "spec_eq_weights"} <= failing


@pytest.mark.parametrize("right", [{}, {"log2e": 1.4426950408889634}], ids=["exp", "exp2 of the difference"])
def test_a_small_sweep_passes_what_is_right(right: dict[str, Any]) -> None:
    report = swept(Subject("x.right", float32(**right), dtypes=("float16",)), fraction=1.5e-4, parts=("pairs",))
    assert (report.exit_code, record(report, "pairs (1,1)").violations) == (0, 0)


def test_a_leak_from_one_blocked_score_is_found() -> None:
    def forward(scores: Any, mask: Any) -> Any:
        w = plain(scores, mask)
        leak = ~mask & mask.any(axis=1, keepdims=True) & (scores == scores.dtype.type(-7.5))
        w[leak] = w.dtype.type(2.0**-24)
        return w

    report = swept(Subject("x.leak", forward, dtypes=("float16",)), parts=("blocked",))
    for kind in ("pairs (1,0)", "pairs (0,1)"):
        found = record(report, kind)
        assert found.violations == found.first_scores  # one blocked score of all 65,536
        assert found.witness is not None
        assert found.witness.scores is not None
        assert float.fromhex(found.witness.scores[1 if kind == "pairs (1,0)" else 0]) == -7.5
    leaks = {f.declaration.rpartition(".")[2] for f in report.certificate.findings if f.diagnosis == "leak"}
    assert "hardMaskedSoftmaxVecSpec_blocked_eq_zero" in leaks


def test_a_wrong_vjp_is_found() -> None:
    def vjp(scores: Any, mask: Any, g: Any) -> Any:
        y = derivative(scores, mask, g)
        y[:, 1] = y[:, 1] * y.dtype.type(1.01)
        return y

    report = swept(Subject("x.vjp", plain, vjp=vjp, dtypes=("float16",)), parts=("vjp",))
    assert min(record(report, kind).violations for kind in ("VJP (1,0)", "VJP (0,1)")) > 1000
    failing = [f for f in report.certificate.findings if f.verdict == "fail"]
    assert {f.declaration.rpartition(".")[2] for f in failing} == {"backward_eq_derivative"}
    assert all(f.witness is not None and f.witness.cotangent is not None for f in failing)


@pytest.mark.parametrize("name", ["zero-with-flag", "zero-without-flag", "reject", "fallback"])
def test_empty_rows_are_judged_by_the_contract(name: str, good: Subject) -> None:
    base = Subject("x.softmax", softmax_where, dtypes=("float16",))
    (policy,) = [p for p in policies(base) if p.id == f"x.{name}"]
    report = swept(policy, parts=("empty", "short"))
    empty = record(report, "pairs (0,0)")
    assert (report.exit_code == 0) == (name != "zero-without-flag")
    assert (empty.violations > 0) == (name == "zero-without-flag")
    assert (empty.permitted > 0) == (name in ("reject", "fallback"))
    assert empty.first_scores == (1 if name == "reject" else empty.sampled)
    if name == "zero-without-flag":
        assert "no valid flag" in {f.diagnosis for f in report.certificate.findings}


def test_a_contract_that_is_not_kept_is_found(good: Subject) -> None:
    for asked in ("nan", "fallback(1)", "reject", "zero+valid"):
        report = swept(good, parts=("empty",), contract=asked)
        assert (report.exit_code, record(report, "pairs (0,0)").violations > 0) == (1, True), asked
    assert swept(good, parts=("empty",), contract="zero").exit_code == 0


def test_a_uniform_empty_row_is_named(on_empty_rows: Callable[..., Subject]) -> None:
    report = swept(
        on_empty_rows("x.uniform", lambda scores: 1 / scores.shape[1], dtypes=("float16",)), parts=("empty",)
    )
    (found,) = [f for f in report.certificate.findings if f.declaration == "extension:empty-row"]
    assert (found.verdict, found.diagnosis) == ("fail", "uniform")


def test_a_fault_of_a_call_is_an_error(changed: Callable[..., Subject]) -> None:
    def raises(scores: Any, mask: Any) -> Any:
        if scores.shape[1] == 3:
            raise MemoryError("too much")
        return plain(scores, mask)

    report = swept(changed("x.raises", forward=raises), parts=("short",))
    assert (report.exit_code, report.certificate.subjects[0].verdict) == (1, "error")
    assert not record(report, "length 3").complete
    assert "it raised MemoryError: too much" in record(report, "length 3").note
    assert record(report, "length 1").complete


def test_a_sweep_ends_when_there_is_nothing_left_to_learn(
    changed: Callable[..., Subject], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardmask.conformance.exhaustive.piece.STOP", 1000)
    monkeypatch.setattr("hardmask.conformance.exhaustive.counts.STOP", 1000)
    wrong = changed("x.wrong", forward=lambda scores, mask: np.zeros_like(scores))
    found = record(swept(wrong, fraction=1e-3, parts=("pairs",)), "pairs (1,1)")
    assert not found.complete
    assert found.first_scores < found.sampled
    assert "too many violations" in found.note


def test_what_a_subject_does_not_offer_is_listed(changed: Callable[..., Subject]) -> None:
    report = swept(changed("x.forward"), fraction=2e-5)
    assert not any(s.method == "vjp" for s in report.certificate.sweeps)
    (missing,) = {f.declaration for f in report.certificate.findings if f.verdict == "unsupported"}
    assert missing.endswith("backward_eq_derivative")
    alone = swept(changed("x.single", dtypes=("float32",)), fraction=2e-5)
    assert alone.exit_code == 1
    assert {f.verdict for f in alone.certificate.findings} == {"unsupported"}


def test_pieces_add_up() -> None:
    total = Counts()
    for part in (Counts(firsts=2, rows=4, misrounded=[1, 0], distance=[3, 0]), Counts(rows=1, errors=["x"])):
        total.add(part)
    assert (total.firsts, total.rows, total.misrounded, total.distance, total.over) == (2, 5, [1, 0], [3, 0], True)
    total.add(Counts(violations=counts.STOP, misrounded=[1, 1], distance=[2, 9]))
    assert (total.misrounded, total.distance, total.stopped) == ([2, 1], [3, 9], True)


def test_a_sample_is_seeded_and_named() -> None:
    first, again, other = sample("float16", 0.01, 0), sample("float16", 0.01, 0), sample("float16", 0.01, 1)
    assert first.words == again.words != other.words
    assert first.words.startswith("635 of 63,488 first scores, seed 0, sample sha256 ")
    assert sample("bfloat16", 1.0, 5).words == "all 65,280 first scores"
    assert np.array_equal(np.concatenate(first.pieces()), first.indices)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("torch.masked-fill", marks=pytest.mark.torch),
        pytest.param("jax.softmax-where[jit]", marks=pytest.mark.jax),
        "numpy.fill-inf",
    ],
)
def test_the_tables_settle_nearly_all_rows_of_a_backend(name: str) -> None:
    """What the ordinary check has to decide costs a thousand times more: few rows may be left to it."""
    from hardmask.adapters.registry import resolve

    (subject,) = resolve([name])
    for dtype in subject.dtypes:
        if dtype in ("float16", "bfloat16"):
            report = swept(subject, dtype, fraction=5e-5)
            assert report.exit_code == 0
            for s in report.certificate.sweeps:
                assert s.kind == "length 3" or s.judged <= 0.01 * s.rows, s.kind
