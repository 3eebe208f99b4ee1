"""Whatever an adapter does, the run gets a finding with a sentence, and the other subjects are judged as if alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Answer, Subject
from hardmask.conformance.calls import Fault, Returned, call
from hardmask.conformance.certification import Report
from hardmask.conformance.finding import Finding


def weights(scores: Any, mask: Any) -> Any:
    return softmax_where(scores, mask).weights


def raising(scores: Any, mask: Any) -> Any:
    raise RuntimeError("the kernel\n  is missing")


def leaving(scores: Any, mask: Any) -> Any:
    sys.exit(7)


def endless(scores: Any, mask: Any) -> Any:
    return endless(scores, mask)


class Treacherous:
    """An array in name only."""

    shape = (1,)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise OSError("device lost")


FAULTS: dict[str, tuple[Callable[..., Any], str]] = {
    "shape": (lambda s, m: weights(s, m).T.copy() if s.shape[0] != s.shape[1] else s, "returned shape (16, 104) for"),
    "rows-lost": (lambda s, m: weights(s, m)[1:], "one value per score"),
    "dtype": (lambda s, m: weights(s, m).astype(np.float16), "returned float16 for float32 scores"),
    "complex": (lambda s, m: weights(s, m).astype(np.complex64), "returned complex64 for float32 scores"),
    "list": (lambda s, m: weights(s, m).tolist(), "returned a list; return a NumPy array"),
    "none": (lambda s, m: None, "returned a NoneType"),
    "tuple": (lambda s, m: (weights(s, m), m.any(axis=1)), "returned a tuple"),
    "raises": (raising, "failed on float32 rows of shape (8, 0): it raised RuntimeError: the kernel."),
    "exits": (leaving, "it raised SystemExit"),
    "recursion": (endless, "it raised RecursionError"),
    "treacherous": (lambda s, m: Treacherous(), "it raised OSError"),
    "flag-dtype": (lambda s, m: Answer(weights(s, m), m.any(axis=1).astype(np.int64)), "'valid' flag of dtype int64"),
    "flag-shape": (lambda s, m: Answer(weights(s, m), m.any(axis=1)[:, None]), "Booleans of shape (8,), one per row"),
    "flag-list": (lambda s, m: Answer(weights(s, m), "yes"), "'valid' flag of dtype <U3"),  # type: ignore[arg-type]
}


def mutating(scores: Any, mask: Any) -> Any:
    w = weights(scores, mask)
    scores[...] = -7.0
    mask[...] = True
    return w


def shown(finding: Finding) -> tuple[Any, ...]:
    return tuple(getattr(finding, name) for name in Finding.__struct_fields__ if name != "subject")


@pytest.fixture(scope="module")
def crowd(good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]) -> Report:
    """One run of every bad adapter, with a good one after each of them that could spoil its inputs."""
    bad = [changed(f"bad.{name}", forward=function) for name, (function, _) in FAULTS.items()]
    return judge(
        *bad,
        changed("bad.mutates", forward=mutating, contract="zero"),
        changed("bad.nan", forward=lambda s, m: np.full_like(s, np.nan)),
        good,
    )


@pytest.mark.parametrize("name", FAULTS)
def test_an_unusable_answer_is_an_error_with_a_sentence(
    name: str, crowd: Report, select: Callable[..., list[Finding]]
) -> None:
    subject = f"bad.{name}"
    found = select(crowd, subject=subject, verdict="error")
    sentences = {f.diagnosis for f in found}
    assert any(FAULTS[name][1] in s and s.startswith(f"{subject}.forward ") for s in sentences), sentences
    assert all("\n" not in s for s in sentences)
    declared = {f.declaration for f in found}
    assert {"extension:row-sum", "extension:empty-row"} <= declared
    record = next(s for s in crowd.certificate.subjects if s.id == subject)
    assert record.verdict == "error"


def test_nan_everywhere_fails(crowd: Report, select: Callable[..., list[Finding]]) -> None:
    failed = select(crowd, subject="bad.nan", verdict="fail")
    assert {f.diagnosis for f in failed} == {"NaN"}
    assert {f.ratio for f in failed} == {None}
    assert "extension:empty-row" in {f.declaration for f in failed}
    assert not select(crowd, "spec_eq_weights", subject="bad.nan", verdict="pass")


def test_a_subject_gets_copies_and_cannot_spoil_its_neighbours(crowd: Report) -> None:
    records = {s.id: s.verdict for s in crowd.certificate.subjects}
    assert records["bad.mutates"] == "pass"
    assert records["test.good"] == "pass"
    assert crowd.exit_code == 1
    assert "bad.raises" in crowd.reason
    assert "test.good" not in crowd.reason


def test_others_are_judged_as_if_alone(
    crowd: Report, good: Subject, judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    alone = judge(good)
    assert [shown(f) for f in select(crowd, subject=good.id)] == [shown(f) for f in alone.certificate.findings]


@pytest.mark.parametrize("method", ["vjp", "jvp"])
def test_a_faulty_derivative_leaves_the_forward_judged(
    method: str,
    good: Subject,
    changed: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    subject = changed("bad.derivative", **{"vjp": good.vjp, "jvp": good.jvp, method: lambda s, m, v: v[None]})
    report = judge(subject)
    name = {"vjp": "backward_eq_derivative", "jvp": "derivative_apply"}[method]
    other = {"jvp": "backward_eq_derivative", "vjp": "derivative_apply"}[method]
    assert {f.verdict for f in select(report, name)} - {"hypothesis-unmet"} == {"error"}
    assert {f.verdict for f in select(report, other)} - {"hypothesis-unmet"} == {"pass"}
    assert {f.verdict for f in select(report, "spec_eq_weights")} - {"hypothesis-unmet"} == {"pass"}
    assert {f.verdict for f in select(report, "backward_eq_adjoint_fderiv")} - {"hypothesis-unmet"} == {"error"}
    sentences = {f.diagnosis for f in select(report, name, verdict="error")}
    assert all(s.startswith(f"bad.derivative.{method} returned shape (1, ") for s in sentences)


def test_a_subject_that_raises_once_in_a_while_keeps_its_other_findings(
    changed: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    def moody(scores: Any, mask: Any) -> Any:
        if scores.shape[1] == 0:
            raise ValueError("an axis of length 0")
        return weights(scores, mask)

    report = judge(changed("bad.moody", forward=moody))
    errors = select(report, verdict="error")
    assert {f.family for f in errors} == {"batch empty"}
    assert {"bad.moody.forward failed on float32 rows of shape (8, 0): it raised ValueError: an axis of length 0."} == {
        f.diagnosis for f in errors
    }
    assert select(report, "spec_eq_weights", verdict="pass")


def test_warnings_of_a_backend_stay_inside(changed: Callable[..., Subject], recwarn: pytest.WarningsRecorder) -> None:
    import warnings

    def noisy(scores: Any, mask: Any) -> Any:
        warnings.warn("deprecated", DeprecationWarning, stacklevel=1)
        return np.log(scores * 0.0)

    answer = call(changed("x.noisy", forward=noisy), "forward", np.ones((2, 3), np.float32), np.ones((2, 3), bool))
    assert isinstance(answer, Returned)
    assert answer.values.dtype == np.float64
    assert not recwarn.list


def test_an_interruption_is_not_swallowed(changed: Callable[..., Subject]) -> None:
    def interrupted(scores: Any, mask: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(changed("x.stop", forward=interrupted), "forward", np.ones((1, 1)), np.ones((1, 1), bool))


def test_an_answer_is_read_exactly(changed: Callable[..., Subject]) -> None:
    scores, mask = np.array([[0.1, 0.2]], np.float32), np.array([[True, True]])
    flagged = changed("x.flag", forward=lambda s, m: Answer(s, np.array([False])))
    answer = call(flagged, "forward", scores, mask)
    assert isinstance(answer, Returned)
    assert answer.values.tolist() == scores.astype(np.float64).tolist()
    assert answer.valid is not None
    assert answer.valid.tolist() == [False]
    plain = call(changed("x.plain"), "forward", scores, mask)
    assert isinstance(plain, Returned)
    assert plain.valid is None


def test_a_fault_tells_a_raise_from_an_odd_answer(changed: Callable[..., Subject]) -> None:
    arrays = np.ones((1, 1)), np.ones((1, 1), bool)
    raised = call(changed("x.r", forward=raising), "forward", *arrays)
    odd = call(changed("x.o", forward=lambda s, m: None), "forward", *arrays)
    assert isinstance(raised, Fault)
    assert isinstance(odd, Fault)
    assert (raised.raised, odd.raised) == (True, False)


@pytest.mark.parametrize(
    ("method", "only", "declaration", "family"),
    [
        ("forward", lambda s, m: len(s) == 1, "batch-invariance", "batch mixture"),
        ("vjp", lambda s, m: len(s) == 1, "batch-invariance", "batch mixture"),
        ("jvp", lambda s, m: len(s) == 1, "batch-invariance", "batch mixture"),
        ("forward", lambda s, m: s.size and not m.all() and not s[~m].any(), "score-non-interference", "batch poison"),
    ],
    ids=["row alone", "VJP of a row alone", "JVP of a row alone", "zeros at blocked scores"],
)
def test_a_call_beside_the_batch_must_give_a_usable_answer(
    method: str,
    only: Callable[[Any, Any], bool],
    declaration: str,
    family: str,
    good: Subject,
    changed: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    def squeezed(scores: Any, mask: Any, *vector: Any) -> Any:
        """A function that loses an axis of its result somewhere."""
        right = getattr(good, method)(scores, mask, *vector)
        right = right.weights if isinstance(right, Answer) else right
        return right[0] if only(scores, mask) else right

    report = judge(changed("bad.squeezed", **{method: squeezed}), effort="smoke")
    errors = select(report, declaration, verdict="error")
    assert family in {f.family for f in errors}
    assert all(f.diagnosis.startswith(f"bad.squeezed.{method} returned shape (16,) for") for f in errors)
    assert select(report, "spec_eq_weights", verdict="pass")
    assert report.exit_code == 1
