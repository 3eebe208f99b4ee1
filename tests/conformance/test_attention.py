"""Attention from request to certificate: good kernels pass, and each kind of fault is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.attention import Attention, AttentionAnswer
from hardmask.adapters.numpy_attention import attention, attention_jvp, attention_vjp
from hardmask.adapters.registry import resolve_all
from hardmask.conformance.attention.known import KNOWN
from hardmask.conformance.attention.plan import SMALL, AttentionCase
from hardmask.conformance.certificate import read, write
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.finding import Finding
from hardmask.conformance.terminal.witness import failures, text
from hardmask.spec.attention.oracle import AttentionTruth


def output(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    """A correct attention without weights and flags."""
    return attention(q, k, v, mask, scale).output


GOOD = Attention(
    "test.good", output, attention_vjp, attention_jvp, dtypes=("float32", "float64", "float16", "bfloat16")
)


def judged(*subjects: Attention, **more: Any) -> Report:
    asked = {"effort": "smoke", "dtypes": ("float32",), **more}
    return certify(Request(tuple(s.id for s in subjects), **asked), subjects=subjects)


def of(report: Report, declaration: str, verdict: str | None = None) -> list[Finding]:
    return [
        f
        for f in report.certificate.findings
        if f.declaration.endswith(declaration) and (verdict is None or f.verdict == verdict)
    ]


def test_a_correct_attention_is_certified_in_every_dtype(tmp_path: Path) -> None:
    report = judged(GOOD, dtypes=GOOD.dtypes)
    assert (report.exit_code, report.certificate.subjects[0].verdict) == (0, "pass")
    assert {m.strongest for m in report.certificate.measured} == {"strict", "mixed"}
    assert of(report, "jvp_backward_pairing", "pass")
    assert of(report, "attention-padding-invariance", "pass")
    assert of(report, "attention-prefix-invariance", "pass")
    assert report.certificate.audit.entries > 100
    write(report.certificate, tmp_path / "c.json")
    assert read(tmp_path / "c.json") == report.certificate


def test_the_same_seed_gives_the_same_findings() -> None:
    one, again = (judged(GOOD, seed=3).certificate for _ in range(2))
    assert one.digest == again.digest
    assert judged(GOOD, seed=4).certificate.digest != one.digest


def after(change: Any) -> Any:
    return lambda q, k, v, mask, scale: change(output(q, k, v, mask, scale), q, k, v, mask)


def empty(q: Any, k: Any, mask: Any) -> Any:
    return ~np.broadcast_to(mask, (*q.shape[:3], k.shape[2])).any(-1, keepdims=True)


def mean_of_values(o: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
    mean = np.repeat(v.mean(axis=2, keepdims=True), q.shape[1] // k.shape[1], axis=1) if k.shape[2] else 0
    return np.where(empty(q, k, mask), mean, o).astype(q.dtype)


def first_gradient(change: Any) -> Any:
    return lambda *a: change(*attention_vjp(*a))


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "mean on empty rows": ({"forward": after(mean_of_values)}, "attention-empty-row", "mean of values"),
    "mask ignored": (
        {"forward": lambda q, k, v, mask, scale: output(q, k, v, np.ones_like(mask), scale)},
        "scaledDotProductAttention",
        "mask ignored",
    ),
    "mask inverted": (
        {"forward": lambda q, k, v, mask, scale: output(q, k, v, ~mask, scale)},
        "scaledDotProductAttention",
        "inverted mask",
    ),
    "off by a little": (
        {"forward": after(lambda o, *_: o * np.float32(1 + 4e-6))},
        "scaledDotProductAttention",
        "rounding",
    ),
    "gradient NaN": (
        {"vjp": first_gradient(lambda dq, dk, dv: (dq + np.float32(np.nan), dk, dv))},
        "scaledDotProductAttentionBackward",
        "clean forward, NaN VJP",
    ),
    "gradient without the scale": (
        {
            "vjp": lambda q, k, v, m, s, g: (lambda a: (a[0] / np.float32(s), a[1], a[2]))(
                attention_vjp(q, k, v, m, s, g)
            )
        },
        "scaledDotProductAttentionBackward",
        "scale missing",
    ),
    "gradient of another sign": (
        {"vjp": first_gradient(lambda dq, dk, dv: (dq, -dk, dv))},
        "jvp_backward_pairing",
        "not adjoint",
    ),
    "leak to keys that nobody sees": (
        {"vjp": first_gradient(lambda dq, dk, dv: (dq, dk, dv + np.float32(1e-30)))},
        "attention-blocked-gradient-zero",
        "leak",
    ),
    "depends on the batch": (
        {"forward": after(lambda o, q, *_: o if q.shape[0] > 1 else o * np.float32(1.001))},
        "attention-batch-invariance",
        "batch dependent",
    ),
    "depends on the length": (
        {"forward": after(lambda o, q, k, *_: o * np.float32(1.001) if k.shape[2] == 10 else o)},
        "attention-padding-invariance",
        "padding dependent",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named(name: str) -> None:
    change, declaration, diagnosis = FAULTS[name]
    report = judged(replace(GOOD, id="test.bad", **change))
    assert report.exit_code == 1
    failed = of(report, declaration, "fail")
    assert any(f.diagnosis.startswith(diagnosis) for f in failed), {f.diagnosis for f in failed}
    for f in failed:
        assert f.attention is not None
        assert f.attention.returned is not None
    blocks = [text(group, report.certificate.declarations) for group in failures(report.certificate)]
    assert any(diagnosis in block and "problem    B=" in block for block in blocks)


def test_a_failure_is_shown_by_the_smallest_problem() -> None:
    report = judged(replace(GOOD, id="test.bad", **FAULTS["mean on empty rows"][0]))
    small = [f.smallest for f in of(report, "attention-empty-row", "fail") if f.smallest is not None]
    assert small
    assert small[0].sizes[:4] == [1, 1, 1, 1]
    assert small[0].mask == [False] * small[0].sizes[4]


def test_a_nan_contract_is_permitted_and_names_the_shared_gradients() -> None:
    def forward(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        return np.where(empty(q, k, mask) & (k.shape[2] > 0), np.nan, output(q, k, v, mask, scale)).astype(q.dtype)

    def vjp(q: Any, k: Any, v: Any, mask: Any, scale: float, g: Any) -> Any:
        dq, dk, dv = attention_vjp(q, k, v, mask, scale, g)
        spoilt = empty(q, k, mask).any(axis=(1, 2, 3))[:, None, None, None]
        return np.where(empty(q, k, mask), np.nan, dq).astype(q.dtype), dk, np.where(spoilt, np.nan, dv).astype(q.dtype)

    subject = Attention("test.nan", forward, vjp, contract="nan", dtypes=("float32",))
    report = judged(subject)
    assert report.exit_code == 0, [(f.declaration, f.family, f.diagnosis) for f in of(report, "", "fail")]
    found = of(report, "attention-empty-row", "permitted")
    assert any("NaN in the shared gradient dv" in f.diagnosis for f in found)
    assert judged(replace(subject, contract="zero")).exit_code == 1
    stale = judged(replace(GOOD, id="test.stale", contract="nan"))
    assert "declaration stale" in {f.diagnosis for f in of(stale, "attention-empty-row", "fail")}


def test_the_other_contracts() -> None:
    def careful(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        if empty(q, k, mask).any():
            raise ValueError("A query may see nothing.")
        return output(q, k, v, mask, scale)

    def flagged(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        return AttentionAnswer(output(q, k, v, mask, scale), valid=~empty(q, k, mask)[..., 0])

    def first(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        if not k.shape[2]:
            return output(q, k, v, mask, scale)
        value = np.repeat(v[:, :, :1], q.shape[1] // k.shape[1], axis=1)
        return np.where(empty(q, k, mask), value, output(q, k, v, mask, scale)).astype(q.dtype)

    for name, forward, contract in (
        ("r", careful, "reject"),
        ("v", flagged, "zero+valid"),
        ("f", first, "fallback(0)"),
    ):
        subject = Attention(f"test.{name}", forward, contract=contract, limits={"no keys": "Nothing to fall back on."})
        report = judged(subject)
        assert report.exit_code == 0, (name, [(f.declaration, f.family, f.diagnosis) for f in of(report, "", "fail")])
    assert judged(Attention("test.x", output, contract="reject")).exit_code == 1
    assert judged(Attention("test.x", output, contract="zero+valid")).exit_code == 1


def test_limits_and_crashes_stay_in_the_certificate() -> None:
    limited = replace(GOOD, id="test.limited", limits={"queries other than keys": "It is square."})
    report = judged(limited)
    assert [f.diagnosis for f in of(report, "scaledDotProductAttention", "unsupported")] == [
        "queries other than keys: It is square."
    ]
    assert judged(limited, require=("complete",)).exit_code == 1

    def crash(*_: Any) -> Any:
        raise RuntimeError("the kernel is missing")

    report = judged(replace(GOOD, id="test.crash", vjp=crash))
    assert report.exit_code == 1
    assert any("the kernel is missing" in f.diagnosis for f in of(report, "scaledDotProductAttentionBackward", "error"))
    assert of(report, "scaledDotProductAttentionJvp", "pass")


def test_promises_are_facts_until_they_are_made_or_required() -> None:
    def multiplied(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        full = np.broadcast_to(mask, (*q.shape[:3], k.shape[2]))
        scores = np.where(full, np.float32(scale) * (q @ k.swapaxes(-1, -2)), np.float32(-np.inf))
        top = np.where(full.any(-1, keepdims=True), scores.max(-1, keepdims=True, initial=-np.inf), 0)
        e = np.exp(scores - top)
        total = e.sum(-1, keepdims=True)
        return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v

    subject = Attention("test.multiplied", multiplied, dtypes=("float32",))
    report = judged(subject)
    assert report.exit_code == 0
    facts = {f.diagnosis for f in of(report, "attention-isolation", "hypothesis-unmet")}
    assert any("NaN value reaches output" in fact for fact in facts)
    for asked in (judged(subject, require=("isolation",)), judged(replace(subject, promises=frozenset({"isolation"})))):
        assert asked.exit_code == 1
        assert of(asked, "attention-isolation", "fail")
    assert judged(GOOD, require=("isolation", "allowed-nan-visible")).exit_code == 0


def test_paths_of_a_group_are_compared_and_the_odd_one_is_named() -> None:
    def spoilt(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        return np.where(empty(q, k, mask), np.nan, output(q, k, v, mask, scale)).astype(q.dtype)

    pair = replace(GOOD, group="mine"), Attention("test.nan", spoilt, contract="nan", group="mine", dtypes=("float32",))
    report = judged(*pair)
    assert {f.subject for f in of(report, "path-agreement", "fail")} == {"test.nan"}
    assert {f.diagnosis for f in of(report, "path-agreement", "fail")} == {"unlike test.good"}
    alone = judged(GOOD, replace(GOOD, id="test.too"))
    assert {f.verdict for f in of(alone, "path-agreement")} == {"hypothesis-unmet"}


def test_encodings_get_only_the_masks_that_they_express() -> None:
    subjects = [s for s in resolve_all(["numpy.attention*"]) if isinstance(s, Attention)]
    report = judged(*subjects)
    assert report.exit_code == 0
    families = {
        s.id: {f.family for f in report.certificate.findings if f.subject == s.id and f.checked} for s in subjects
    }
    assert families["numpy.attention[lengths]"] == {"padding", "all padding"}
    assert "causal bottom-right" not in families["numpy.attention[causal]"]
    assert "random" in families["numpy.attention"]


def test_a_few_shapes_are_enough_for_those_that_compile() -> None:
    seen = set()

    def forward(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        seen.add((q.shape, k.shape, v.shape, mask.shape))
        return output(q, k, v, mask, scale)

    judged(Attention("test.compiled", forward, few_shapes="It compiles.", dtypes=("float32",)))
    assert len(seen) < 10
    assert all(mask == (*q[:3], k[2]) for q, k, _, mask in seen)


@pytest.mark.parametrize("case", KNOWN, ids=lambda c: c.reference)
def test_the_oracle_knows_the_reported_answers(case: Any) -> None:
    problem = case.build()
    truth = AttentionTruth(problem)
    for quantity, answer in case.answers.items():
        true = getattr(truth, quantity).value
        assert true.shape == np.shape(answer)
        assert np.abs(true - np.array(answer)).max(initial=0) < 1e-7
    assert np.isfinite(truth.output.value).all()


def test_a_right_kernel_answers_every_reported_fault_rightly() -> None:
    report = judged(replace(GOOD, dtypes=("float32",)), effort="default")
    mine = [f for f in report.certificate.findings if f.family.startswith("reported: ")]
    assert len({f.family for f in mine}) == len(KNOWN)
    assert {f.verdict for f in mine} == {"pass", "hypothesis-unmet"}  # the promises, which it does not make


def test_the_softmax_inside_is_judged_without_scores_that_are_not_finite() -> None:
    (subject,) = (s for s in resolve_all(["numpy.attention[rows]"]))
    report = certify(Request((subject.id,), effort="smoke", dtypes=("float32",)), subjects=[subject])
    assert report.exit_code == 0
    found = {f.family: f for f in of(report, "score-non-interference")}
    assert found["poison +max"].verdict == "pass"
    assert found["poison nan"].unmet > 0
    assert found["poison nan"].verdict in ("pass", "hypothesis-unmet")  # of rows that turn out to block nothing


def test_a_problem_is_small_and_reproducible() -> None:
    case = AttentionCase("float32", SMALL, "random", "plain", 0)
    assert len(repr(case)) < 300
    assert np.array_equal(case.build().q, case.build().q)
