"""Failing rows are shrunk to the obvious one, once per subject and declaration, and nothing is lost on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Subject
from hardmask.conformance import check_row
from hardmask.conformance.certification import Report
from hardmask.conformance.finding import IN_COMPANY, Finding, Witness
from hardmask.conformance.minimise import CALLS
from hardmask.conformance.mutants import mutants
from hardmask.conformance.terminal.witness import block, failures

Changed = Callable[..., Subject]
Judge = Callable[..., Report]
Select = Callable[..., list[Finding]]
Forward = Callable[[Any, Any], Any]


def weights(scores: Any, mask: Any) -> Any:
    return softmax_where(scores, mask).weights


def numbers(row: list[str] | None) -> list[float]:
    assert row is not None
    return [float.fromhex(x) for x in row]


def minimal(report: Report, name: str, select: Select) -> Witness:
    (found,) = (f.minimal for f in select(report, name) if f.minimal is not None)
    return found


def over_ten(scores: Any, mask: Any) -> Any:
    """Whether a row of at least three keys has an allowed score above 10."""
    return (np.where(mask, np.nan_to_num(scores), 0) > 10).any(axis=1) & (scores.shape[1] >= 3)


def planted(scores: Any, mask: Any) -> Any:
    w = weights(scores, mask)
    return np.where(over_ten(scores, mask)[:, None], w * w.dtype.type(0.5), w)


@pytest.mark.parametrize(
    ("dtype", "effort"),
    [("float64", "smoke"), ("float32", "smoke"), ("float16", "smoke"), ("bfloat16", "smoke"), ("float32", "default")],
)
def test_a_planted_fault_shrinks_to_the_obvious_row(
    changed: Changed, judge: Judge, select: Select, dtype: str, effort: str
) -> None:
    report = judge(changed("x.planted", forward=planted), dtypes=(dtype,), effort=effort)
    row = minimal(report, "row-sum", select)
    assert sorted(numbers(row.scores)) == [0.0, 0.0, 11.0]
    assert row.mask == [True] * 3
    assert row.error is not None
    assert row.budget is not None
    assert row.error > row.budget


def test_each_subject_and_declaration_is_shrunk_once(changed: Changed, judge: Judge) -> None:
    report = judge(
        *(changed(f"x.{name}", forward=planted) for name in ("a", "b")), dtypes=("float32", "float16", "float64")
    )
    shrunk = [(f.subject, f.declaration) for f in report.certificate.findings if f.minimal is not None]
    failed = {(f.subject, f.declaration) for f in report.certificate.findings if f.verdict == "fail"}
    assert len(shrunk) == len(set(shrunk))
    assert set(shrunk) == failed
    assert len(failed) > 6


def test_the_calls_are_bounded(changed: Changed, judge: Judge) -> None:
    calls = 0

    def forward(scores: Any, mask: Any) -> Any:
        nonlocal calls
        calls += 1
        # Chaotic on purpose: nothing that fails stays failed when it changes.
        w = weights(scores, mask)
        odd = np.abs(np.sin(np.nan_to_num(scores.astype(float)).sum(axis=1) * 1e4)) > 0.7
        return np.where(odd[:, None], w * w.dtype.type(0.9), w)

    made = {}
    for minimise in (False, True):
        calls = 0
        report = judge(changed("x.chaos", forward=forward), minimise=minimise)
        made[minimise] = calls
    shrunk = sum(f.verdict == "fail" for f in report.certificate.findings)
    assert 0 < made[True] - made[False] <= shrunk * 4 * CALLS


def once(scores: Any, mask: Any, v: Any) -> Any:
    """A derivative that forgets its second part as soon as a vector has two entries of one size."""
    d = softmax_where_derivative(scores, mask, v)
    return np.where((v[:, :1] == 1.0) & (v.shape[1] > 1), d * d.dtype.type(2), d)


def wrong_sign(scores: Any, mask: Any, v: Any) -> Any:
    return -softmax_where_derivative(scores, mask, v)


def first_key(scores: Any, mask: Any) -> Any:
    """The first key gets too much: not the permuted weights of a permuted row."""
    w = weights(scores, mask).copy()
    w[:, :1] *= w.dtype.type(1.01)
    return w


def large(scores: Any, mask: Any) -> Any:
    """Wrong for large scores only: not invariant under shifts."""
    w = weights(scores, mask)
    far = (np.abs(np.where(mask, np.nan_to_num(scores), 0)) > 500).any(axis=1)
    return np.where(far[:, None], w * w.dtype.type(0.75), w)


def lost_tail(scores: Any, mask: Any) -> Any:
    """Rows of more than 16 keys lose a little of every weight."""
    w = weights(scores, mask)
    return w * w.dtype.type(0.99) if scores.shape[1] > 16 else w


def reads_blocked(scores: Any, mask: Any) -> Any:
    """Blocked scores above 1000 scale the row."""
    w = weights(scores, mask)
    hot = np.where(mask, 0, np.nan_to_num(scores)).max(axis=1, initial=0) > 1000
    return np.where(hot[:, None], w * w.dtype.type(0.5), w)


PLANTED: dict[str, tuple[dict[str, Any], str, Callable[[Witness], bool]]] = {
    "a VJP": ({"vjp": wrong_sign}, "backward_eq_derivative", lambda w: sum(map(abs, numbers(w.cotangent))) == 1.0),
    "a JVP": (
        {"vjp": softmax_where_derivative, "jvp": once},
        "derivative_apply",
        lambda w: numbers(w.tangent)[0] == 1.0 and w.keys == 2,
    ),
    "two derivatives": (
        {"vjp": softmax_where_derivative, "jvp": once},
        "backward_eq_adjoint_fderiv",
        lambda w: w.keys == 2,
    ),
    "a permuted row": ({"forward": first_key}, "permutation-equivariance", lambda w: w.keys == 2),
    "a shifted row": (
        {"forward": large},
        "shift-invariance",
        lambda w: w.keys == 1 and abs(numbers(w.scores)[0]) <= 600,
    ),
    "a truncated row": ({"forward": lost_tail}, "truncation", lambda w: w.mask == [True] * 16 + [False]),
    "a causal row": (
        {"forward": lambda s, m: np.maximum(weights(s, m), s.dtype.type(0.001)).astype(s.dtype)},
        "causal_future_zero",
        lambda w: w.mask in ([True, False], [False]),
    ),
    "blocked scores": (
        {"forward": reads_blocked},
        "score-non-interference",
        lambda w: w.keys == 2 and sum(w.mask or []) == 1 and 1000 < max(numbers(w.scores)) <= 1500,
    ),
    "an empty row": (
        {"forward": lambda s, m: np.where(m.any(axis=1, keepdims=True), weights(s, m), 1 / max(s.shape[1], 1))},
        "empty-row",
        lambda w: numbers(w.scores) == [0.0, 0.0] and numbers(w.returned) == [0.5, 0.5],
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_every_kind_of_check_is_shrunk(name: str, changed: Changed, judge: Judge, select: Select) -> None:
    fields, declaration, expected = PLANTED[name]

    def forward(scores: Any, mask: Any) -> Any:
        return fields.get("forward", weights)(scores, mask).astype(scores.dtype)

    subject = changed("x.planted", **{**fields, "forward": forward})
    report = judge(subject, dtypes=("float32",), effort="default")
    row = minimal(report, declaration, select)
    assert expected(row), row
    assert IN_COMPANY not in row.note


def test_a_minimal_row_fails_when_it_is_judged_again(changed: Changed, judge: Judge) -> None:
    """By another way through the suite, which knows nothing of the shrinking."""
    subject = changed("x.several", forward=first_key, vjp=wrong_sign, jvp=once)
    report = judge(subject)
    again = 0
    for f in report.certificate.findings:
        w = f.minimal
        if w is None or w.quantity == "difference":
            continue
        vectors = [None if v is None else np.float32(numbers(v)) for v in (w.cotangent, w.tangent)]
        with pytest.raises(AssertionError) as problem:
            check_row(subject, np.float32(numbers(w.scores)), np.array(w.mask), *vectors)
        assert f.declaration.rpartition(".")[2] in str(problem.value)
        again += 1
    assert again > 8


def test_the_truth_beside_a_minimal_row_is_an_enclosure(changed: Changed, judge: Judge, select: Select) -> None:
    report = judge(changed("x.off", forward=lambda s, m: (weights(s, m) * s.dtype.type(1.001)).astype(s.dtype)))
    (found,) = (f for f in select(report, "spec_eq_weights", verdict="fail") if f.minimal is not None)
    row = found.minimal
    assert row is not None
    assert row.enclosure is not None
    assert row.index is not None
    low, high = map(float, row.enclosure)
    true = np.float64(weights(np.float64([numbers(row.scores)]), np.array([row.mask]))[0, row.index])
    assert low - 1e-15 <= true <= high + 1e-15
    assert row.exact is not None
    assert len(row.exact) == row.keys
    assert found.witness is not None
    assert (row.batch, row.row) == (found.witness.batch, found.witness.row)
    assert row.keys < found.witness.keys


def test_a_row_that_fails_only_beside_others_is_kept(changed: Changed, judge: Judge) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        w = weights(scores, mask)
        return (w * w.dtype.type(0.5 if len(w) > 90 else 1.0)).astype(w.dtype)

    report = judge(changed("x.crowd", forward=forward))
    failed = [f for f in report.certificate.findings if f.verdict == "fail"]
    assert failed
    assert all(f.minimal is None for f in failed)
    noted = [f for f in failed if f.witness is not None and IN_COMPANY in f.witness.note]
    # That two places of a batch give two answers needs no note.
    assert {f.declaration for f in noted} == {f.declaration for f in failed} - {"extension:batch-invariance"}
    text = block(failures(report.certificate)[0], report.certificate)
    assert IN_COMPANY in text
    assert "smallest row" not in text


def test_a_row_that_raises_is_shrunk_too(changed: Changed, judge: Judge, select: Select) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        if over_ten(scores, mask).any():
            raise ArithmeticError(f"{scores.shape} is too much")
        return weights(scores, mask)

    report = judge(changed("x.raises", forward=forward))
    row = minimal(report, "row-sum", select)
    assert sorted(numbers(row.scores)) == [0.0, 0.0, 11.0]
    assert row.mask == [True] * 3
    assert "smallest row found" in block(failures(report.certificate)[0], report.certificate)


@pytest.mark.parametrize("rows", [1, 64])
def test_a_subject_that_raises_meanwhile_loses_no_finding(
    rows: int, changed: Changed, judge: Judge, good: Subject
) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        if len(scores) == rows:
            raise RuntimeError("not now")
        return planted(scores, mask)

    report = judge(changed("x.moody", forward=forward))
    plain = judge(changed("x.moody", forward=forward), minimise=False)
    ours = [(f.declaration, f.family, f.verdict, f.ratio) for f in report.certificate.findings]
    assert ours == [(f.declaration, f.family, f.verdict, f.ratio) for f in plain.certificate.findings]
    assert report.exit_code == plain.exit_code == 1


def test_what_needs_no_shrinking_has_none(good: Subject, changed: Changed, judge: Judge) -> None:
    report = judge(good, changed("x.off", forward=planted), minimise=False)
    assert all(f.minimal is None for f in report.certificate.findings)
    assert all(f.minimal is None for f in judge(good).certificate.findings)


def test_garbage_stays_at_blocked_keys(judge: Judge, select: Select) -> None:
    """A minimal row of the promise ``isolation``: where a key is allowed, a NaN breaks none."""

    leaky = next(m.subject for m in mutants() if m.name == "reads-nan-at-blocked")
    found = [f.minimal for f in select(judge(leaky), "isolation", verdict="fail") if f.minimal is not None]
    assert found
    for row in found:
        assert row.tangent is not None
        assert row.mask is not None
        garbage = np.isnan(numbers(row.tangent))
        assert garbage.any()
        assert not (garbage & np.array(row.mask)).any()
