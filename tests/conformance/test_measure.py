"""The strongest tier that holds is measured, whatever is declared; a custom model never passes plainly."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.subject import Subject
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.custom import custom_models
from hardmask.conformance.document import Measured
from hardmask.conformance.measure import strongest
from hardmask.conformance.terminal.accuracy import generosity, losses
from hardmask.conformance.terminal.matrix import kept
from hardmask.spec.rounding import TIERS, customised, ladder, model, widens

Array = np.ndarray[Any, np.dtype[Any]]


def parts(s: Array, m: Array) -> tuple[Array, Array, Array]:
    """The largest allowed score, the numerators and their sum, in the dtype of the scores."""
    top = np.where(m, s, -np.inf).max(axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0).astype(s.dtype)
    e = np.where(m, np.exp(np.where(m, s, top) - top), 0).astype(s.dtype)
    return top, e, e.sum(axis=-1, keepdims=True)


def forward(s: Array, m: Array) -> Array:
    with np.errstate(all="ignore"):
        _, e, total = parts(s, m)
        return np.asarray((e / np.where(total > 0, total, 1)).astype(s.dtype))


def by_log_sum_exp(s: Array, m: Array, g: Array) -> Array:
    """A backward pass that stores one number per row and rebuilds the weights from it."""
    with np.errstate(all="ignore"):
        top, _, total = parts(s, m)
        stored = top + np.log(np.where(total > 0, total, 1)).astype(s.dtype)
        w = np.where(m, np.exp(np.where(m, s, 0) - stored), 0).astype(s.dtype)
        g = np.where(m, g, 0).astype(s.dtype)
        return np.asarray((w * (g - (w * g).sum(axis=-1, keepdims=True))).astype(s.dtype))


def exp2_forward(s: Array, m: Array) -> Array:
    with np.errstate(all="ignore"):
        top, _, _ = parts(s, m)
        exponent = (np.where(m, s, top) - top) * s.dtype.type(np.log2(np.e))
        e = np.where(m, np.exp2(exponent), 0).astype(s.dtype)
        total = e.sum(axis=-1, keepdims=True)
        return np.asarray((e / np.where(total > 0, total, 1)).astype(s.dtype))


def coarse(units: float) -> Callable[[Array, Array], Array]:
    """exp off by up to so many u more, up and down in turn."""

    def weights(s: Array, m: Array) -> Array:
        with np.errstate(all="ignore"):
            _, e, _ = parts(s, m)
            off = np.where(np.arange(s.shape[1]) % 2, units, -units) * np.finfo(s.dtype).eps / 2
            e = (e * (1 + off)).astype(s.dtype)
            total = e.sum(axis=-1, keepdims=True)
            return np.asarray((e / np.where(total > 0, total, 1)).astype(s.dtype))

    return weights


def judged(subject: Subject, dtype: str = "float32", **more: Any) -> Report:
    return certify(Request(("x",), effort="smoke", dtypes=(dtype,), rounds=2), subjects=[subject], **more)


def accuracy(report: Report, declaration: str) -> Measured:
    (found,) = (m for m in report.certificate.measured if m.declaration.endswith(declaration))
    return found


@pytest.mark.parametrize("tier", ["strict", "lse"])
def test_a_backward_pass_from_a_log_sum_exp_loses_digits_as_the_scores_grow(tier: str) -> None:
    subject = Subject("kernel.lse", forward, vjp=by_log_sum_exp, dtypes=("float32",), tier={"vjp:float32": tier})
    report = judged(subject)
    assert report.exit_code == (tier == "strict")
    found = accuracy(report, "backward_eq_derivative")
    assert (found.declared, found.strongest) == (tier, "lse")
    assert found.growth["16"] < 1.0
    assert found.growth["16"] < found.growth["65536"] / 100
    assert found.error is not None
    assert found.budget is not None
    assert found.error > 20 * found.budget
    w = found.witness
    assert w is not None
    assert w.scores is not None
    assert w.exact is not None
    size = max(abs(float.fromhex(x)) for x, allowed in zip(w.scores, w.mask or [], strict=True) if allowed)
    assert 4096 <= size < 65536
    assert accuracy(report, "spec_eq_weights").strongest == "strict"
    assert kept(report.certificate, "kernel.lse") == "lse f32"
    (text,) = losses(report.certificate)
    assert "keeps lse, not strict" in text
    assert "loses digits as the scores grow" in text
    if tier == "strict":
        failed = {f.diagnosis for f in report.certificate.findings if f.verdict == "fail"}
        assert "rounding: holds under lse" in failed


def test_a_correct_and_exact_subject_needs_no_other_tier() -> None:
    report = judged(Subject("x.plain", forward))
    assert {m.strongest for m in report.certificate.measured} == {"strict"}
    assert not any(m.growth or m.witness for m in report.certificate.measured)
    assert list(losses(report.certificate)) == []
    assert kept(report.certificate, "x.plain") == "strict"


def test_a_modest_declaration_does_not_hide_a_better_kernel() -> None:
    assert {m.strongest for m in judged(Subject("x.plain", forward, tier="lse")).certificate.measured} == {"strict"}
    found = accuracy(judged(Subject("x.exp2", exp2_forward, tier="lse")), "spec_eq_weights")
    assert (found.declared, found.strongest) == ("lse", "exp2")


def test_an_error_that_no_tier_admits_holds_under_none() -> None:
    report = judged(Subject("x.eps", lambda s, m: (forward(s, m) * (1 - 1e-3)).astype(s.dtype)))
    assert accuracy(report, "row-sum").strongest == ""
    assert kept(report.certificate, "x.eps") == "none f32"


def test_a_half_kernel_is_measured_among_the_tiers_of_halves() -> None:
    found = accuracy(judged(Subject("x.half", forward, dtypes=("float16",)), "float16"), "spec_eq_weights")
    assert (found.declared, found.strongest) == ("mixed", "half-ops")


def test_the_measurement_does_not_depend_on_who_judges() -> None:
    request = Request(("numpy.fill-inf",), effort="smoke", dtypes=("float16", "float32"), rounds=2)
    here = certify(request).certificate
    with ThreadPoolExecutor(2) as pool:
        there = certify(request, executor=pool).certificate
    assert here.measured == there.measured
    assert here.digest == there.digest


def test_what_was_not_tried_is_not_claimed() -> None:
    steps = ladder("float16")
    assert strongest("mixed-2", {"mixed", "exp2", "online", "lse", "mixed-2"}, "float16") == "half-ops"
    assert strongest("exp2", {"mixed", "exp2", "online", "lse"}, "float16") == ""
    assert strongest("mixed", set(), "float16") == "mixed"
    assert strongest("mixed with alpha=9.0", set(steps), "float16") == "mixed with alpha=9.0"


def test_a_pass_under_a_custom_model_is_no_plain_pass() -> None:
    plain, custom = (Subject("x.coarse", coarse(20), dtypes=("float32",), model=m) for m in ({}, {"alpha": 30.0}))
    assert judged(plain).exit_code == 1
    report = judged(custom)
    assert (report.exit_code, report.reason) == (0, "Certified, but under rounding models beyond the tiers: x.coarse.")
    (record,) = report.certificate.subjects
    assert record.verdict == "permitted"
    (model_,) = record.custom.values()
    assert (list(record.custom), model_.changes) == (["forward:float32"], "alpha=30.0")
    found = {(f.verdict, f.diagnosis) for f in report.certificate.findings if f.checked}
    assert found == {("permitted", "pass under a custom model")}
    assert accuracy(report, "spec_eq_weights").declared == "strict with alpha=30.0"
    assert accuracy(report, "spec_eq_weights").strongest == "strict with alpha=30.0"
    assert judged(Subject("x.worse", coarse(20), dtypes=("float32",), model={"alpha": 6.0})).exit_code == 1


def test_a_custom_model_lists_the_wrong_softmaxes_that_it_lets_through() -> None:
    """The wider the model, the more; and each of them fails under its own tier."""
    lists = []
    for alpha in (5.0, 30.0, 1e4, 1e6):
        subject = Subject("x.plain", forward, dtypes=("float32",), model={"alpha": alpha})
        lists.append(set(custom_models(subject)["forward:float32"].lets_through))
    assert lists[0] <= lists[1] <= lists[2] <= lists[3]
    assert "fast-exp-1e-6" in lists[1]
    assert "fast-exp-1e-4" in lists[2]
    assert "additive-1e9" not in lists[3]
    report = judged(Subject("x.coarse", coarse(20), dtypes=("float32",), model={"alpha": 30.0}))
    (text,) = generosity(report.certificate)
    assert text.startswith("x.coarse · forward:float32 · custom model: alpha=30.0\n  it lets through: ")
    assert "fast-exp-1e-6" in text
    tight = judged(Subject("x.plain", forward, dtypes=("float32",), model={"alpha": 4.001}))
    (text,) = generosity(tight.certificate)
    assert text.endswith("it lets through: none of the wrong softmaxes that the tier catches")


def test_a_sharper_model_is_a_plain_pass_or_a_failure() -> None:
    sharp = judged(Subject("x.sharp", forward, dtypes=("float32",), model={"alpha": 3.6, "divisions": 1}))
    assert (sharp.exit_code, sharp.certificate.subjects[0].verdict) == (0, "pass")
    assert sharp.certificate.subjects[0].custom == {}
    assert judged(Subject("x.coarse", coarse(2.5), dtypes=("float32",))).exit_code == 0
    assert judged(Subject("x.coarse", coarse(2.5), dtypes=("float32",), model={"alpha": 0.5})).exit_code == 1


def test_a_model_may_be_declared_for_one_method_or_dtype() -> None:
    subject = Subject(
        "x.y", forward, vjp=by_log_sum_exp, dtypes=("float32", "float16"), model={"vjp:half": {"alpha": 1900.0}}
    )
    assert subject.custom("vjp", "float16") == "alpha=1900.0"
    assert subject.custom("forward", "float16") == subject.custom("vjp", "float32") == ""
    assert subject.rounding_for("forward", "float16") == model("mixed", "float16")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"alhpa": 3.0}, "A rounding model has no field 'alhpa' that could be changed. Choose from: alpha, divisions"),
        ({"alpha": "3"}, "The field 'alpha' of a rounding model cannot be '3'."),
        ({"alpha": True}, "The field 'alpha' of a rounding model cannot be True."),
        ({"alpha": -1.0}, "alpha is the error of exp in u, from 0 to 1e+06; -1.0 is not."),
        ({"alpha": float("nan")}, "alpha is the error of exp in u, from 0 to 1e+06; nan is not."),
        ({"divisions": 3}, "divisions is 1 (divide) or 2 (multiply by a reciprocal); 3 is neither."),
        ({"argument": "exp3"}, "There is no argument 'exp3'. Choose from: shift, exp2, lse."),
        ({"accumulate": "float8"}, "There is no format 'float8'. Choose from: "),
        ({"cast_numerators": True}, "Only halves may cast their numerators; float32 is stored as it is computed."),
        ({"vjp:float3": {"alpha": 2.0}}, "changes the rounding model of 'vjp:float3'; write a dtype or 'half'"),
    ],
)
def test_a_model_that_makes_no_sense_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match="Subject 'x.y' .*" + re.escape(sentence)):
        Subject("x.y", forward, model=changes)


def test_a_change_that_admits_more_is_told_from_one_that_does_not() -> None:
    base = model("mixed", "float16")
    for changes, wider in (
        ({"alpha": 5.0}, True),
        ({"alpha": 3.0}, False),
        ({"divisions": 1}, False),
        ({"cast_numerators": True}, True),
        ({"argument": "exp2"}, True),
        ({"online": True}, True),
        ({"accumulate": "float64"}, False),
        ({"accumulate": "float16"}, True),
        ({"flush": False}, False),
        ({}, False),
    ):
        assert widens(customised("mixed", "float16", changes), base) is wider, changes
    assert set(TIERS) >= set(ladder("float16"))
