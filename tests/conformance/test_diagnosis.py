"""Each fault gets the word for it. A diagnosis explains a verdict and never makes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax, softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Subject
from hardmask.conformance.certification import Report
from hardmask.conformance.finding import Finding
from hardmask.spec.formats import FORMATS

Judge = Callable[..., Report]
Select = Callable[..., list[Finding]]
Changed = Callable[..., Subject]


def weights(s: Any, m: Any) -> Any:
    return softmax_where(s, m).weights


def times(factor: float) -> Callable[[Any, Any], Any]:
    return lambda s, m: (weights(s, m) * factor).astype(s.dtype)


def leaking(s: Any, m: Any) -> Any:
    """A thousandth of the weight goes to the blocked keys."""
    w = weights(s, m)
    blocked = ~m & m.any(axis=1, keepdims=True)
    return np.where(blocked, np.asarray(1e-3, s.dtype), w)


def shifted_once(s: Any, m: Any) -> Any:
    """Weight moved from one allowed key to another: the sum stays 1."""
    w = weights(s, m)
    several = m.sum(axis=1) > 1
    first = m.argmax(axis=1)
    last = m.shape[1] - 1 - m[:, ::-1].argmax(axis=1) if m.shape[1] else first
    row = np.arange(len(w))
    if m.shape[1]:
        move = np.where(several, w[row, first] / 4, 0).astype(s.dtype)
        w[row, first] -= move
        w[row, last] += move
    return w


def negative(s: Any, m: Any) -> Any:
    return -weights(s, m)


FORWARD: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "NaN": (lambda s, m: np.where(m, np.nan, 0).astype(s.dtype), "normal"),
    "infinity": (lambda s, m: np.where(m, np.inf, 0).astype(s.dtype), "normal"),
    "leak": (leaking, "poison -max"),
    "raw softmax": (lambda s, m: softmax(np.where(np.isfinite(s), s, 0).astype(s.dtype)), "beside empty rows"),
    "negative weight": (negative, "normal"),
    "not normalised": (times(2.0), "normal"),
    "wrong weights": (shifted_once, "ties"),
}


@pytest.mark.parametrize("name", FORWARD)
def test_faults_of_the_weights_have_names(name: str, changed: Changed, judge: Judge, select: Select) -> None:
    forward, family = FORWARD[name]
    report = judge(changed("x.wrong", forward=forward))
    (found,) = select(report, "spec_eq_weights", family=family)
    assert (found.verdict, found.diagnosis) == ("fail", name)


def test_a_small_excess_is_called_rounding(changed: Changed, judge: Judge, select: Select) -> None:
    report = judge(changed("x.eps", forward=times(1 + 30 * FORMATS["float32"].u)))
    failed = select(report, "spec_eq_weights", verdict="fail")
    assert failed
    assert {f.diagnosis for f in failed} <= {"rounding", "not normalised"}
    single = select(report, "spec_eq_weights", family="single")
    assert {f.verdict for f in single} == {"fail"}
    assert all(f.ratio is not None and f.ratio < 32 for f in failed)


def test_a_weaker_tier_that_would_hold_is_named(changed: Changed, judge: Judge, select: Select) -> None:
    """Each operation rounded to float16, declared as ``mixed``: the finding says which tier would have been true."""

    def forward(s: Any, m: Any) -> Any:
        filled = np.where(m, s, np.asarray(-np.inf, s.dtype))
        with np.errstate(all="ignore"):
            w = softmax(filled)
        return np.where(m, w, np.asarray(0, s.dtype))

    declared = changed("x.half", forward=forward, dtypes=("float16",), tier="mixed")
    report = judge(declared, dtypes=("float16",))
    named = {f.diagnosis for f in select(report, "spec_eq_weights", verdict="fail")}
    assert "rounding: holds under half-ops" in named
    assert (
        judge(changed("x.half", forward=forward, dtypes=("float16",), tier="half-ops"), dtypes=("float16",)).exit_code
        == 0
    )


def test_two_answers_to_one_row_are_told_apart_from_a_wrong_row(changed: Changed, judge: Judge, select: Select) -> None:
    """Only the first half of a batch is wrong: of a pair the copy is right, and what fails is that they differ."""

    def forward(s: Any, m: Any) -> Any:
        w = weights(s, m)
        half = len(w) // 2
        w[:half] = (w[:half] * np.asarray(1.01, w.dtype)).astype(w.dtype)
        return w

    report = judge(changed("x.first", forward=forward))
    found = select(report, "permutation-equivariance", verdict="fail")
    assert found
    assert {f.diagnosis for f in found} <= {"answers differ", "not normalised"}
    assert select(report, "spec_eq_weights", family="normal", verdict="fail")


def masked(m: Any, y: Any) -> Any:
    return np.where(m, y, 0)


DERIVATIVE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "zero derivative": lambda s, m, v: np.zeros_like(v),
    "centring lost": lambda s, m, v: masked(m, weights(s, m) * v).astype(v.dtype),
    "wrong sign": lambda s, m, v: -softmax_where_derivative(s, m, v),
    "leak": lambda s, m, v: np.where(m, softmax_where_derivative(s, m, v), m.any(axis=1, keepdims=True)).astype(
        v.dtype
    ),
    "NaN": lambda s, m, v: np.full_like(v, np.nan),
    "infinity": lambda s, m, v: np.full_like(v, np.inf),
    "wrong derivative": lambda s, m, v: (2 * softmax_where_derivative(s, m, v)).astype(v.dtype),
}


@pytest.mark.parametrize("mode", ["vjp", "jvp"])
@pytest.mark.parametrize("name", DERIVATIVE)
def test_faults_of_the_derivatives_have_names(
    name: str, mode: str, changed: Changed, judge: Judge, select: Select
) -> None:
    report = judge(changed("x.wrong", **{mode: DERIVATIVE[name]}))
    declaration = {"vjp": "backward_eq_derivative", "jvp": "derivative_apply"}[mode]
    (found,) = select(report, declaration, family="poison +30")
    expected = f"clean forward, NaN {mode.upper()}" if name in ("NaN", "infinity") else name
    assert found.verdict == "fail"
    assert found.diagnosis == expected
    assert {f.verdict for f in select(report, "spec_eq_weights", family="poison +30")} == {"pass"}


def test_a_jacobian_that_is_not_symmetric_is_named(
    good: Subject, changed: Changed, judge: Judge, select: Select
) -> None:
    """``w_i (v_i - mean v)``: the plain mean in place of the weighted one."""

    def mean_centred(s: Any, m: Any, v: Any) -> Any:
        w, count = weights(s, m), np.maximum(m.sum(axis=1, keepdims=True), 1)
        return masked(m, w * (v - masked(m, v).sum(axis=1, keepdims=True) / count)).astype(v.dtype)

    report = judge(changed("x.mean", vjp=mean_centred, jvp=good.jvp))
    assert "not self-adjoint" in {f.diagnosis for f in select(report, "inner_derivative", verdict="fail")}
    assert "JVP and VJP disagree" in {f.diagnosis for f in select(report, "backward_eq_adjoint_fderiv", verdict="fail")}


def test_symmetric_and_wrong_passes_the_adjoint_and_fails_the_value(
    changed: Changed, judge: Judge, select: Select
) -> None:
    double = DERIVATIVE["wrong derivative"]
    report = judge(changed("x.double", vjp=double, jvp=double))
    assert {f.verdict for f in select(report, "backward_eq_adjoint_fderiv", family="normal")} == {"pass"}
    assert {f.verdict for f in select(report, "backward_eq_derivative", family="normal")} == {"fail"}


def test_backward_passes_that_consume_the_output_are_judged_at_that_output(
    changed: Changed, judge: Judge, select: Select
) -> None:
    """A VJP at other weights than those returned hides in the full budget and not in the conditional one."""

    def anew(s: Any, m: Any, v: Any) -> Any:
        """As if the weights had been computed again, each a little too large."""
        w, v = weights(s, m).astype(np.float64), masked(m, v).astype(np.float64)
        larger = w * (1 + 15 * FORMATS["float32"].u)
        return masked(m, larger * (v - (w * v).sum(axis=1, keepdims=True))).astype(s.dtype)

    assert judge(changed("x.anew", vjp=anew)).exit_code == 0
    promised = judge(changed("x.anew", vjp=anew, promises=frozenset({"vjp-from-output"})))
    failed = select(promised, "backward_eq_derivative", verdict="fail")
    assert failed
    assert {f.witness.note for f in failed if f.witness} == {"given the returned weights"}


def test_the_most_frequent_fault_names_a_finding(changed: Changed, judge: Judge, select: Select) -> None:
    def forward(s: Any, m: Any) -> Any:
        w = weights(s, m) * 2
        w[::5] = np.where(m[::5], np.nan, 0)
        return w.astype(s.dtype)

    (found,) = select(judge(changed("x.two", forward=forward)), "spec_eq_weights", family="normal")
    assert found.diagnosis == "not normalised"
    assert found.ratio is not None, "the witness belongs to the diagnosis, not to the NaN"
