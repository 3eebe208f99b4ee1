"""Where a run is computed does not matter, and an interrupted one says so."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from copy import deepcopy
from itertools import permutations
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject
from hardmask.conformance.cases import plan
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.finding import Finding
from hardmask.conformance.judgement import Tally
from hardmask.conformance.runner import CaseJudged, CaseStarted, Event, Policy, Results, judge, merge, run
from hardmask.conformance.verdicts import findings

TARGETS = ("numpy.fill-inf", "numpy.additive-min")


def thread() -> Executor:
    return ThreadPoolExecutor(2)


def process() -> Executor:
    return ProcessPoolExecutor(2, get_context("spawn"))


@pytest.fixture(scope="module")
def alone() -> Report:
    return certify(Request(TARGETS, effort="smoke", dtypes=("float32",)))


@pytest.mark.parametrize("pool", [thread, process])
def test_an_executor_changes_nothing(pool: Callable[[], Executor], alone: Report) -> None:
    with pool() as executor:
        elsewhere = certify(Request(TARGETS, effort="smoke", dtypes=("float32",)), executor=executor)
    assert elsewhere.certificate.findings == alone.certificate.findings
    assert elsewhere.certificate.digest == alone.certificate.digest
    assert (elsewhere.exit_code, elsewhere.reason) == (alone.exit_code, alone.reason)


def test_the_events_tell_of_every_case_in_order() -> None:
    heard: list[Event] = []
    certify(Request(("numpy.fill-inf",), effort="smoke", dtypes=("float32",)), listen=heard.append)
    cases = plan("smoke", 0, ["float32"])
    assert [type(e) for e in heard] == [CaseStarted, CaseJudged] * len(cases)
    assert [e.case for e in heard[::2]] == [e.case for e in heard[1::2]] == cases
    assert [e.index for e in heard[::2]] == list(range(len(cases)))
    assert {e.total for e in heard} == {len(cases)}


def test_the_order_of_the_batches_changes_no_verdict(good: Subject, changed: Callable[..., Subject]) -> None:
    subjects = [good, changed("x.off", forward=lambda s, m: softmax_where(s, m).weights * np.float32(1.001))]
    parts = [judge(case, subjects, Policy()) for case in plan("smoke", 0, ["float32"], rounds=2) if case.keys]
    found = []
    for order in (parts, parts[::-1], parts[1::2] + parts[::2]):
        results: Results = {}
        for part in order:
            merge(results, deepcopy(part))
        found.append({(f.subject, f.declaration, f.family): f for f in findings(subjects, ["float32"], results)})
    assert found[0] == found[1] == found[2]
    assert {f.verdict for f in found[0].values()} >= {"pass", "fail"}


def tally(**fields: Any) -> Tally:
    return Tally(tier="strict", **fields)


def test_tallies_add_up_in_any_order() -> None:
    parts = [
        tally(checked=3, failed=1, elements=30, ratio=2.0, diagnoses={"leak": 1}, errors=["a"], facts=["f"]),
        tally(checked=5, permitted=2, unmet=4, elements=50, ratio=0.5, diagnoses={"NaN": 2, "leak": 2}),
        tally(checked=1, blind=1, tellable=1, elements=10, errors=["b", "a"]),
    ]
    for order in permutations(parts):
        total = tally()
        for part in order:
            total.merge(deepcopy(part))
        counts = ("checked", "failed", "permitted", "unmet", "blind", "tellable", "elements", "ratio")
        assert [getattr(total, n) for n in counts] == [9, 1, 2, 4, 1, 1, 90, 2.0]
        assert total.diagnoses == {"leak": 3, "NaN": 2}
        assert sorted(total.errors) == ["a", "b"]
        assert total.facts == ["f"]


def test_a_subject_is_judged_in_its_own_dtypes_only(good: Subject, changed: Callable[..., Subject]) -> None:
    results: Results = {}
    some = changed("x.one", dtypes=("float32",))
    for _ in run([good, some], plan("smoke", 0, ["float32", "float16"]), Policy(), results):
        pass
    assert set(results) == {(good.id, "float32"), (good.id, "float16"), ("x.one", "float32")}


def test_nothing_to_judge_is_an_empty_run(changed: Callable[..., Subject]) -> None:
    results: Results = {}
    assert not list(run([changed("x", dtypes=("float64",))], plan("smoke", 0, ["float32"]), Policy(), results))
    assert not results


def interrupted_after(calls: int) -> Callable[[Any, Any], Any]:
    left = [calls]

    def forward(scores: Any, mask: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return softmax_where(scores, mask).weights

    return forward


def check_interrupted(report: Report) -> None:
    assert report.certificate.complete is False
    assert report.exit_code == 1
    assert report.reason == (
        "The run was interrupted: the certificate holds what was judged until then and certifies nothing."
    )


def test_an_interruption_inside_a_subject_keeps_what_was_judged(
    good: Subject,
    changed: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    report = judge(good, changed("x.stops", forward=interrupted_after(4)))
    check_interrupted(report)
    assert select(report, subject=good.id, verdict="pass")
    assert not select(report, verdict="fail")
    assert not select(report, verdict="error")


def test_an_interruption_of_the_very_first_call(changed: Callable[..., Subject], judge: Callable[..., Report]) -> None:
    report = judge(changed("x.stops", forward=interrupted_after(0)))
    check_interrupted(report)
    assert report.certificate.subjects[0].verdict == "unsupported"  # no derivative; of the forward nothing is known
    assert not any(f.checked for f in report.certificate.findings)


@pytest.mark.parametrize("after", [1, 6])
def test_an_interruption_inside_the_listener(after: int, good: Subject, judge: Callable[..., Report]) -> None:
    heard: list[Event] = []

    def listen(event: Event) -> None:
        heard.append(event)
        if len(heard) == after:
            raise KeyboardInterrupt

    report = judge(good, listen=listen)
    check_interrupted(report)
    assert len(heard) == after
    judged = any(f.checked for f in report.certificate.findings)
    assert judged == (after > 1)


def test_an_interruption_on_an_executor_cancels_the_rest(alone: Report) -> None:
    def listen(event: Event) -> None:
        if isinstance(event, CaseJudged) and event.index == 2:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(1) as executor:
        report = certify(Request(TARGETS, effort="smoke", dtypes=("float32",)), executor=executor, listen=listen)
    check_interrupted(report)
    assert 0 < sum(f.checked for f in report.certificate.findings) < sum(f.checked for f in alone.certificate.findings)
