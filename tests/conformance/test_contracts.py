"""Every contract against everything that an empty row is seen to give: the verdict, and the name of the fault."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax, softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Answer, Subject
from hardmask.conformance.certification import Report, Request
from hardmask.conformance.finding import Finding


def uniform(scores: Any) -> Any:
    return np.full_like(scores, 1.0 / max(scores.shape[1], 1))


def raw(scores: Any) -> Any:
    return softmax(np.where(np.isfinite(scores), scores, 0.0).astype(scores.dtype))


def one_hot(key: int) -> Callable[[Any], Any]:
    def policy(scores: Any) -> Any:
        hit = np.arange(scores.shape[1]) == key % max(scores.shape[1], 1)
        return np.broadcast_to(hit, scores.shape).astype(scores.dtype)

    return policy


def refused(scores: Any) -> Any:
    raise ValueError("a row allows no key")


POLICIES: dict[str, Callable[[Any], Any]] = {
    "zero": np.zeros_like,
    "nan": lambda scores: np.full_like(scores, np.nan),
    "uniform": uniform,
    "raw": raw,
    "first key": one_hot(0),
    "last key": one_hot(-1),
    "seven": lambda scores: np.full_like(scores, 7.0),
    "raise": refused,
}

LEAKS = {"uniform": "uniform", "raw": "raw softmax"}
TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "zero": {"zero": ("pass", ""), "nan": ("fail", "NaN"), "first key": ("fail", "one key")},
    "zero+valid": {"zero": ("pass", ""), "nan": ("fail", "NaN"), "first key": ("fail", "one key")},
    "nan": {
        "zero": ("fail", "declaration stale"),
        "nan": ("permitted", ""),
        "first key": ("fail", "one key"),
    },
    "fallback(0)": {
        "zero": ("fail", "declaration stale"),
        "nan": ("fail", "NaN"),
        "first key": ("permitted", ""),
    },
}
for row in TABLE.values():
    row |= {name: ("fail", diagnosis) for name, diagnosis in LEAKS.items()}
    row |= {"last key": ("fail", "one key"), "seven": ("fail", "not zero")}

CELLS = [(contract, policy, *cell) for contract, row in TABLE.items() for policy, cell in row.items()]


@pytest.mark.parametrize(("contract", "policy", "verdict", "diagnosis"), CELLS)
def test_the_table_of_contracts(
    contract: str,
    policy: str,
    verdict: str,
    diagnosis: str,
    on_empty_rows: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    plain = on_empty_rows("x.rows", POLICIES[policy], contract=contract)
    subject = plain
    if contract == "zero+valid":
        subject = on_empty_rows("x.rows", POLICIES[policy], contract=contract, forward=flagged(plain.forward))
    report = judge(subject)
    (found,) = select(report, "empty-row", family="empty")
    assert (found.verdict, found.diagnosis) == (verdict, diagnosis)
    (record,) = report.certificate.subjects
    assert (record.contract, record.declared_contract) == (contract, contract)
    assert report.exit_code == (1 if verdict == "fail" else 0)
    # The empty row is one matter, the others are another: they pass whatever the contract says.
    for family in ("beside empty rows", "normal", "poison nan"):
        assert {f.verdict for f in select(report, "spec_eq_weights", family=family)} == {"pass"}
    if verdict == "permitted":
        on_empty = select(report, "hardMaskedSoftmaxVecSpec_blocked_eq_zero", family="empty")
        assert {f.verdict for f in on_empty} == {"permitted"}, "a permitted answer never passes as a theorem"
        assert record.verdict == "permitted"


def flagged(forward: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda scores, mask: Answer(forward(scores, mask), mask.any(axis=1))


@pytest.mark.parametrize("contract", [*TABLE])
def test_a_call_that_raises_keeps_no_contract_but_reject(
    contract: str,
    on_empty_rows: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    report = judge(on_empty_rows("x.rows", refused, contract=contract))
    assert select(report, "empty-row", verdict="error", family="batch empty")
    assert report.certificate.subjects[0].verdict == "error"


@pytest.mark.parametrize("policy", POLICIES)
def test_reject_means_that_the_call_raises(
    policy: str,
    on_empty_rows: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    report = judge(on_empty_rows("x.rows", POLICIES[policy], contract="reject"))
    found = select(report, "empty-row")
    assert {f.family for f in found} == {"empty", "one empty row"}
    if policy == "raise":
        assert {f.verdict for f in found} == {report.certificate.subjects[0].verdict} == {"permitted"}
    else:
        words = {
            "uniform": "uniform",
            "raw": "raw softmax",
            "first key": "one key",
            "last key": "one key",
            "nan": "NaN",
        }
        assert {(f.verdict, f.diagnosis) for f in found} == {("fail", words.get(policy, "not rejected"))}
        assert all(f.failed == f.checked for f in found)
    assert report.exit_code == (0 if policy == "raise" else 1)
    for family in ("normal", "beside empty rows"):
        assert {f.verdict for f in select(report, "spec_eq_weights", family=family)} == {"pass"}


def test_reject_with_an_odd_answer_is_an_error(
    changed: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    report = judge(changed("x.odd", forward=lambda s, m: None, contract="reject"))
    assert {f.verdict for f in select(report, "empty-row")} == {"error"}


FLAGS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "none": (lambda mask: None, "no valid flag"),
    "always": (lambda mask: np.ones(len(mask), bool), "wrong valid flag"),
    "never": (lambda mask: np.zeros(len(mask), bool), "wrong valid flag"),
    "inverted": (lambda mask: ~mask.any(axis=1), "wrong valid flag"),
}


@pytest.mark.parametrize("name", FLAGS)
def test_zero_and_valid_asks_for_the_flag(
    name: str, changed: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    flag, diagnosis = FLAGS[name]

    def forward(scores: Any, mask: Any) -> Any:
        return Answer(softmax_where(scores, mask).weights, flag(mask))

    report = judge(changed("x.flag", forward=forward, contract="zero+valid"))
    wrong = select(report, "empty-row", verdict="fail")
    assert {f.diagnosis for f in wrong} == {diagnosis}
    families = {f.family for f in wrong}
    assert ("empty" in families) == (name != "never")
    assert ("normal" in families) == (name != "always")
    assert report.exit_code == 1
    # The same answers keep the contract ``zero``, which does not ask.
    assert judge(changed("x.flag", forward=forward, contract="zero")).exit_code == 0


def test_the_flag_is_read_from_the_mask_alone(
    changed: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    """A flag that looks at the weights calls a row with a NaN at an allowed key empty."""

    def forward(scores: Any, mask: Any) -> Any:
        w = softmax_where(scores, mask).weights
        return Answer(w, np.nansum(w, axis=1) > 0.5)

    report = judge(changed("x.flag", forward=forward, contract="zero+valid"))
    failed = select(report, "empty-row", verdict="fail")
    assert {(f.family, f.diagnosis) for f in failed} == {
        (family, "wrong valid flag") for family in ("allowed nan", "allowed +inf", "all -inf")
    }


DERIVATIVES: dict[str, tuple[str, Any, str, str]] = {
    "zero keeps zero": ("zero", 0.0, "pass", ""),
    "zero refuses NaN": ("zero", np.nan, "fail", "clean forward, NaN VJP"),
    "zero refuses numbers": ("zero", 1.0, "fail", "not zero"),
    "nan permits NaN": ("nan", np.nan, "permitted", ""),
    "nan keeps zero": ("nan", 0.0, "permitted", ""),
    "nan refuses numbers": ("nan", 1.0, "fail", "not zero"),
    "fallback refuses NaN": ("fallback(0)", np.nan, "fail", "clean forward, NaN VJP"),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_the_contract_is_kept_in_the_derivatives(
    name: str,
    on_empty_rows: Callable[..., Subject],
    judge: Callable[..., Report],
    select: Callable[..., list[Finding]],
) -> None:
    contract, value, verdict, diagnosis = DERIVATIVES[name]

    def vjp(scores: Any, mask: Any, cotangents: Any) -> Any:
        out = softmax_where_derivative(scores, mask, cotangents)
        out[~mask.any(axis=1)] = value
        return out

    policy = {"zero": np.zeros_like, "nan": POLICIES["nan"], "fallback(0)": one_hot(0)}[contract]
    report = judge(on_empty_rows("x.rows", policy, contract=contract, vjp=vjp))
    (found,) = select(report, "empty-row", family="empty")
    assert (found.verdict, found.diagnosis) == (verdict, diagnosis)
    (derivative,) = select(report, "backward_eq_derivative", family="empty")
    assert derivative.verdict == ("pass" if value == 0.0 else verdict)
    (beside,) = select(report, "backward_eq_derivative", family="beside empty rows")
    assert beside.verdict == "pass"


def test_nan_in_other_rows_is_never_permitted(
    changed: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    """Under ``nan`` the empty row may be NaN; its neighbours may not."""

    def forward(scores: Any, mask: Any) -> Any:
        w = softmax_where(scores, mask).weights
        empty = ~mask.any(axis=1)
        w[empty | np.roll(empty, 1)] = np.nan
        return w

    report = judge(changed("x.spreads", forward=forward, contract="nan"))
    (beside,) = select(report, "spec_eq_weights", family="beside empty rows")
    assert (beside.verdict, beside.diagnosis) == ("fail", "NaN")
    assert 0 < beside.failed < beside.checked


def test_a_contract_of_the_user_replaces_the_declared_one(
    on_empty_rows: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    subject = on_empty_rows("x.rows", POLICIES["nan"], contract="nan")
    for more in ({"contract": "zero"}, {"require": ("zero",)}):
        report = judge(subject, **more)
        (found,) = select(report, "empty-row", family="empty")
        assert (found.verdict, found.diagnosis) == ("fail", "NaN")
        (record,) = report.certificate.subjects
        assert (record.contract, record.declared_contract) == ("zero", "nan")
        assert report.exit_code == 1
    assert judge(subject, contract="nan").exit_code == 0


def test_require_zero_outranks_the_declared_contract(
    on_empty_rows: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    report = judge(on_empty_rows("x.rows", POLICIES["nan"], contract="nan"), require=("zero",))
    assert report.exit_code == 1
    assert report.certificate.subjects[0].contract == "zero"


def test_require_zero_and_another_contract_cannot_both_be_had() -> None:
    with pytest.raises(ValueError, match="no run can do both"):
        Request(("numpy",), contract="nan", require=("zero",))
