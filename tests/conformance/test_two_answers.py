"""Faults that show only when two answers of one subject are compared, and what the report says about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Subject
from hardmask.conformance.certification import Report
from hardmask.conformance.finding import Finding
from hardmask.conformance.terminal.witness import block, failures

Judge = Callable[..., Report]
Select = Callable[..., list[Finding]]
Changed = Callable[..., Subject]


def weights(s: Any, m: Any) -> Any:
    return softmax_where(s, m).weights


def alone_is_zero(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda s, m, *v: function(s, m, *v) * np.asarray(len(s) != 1, s.dtype)


@pytest.mark.parametrize("method", ["forward", "vjp", "jvp"])
def test_a_row_alone_gives_what_it_gives_in_a_batch(
    method: str, changed: Changed, judge: Judge, select: Select
) -> None:
    good = {"forward": weights, "vjp": softmax_where_derivative, "jvp": softmax_where_derivative}
    subject = changed("x.alone", **{**good, method: alone_is_zero(good[method])})
    report = judge(subject)
    assert report.exit_code == 1
    failed = [f for f in report.certificate.findings if f.verdict == "fail"]
    assert {f.declaration for f in failed} == {"extension:batch-invariance"}
    assert {f.diagnosis for f in failed} == {"answers differ"}


def test_the_witness_of_a_difference_holds_both_answers(changed: Changed, judge: Judge, select: Select) -> None:
    report = judge(changed("x.alone", forward=alone_is_zero(weights)))
    (found,) = select(report, "batch-invariance", verdict="fail")
    w = found.witness
    assert w is not None
    assert w.index is not None
    assert w.returned is not None
    assert w.other is not None
    apart = abs(float.fromhex(w.returned[w.index]) - float.fromhex(w.other[w.index]))
    assert apart == found.error
    assert set(w.other) == {"0x0.0p+0"}
    text = block(failures(report.certificate)[0], report.certificate)
    assert "\n  returned " in text
    assert "\n  other " in text


def test_a_pair_of_derivatives_is_shown_with_both_vectors(changed: Changed, judge: Judge) -> None:
    def uncentred(s: Any, m: Any, v: Any) -> Any:
        return np.where(m, weights(s, m) * v, 0).astype(s.dtype)

    report = judge(changed("x.pair", vjp=softmax_where_derivative, jvp=uncentred))
    group = next(g for g in failures(report.certificate) if g[0].diagnosis == "JVP and VJP disagree")
    pair = next(f for f in group if f.witness is not None and f.witness.quantity == "inner product")
    assert pair.witness is not None
    assert pair.witness.cotangent is not None
    assert pair.witness.tangent is not None
    assert pair.witness.other is not None
    text = block([pair], report.certificate)
    for name in ("cotangent", "tangent", "returned", "other", "true"):
        assert f"\n  {name:<10} " in text


def test_an_inverted_mask_has_one_name_everywhere(changed: Changed, judge: Judge) -> None:
    report = judge(changed("x.inverted", forward=lambda s, m: weights(s, ~m)))
    assert report.exit_code == 1
    assert {f.diagnosis for f in report.certificate.findings if f.verdict == "fail"} == {"inverted mask"}


def test_a_penalty_that_a_blocked_score_beats_is_no_inverted_mask(changed: Changed, judge: Judge) -> None:
    def penalised(s: Any, m: Any) -> Any:
        return weights(s + np.where(m, 0, -10).astype(s.dtype), np.ones_like(m))

    report = judge(changed("x.penalty", forward=penalised))
    assert report.exit_code == 1
    assert "inverted mask" not in {f.diagnosis for f in report.certificate.findings}


def test_the_hint_for_nan_depends_on_the_row(changed: Changed, judge: Judge) -> None:
    def unshifted(s: Any, m: Any) -> Any:
        e = np.where(m, np.exp(np.where(m, s, 0)), 0)
        total = e.sum(axis=1, keepdims=True)
        return np.where(total > 0, e / np.where(total > 0, total, 1), 0).astype(s.dtype)

    report = judge(changed("x.unshifted", forward=unshifted))
    text = "\n".join(block(group, report.certificate) for group in failures(report.certificate))
    assert "NaN: exp without subtracting the largest allowed score overflows" in text
    assert "computes -inf - (-inf)" not in text
