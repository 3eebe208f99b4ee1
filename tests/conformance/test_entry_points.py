"""What the shipped entry points come to: the verdicts that the README and the guides speak of."""

from __future__ import annotations

import pytest

from hardmask.adapters.registry import resolve
from hardmask.conformance.cases import Case
from hardmask.conformance.finding import Finding, combine
from hardmask.conformance.runner import Policy, Results, judge, merge
from hardmask.conformance.verdicts import findings

KINDS = ("shapes", "poison", "mixture", "empty", "facts")
VERDICTS: dict[str, str] = {
    "numpy.softmax-where": "pass",
    "numpy.fill-inf": "permitted",
    "torch.softmax-where": "pass",
    "torch.masked-fill": "permitted",
    "torch.masked-fill-where": "pass",
    "torch.additive-inf": "fail",
    "torch.masked-softmax": "permitted",
    "jax.double-where[jit]": "pass",
    "jax.softmax-where[jit]": "pass",
    "jax.fill-inf[jit]": "permitted",
}
DTYPES = {"numpy": ("float64", "float32", "float16", "bfloat16"), "torch": ("float32", "float16"), "jax": ("float32",)}


def marked(target: str) -> object:
    framework = target.partition(".")[0]
    return target if framework == "numpy" else pytest.param(target, marks=getattr(pytest.mark, framework))


def judged(target: str) -> list[Finding]:
    """Findings on short rows of each kind."""
    (subject,) = resolve([target])
    dtypes = [d for d in DTYPES[target.partition(".")[0]] if d in subject.dtypes]
    results: Results = {}
    for dtype in dtypes:
        for kind in KINDS:
            merge(results, judge(Case(dtype, kind, 104, 16, 0, 0), [subject], Policy()))
    return list(findings([subject], dtypes, results))


@pytest.mark.parametrize("target", [marked(target) for target in VERDICTS])
def test_an_entry_point_comes_to_its_verdict(target: str) -> None:
    found = judged(target)
    wrong = {(f.declaration, f.dtype, f.family, f.diagnosis) for f in found if f.verdict in ("fail", "error")}
    assert combine(f.verdict for f in found) == VERDICTS[target], wrong
    largest = max(f.ratio or 0.0 for f in found if f.verdict == "pass")
    assert 0.3 < largest <= 1.0, "a budget that is never approached is too wide"


@pytest.mark.torch
def test_an_additive_mask_fails_where_a_blocked_score_is_not_finite() -> None:
    """``inf - inf``: the only rows on which ``torch.additive-inf`` is wrong."""
    wrong = {(f.family, f.diagnosis) for f in judged("torch.additive-inf") if f.verdict == "fail"}
    assert wrong == {("poison nan", "NaN"), ("poison +inf", "NaN")}
