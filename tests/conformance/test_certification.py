"""From a request to an exit code: what certifies, what does not, and when hardmask doubts itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Answer, Subject
from hardmask.conformance.certification import REQUIREMENTS, Report, Request, SuiteFault, certify
from hardmask.conformance.finding import Finding, Verdict, combine
from hardmask.spec.formats import FORMATS
from hardmask.spec.oracle.referee import decide
from hardmask.spec.rounding import RoundingModel

Judge = Callable[..., Report]
Select = Callable[..., list[Finding]]
Changed = Callable[..., Subject]


def doubled(scores: Any, mask: Any) -> Any:
    return softmax_where(scores, mask).weights * 2


def test_a_good_subject_is_certified(good: Subject, judge: Judge) -> None:
    report = judge(good, dtypes=("float64", "float32", "float16", "bfloat16"))
    assert (report.exit_code, report.reason) == (0, "Certified: every subject keeps what it declares.")
    assert report.certificate.complete
    assert report.certificate.subjects[0].verdict == "pass"


def test_one_bad_subject_among_good_ones_is_named(good: Subject, changed: Changed, judge: Judge) -> None:
    report = judge(good, changed("x.double", forward=doubled))
    assert (report.exit_code, report.reason) == (1, "Not certified: x.double.")


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"targets": ()}, "Nothing to certify: name an adapter, a subject or a file."),
        (
            {"contract": "uniform"},
            "There is no empty-row contract 'uniform'. Choose one of: zero, zero+valid, nan, reject",
        ),
        ({"require": ("speed",)}, "There is no requirement 'speed'. Choose from: zero, complete, isolation"),
        ({"dtypes": ("float8",)}, "There is no dtype 'float8'. Choose from: float64, float32, float16, bfloat16."),
        ({"effort": "heroic"}, "There is no effort 'heroic'. Choose from: smoke, default, deep."),
        ({"seed": -1}, "A seed is a whole number from 0; -1 is negative."),
    ],
)
def test_a_wrong_request_gets_a_sentence(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as problem:  # noqa: PT011 - the sentence is compared below
        Request(**{"targets": ("numpy",), **wrong})
    assert str(problem.value).startswith(sentence)


def test_an_unknown_target_is_no_fault_of_the_suite() -> None:
    with pytest.raises(ValueError, match=r"There is no target 'nunpy'\. Did you mean 'numpy'"):
        certify(Request(("nunpy",)))


def test_only_the_requested_dtypes_are_judged(good: Subject, judge: Judge, select: Select) -> None:
    report = judge(good, dtypes=("float16",))
    assert {f.dtype for f in select(report)} == {"float16"}


def test_a_dtype_that_is_not_offered_is_there_with_its_reason(changed: Changed, judge: Judge, select: Select) -> None:
    subject = changed(
        "x.some", dtypes=("float32",), unsupported={"float64": "The accelerator has no float64.", "vjp": "No autograd."}
    )
    report = judge(subject, dtypes=("float64", "float32", "float16"))
    assert {(f.verdict, f.diagnosis) for f in select(report, dtype="float64")} == {
        ("unsupported", "The accelerator has no float64.")
    }
    assert {f.diagnosis for f in select(report, dtype="float16")} == {"the subject does not offer float16"}
    (pulled,) = select(report, "backward_eq_derivative", dtype="float32")
    (pushed,) = select(report, "derivative_apply", dtype="float32")
    assert (pulled.verdict, pulled.diagnosis) == ("unsupported", "No autograd.")
    assert (pushed.verdict, pushed.diagnosis) == ("unsupported", "the subject offers no jvp")
    assert report.exit_code == 0


def test_a_forward_that_was_never_judged_certifies_nothing(changed: Changed, judge: Judge) -> None:
    report = judge(changed("x.half", dtypes=("float16",)), dtypes=("float32",))
    assert report.exit_code == 1
    assert report.reason == "Not certified: the forward pass of x.half was never judged; it offers float16."


def test_a_missing_derivative_counts_only_under_require_complete(good: Subject, changed: Changed, judge: Judge) -> None:
    partial = changed("x.forward")
    assert judge(partial).exit_code == 0
    report = judge(partial, require=("complete",))
    assert report.exit_code == 1
    assert report.reason.startswith("Not complete: x.forward was not judged on ")
    assert report.reason.endswith("in float32: the subject offers no vjp.")
    assert judge(good, require=("complete",)).exit_code == 0
    # A dtype that the subject does not have is no gap of the subject.
    assert (
        judge(changed("x.one", vjp=good.vjp, jvp=good.jvp, dtypes=("float32",)), require=("complete",)).exit_code == 0
    )


def test_one_derivative_mode_decides_what_either_can(
    good: Subject, changed: Changed, judge: Judge, select: Select
) -> None:
    report = judge(changed("x.reverse", vjp=good.vjp))
    assert {f.verdict for f in select(report, "inner_derivative")} - {"hypothesis-unmet"} == {"pass"}
    assert {f.verdict for f in select(report, "blocked-gradient-zero")} == {"pass"}
    assert {f.verdict for f in select(report, "backward_eq_adjoint_fderiv")} == {"unsupported"}


def test_allowed_numbers_that_are_not_real_are_facts(good: Subject, judge: Judge, select: Select) -> None:
    """Rows outside the hypothesis are counted and described, and no verdict rests on them."""
    report = judge(good)
    facts = select(report, "spec_eq_weights", verdict="hypothesis-unmet")
    by_family = {f.family: f for f in facts}
    assert {"allowed nan", "allowed +inf", "allowed -inf", "all -inf"} <= set(by_family)
    for f in facts:
        assert f.checked == 0
        assert f.unmet > 0
        assert f.ratio is None
    assert by_family["allowed nan"].diagnosis == "NaN in the whole row"
    assert by_family["allowed -inf"].diagnosis == "finite"


def swallowing(scores: Any, mask: Any) -> Any:
    return softmax_where(np.where(np.isnan(scores), np.asarray(0, scores.dtype), scores), mask).weights


def test_a_promise_is_reported_always_and_judged_when_it_is_made(
    changed: Changed, judge: Judge, select: Select
) -> None:
    name = "allowed-nan-visible"
    (fact,) = select(judge(changed("x.swallows", forward=swallowing)), name)
    assert (fact.verdict, fact.diagnosis) == ("hypothesis-unmet", "NaN swallowed")
    for promises, require in ((frozenset({name}), ()), (frozenset(), (name,))):
        report = judge(changed("x.swallows", forward=swallowing, promises=promises), require=require)
        (found,) = select(report, name)
        assert (found.verdict, found.diagnosis) == ("fail", "NaN swallowed")
        assert report.exit_code == 1
    (kept,) = select(judge(changed("x.keeps"), require=(name,)), name)
    assert kept.verdict == "pass"


def test_isolation_means_that_an_empty_row_multiplies_no_nan(
    good: Subject, changed: Changed, judge: Judge, select: Select
) -> None:
    def multiplying(scores: Any, mask: Any, cotangents: Any) -> Any:
        w = softmax_where(scores, mask).weights
        with np.errstate(invalid="ignore"):
            return (w * (cotangents - (w * cotangents).sum(axis=1, keepdims=True))).astype(scores.dtype)

    wrong = judge(changed("x.multiplies", vjp=multiplying), require=("isolation",))
    assert {f.verdict for f in select(wrong, "isolation")} == {"fail"}
    assert wrong.exit_code == 1
    right = judge(good, require=("isolation",))
    assert {f.verdict for f in select(right, "isolation")} == {"pass"}
    assert set(REQUIREMENTS) == {"zero", "complete", "isolation", "allowed-nan-visible"}


def test_a_budget_that_tells_nothing_is_vacuous(
    good: Subject, judge: Judge, select: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where exp may be off by 98 %, the budgets of nearly uniform rows accept zeros and uniform weights alike."""
    half = FORMATS["bfloat16"]
    wide = RoundingModel(half, half, half, alpha=250.0)
    monkeypatch.setattr(Subject, "rounding_for", lambda subject, method, dtype: wide)
    report = judge(good)
    assert {f.verdict for f in select(report, "spec_eq_weights", family="ties")} == {"vacuous"}
    assert report.certificate.subjects[0].verdict == "vacuous"


def test_a_cell_that_is_wholly_vacuous_certifies_nothing(
    good: Subject, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One vacuous family among others is named; where all of them are, the theorem was not judged."""
    import hardmask.conformance.verdicts as verdicts

    original = verdicts.verdict_of
    monkeypatch.setattr(verdicts, "verdict_of", lambda t: "vacuous" if original(t) == "pass" else original(t))
    report = judge(good)
    assert report.exit_code == 1
    assert report.reason.startswith("Not certified: the budget of test.good says nothing about ")


def off_by(units: float) -> Callable[[Any, Any], Any]:
    def forward(scores: Any, mask: Any) -> Any:
        return (softmax_where(scores, mask).weights * (1 + units * FORMATS[scores.dtype.name].u)).astype(scores.dtype)

    return forward


def test_a_failure_that_the_referee_contradicts_is_a_fault_of_the_suite(
    changed: Changed, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hardmask.conformance.verdicts as verdicts

    subject = changed("x.off", forward=off_by(500.0))
    assert judge(subject).exit_code == 1

    def lenient(scores: Any, mask: Any, index: int, returned: float, budget: float, vector: Any = None) -> Any:
        return decide(scores, mask, index, returned, 1.0, vector)

    monkeypatch.setattr(verdicts, "decide", lenient)
    with pytest.raises(SuiteFault, match=r"The fast engine fails x\.off on .*, the referee does not: "):
        judge(subject)


def test_the_referee_confirms_every_failure_with_an_enclosure(changed: Changed, judge: Judge, select: Select) -> None:
    report = judge(changed("x.off", forward=off_by(500.0)))
    failed = [f for f in select(report, "spec_eq_weights", verdict="fail") if f.budget]
    assert failed
    for f in failed:
        assert f.enclosure is not None
        assert f.witness is not None
        assert f.witness.returned is not None
        assert f.witness.index is not None
        low, high = map(float, f.enclosure)
        returned = float.fromhex(f.witness.returned[f.witness.index])
        assert low <= high
        assert f.error is not None
        assert f.budget is not None
        assert f.ratio is not None
        assert f.error > f.budget
        assert abs(abs(returned - low) - f.error) <= 1e-6 * f.error
        assert abs(f.ratio - f.error / f.budget) <= 1e-9 * f.ratio


def test_a_witness_can_be_replayed(changed: Changed, judge: Judge, select: Select) -> None:
    """The hexadecimal row, put through the same function, gives the same wrong answer."""
    forward = off_by(500.0)
    report = judge(changed("x.off", forward=forward))
    for f in select(report, verdict="fail"):
        w = f.witness
        assert w is not None
        assert w.scores is not None
        assert w.returned is not None
        assert w.mask is not None
        if w.quantity in ("weights", "row sum"):
            scores = np.array([[float.fromhex(x) for x in w.scores]], np.float32)
            again = forward(scores, np.array([w.mask]))[0]
            assert [float.fromhex(x) for x in w.returned] == again.astype(np.float64).tolist()


def test_counts_are_rows_and_add_up(good: Subject, changed: Changed, judge: Judge) -> None:
    for subject in (good, changed("x.off", forward=off_by(500.0))):
        for f in judge(subject).certificate.findings:
            assert 0 <= f.failed <= f.checked
            assert (f.verdict == "fail") == (f.failed > 0)
            assert f.elements >= 0
            if f.verdict == "pass":
                assert f.checked > 0
            if f.verdict == "hypothesis-unmet":
                assert f.checked == 0


def test_verdicts_combine_by_severity() -> None:
    order: tuple[Verdict, ...] = (
        "error", "fail", "vacuous", "permitted", "pass", "unsupported", "hypothesis-unmet"
    )  # fmt: skip
    for i, worse in enumerate(order):
        for better in order[i:]:
            assert combine([better, worse]) == combine([worse, better]) == worse
    assert combine([]) == "hypothesis-unmet"


def test_the_same_seed_gives_the_same_findings_and_another_seed_other_rows(good: Subject, judge: Judge) -> None:
    first, again, other = (judge(good, seed=s) for s in (3, 3, 4))
    assert first.certificate.digest == again.certificate.digest
    assert first.certificate.findings == again.certificate.findings
    assert first.certificate.findings != other.certificate.findings
    assert other.certificate.seed == 4


def test_a_subject_with_a_flag_and_derivatives_of_its_own_passes(judge: Judge) -> None:
    subject = Subject(
        "x.full",
        lambda s, m: Answer(softmax_where(s, m).weights, m.any(axis=1)),
        softmax_where_derivative,
        softmax_where_derivative,
        contract="zero+valid",
    )
    assert judge(subject, require=("zero", "complete", "isolation", "allowed-nan-visible")).exit_code == 0
