"""Each specimen shipped for demonstration fails on the empty row with the word for its fault, or shows its merit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hardmask.adapters.registry import resolve
from hardmask.adapters.subject import Subject
from hardmask.conformance.cases import Case
from hardmask.conformance.finding import Finding, combine
from hardmask.conformance.runner import Policy, judge, merge
from hardmask.conformance.verdicts import findings

EXPECTED: dict[str, tuple[str, str]] = {
    "additive-1e9": ("fail", "raw softmax"),
    "additive-min": ("fail", "raw softmax"),
    "replace-min": ("fail", "uniform"),
    "unguarded-inf": ("fail", "NaN"),
    "where-after-additive-inf": ("fail", "clean forward, NaN VJP"),
    "zero-with-flag": ("pass", ""),
    "zero-without-flag": ("fail", "no valid flag"),
    "reject": ("permitted", ""),
    "fallback": ("permitted", ""),
}
FRAMEWORKS = [
    "numpy",
    pytest.param("torch", marks=pytest.mark.torch),
    pytest.param("jax", marks=pytest.mark.jax),
]
DTYPES = {"numpy": ("float64", "float32", "float16", "bfloat16"), "torch": ("float32", "bfloat16"), "jax": ("float32",)}

Judged = Callable[[str], list[Finding]]


def name_of(subject: Subject | Finding) -> str:
    """``jax.reject[jit]`` -> ``reject``."""
    id = subject.id if isinstance(subject, Subject) else subject.subject
    return id.partition(".")[2].partition("[")[0]


def specimens(framework: str) -> list[Subject]:
    return [s for s in resolve([framework], specimens=True) if s.role == "specimen"]


@pytest.fixture(scope="module")
def judged() -> Judged:
    """Findings of a framework's specimens on one batch of empty rows, one of poison, and one of ordinary rows."""
    known: dict[str, list[Finding]] = {}

    def of(framework: str) -> list[Finding]:
        if framework not in known:
            subjects, results = specimens(framework), {}
            for dtype in DTYPES[framework]:
                for kind in ("empty", "poison", "shapes"):
                    merge(results, judge(Case(dtype, kind, 104, 13, 0, 0), subjects, Policy()))
            known[framework] = list(findings(subjects, DTYPES[framework], results))
        return known[framework]

    return of


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_framework_ships_every_specimen(framework: str) -> None:
    assert sorted(map(name_of, specimens(framework))) == sorted(EXPECTED)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_specimen_shows_its_fault_on_the_empty_row(framework: str, name: str, judged: Judged) -> None:
    found = [f for f in judged(framework) if name_of(f) == name and f.declaration == "extension:empty-row"]
    empty = [f for f in found if f.family == "empty"]
    assert {(f.verdict, f.diagnosis) for f in empty} == {EXPECTED[name]}
    if EXPECTED[name][0] == "fail":
        assert all(f.failed and f.witness is not None and f.witness.returned for f in empty)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("name", ["additive-1e9", "additive-min", "replace-min"])
def test_a_finite_stand_in_leaks_a_blocked_score(framework: str, name: str, judged: Judged) -> None:
    found = [f for f in judged(framework) if name_of(f) == name and f.verdict == "fail"]
    declared = {f.declaration.rpartition(".")[2] for f in found}
    assert "hardMaskedSoftmaxVecSpec_blocked_eq_zero" in declared
    # A penalty is added to what stands there; a replaced score is never read, so that no change of it shows.
    assert ("extension:score-non-interference" in declared) == (name != "replace-min")
    if name != "replace-min":
        poisoned = {f.family for f in found if f.declaration.endswith("spec_eq_weights")}
        assert {"poison +max", "poison nan", "poison +inf"} <= poisoned


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_specimen_is_right_about_the_rows_it_does_not_fail(framework: str, judged: Judged) -> None:
    """The policies differ from the reference in empty rows alone; the unguarded fill does too."""
    for name in ("zero-with-flag", "zero-without-flag", "reject", "fallback", "unguarded-inf"):
        weights = [
            f
            for f in judged(framework)
            if name_of(f) == name and f.declaration.endswith("spec_eq_weights") and f.family in ("normal", "poison nan")
        ]
        assert weights
        assert combine(f.verdict for f in weights) == "pass", name


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_forward_of_where_after_an_additive_inf_is_clean(framework: str, judged: Judged) -> None:
    found = [f for f in judged(framework) if name_of(f) == "where-after-additive-inf" and f.family == "empty"]
    verdicts = {f.declaration.rpartition(".")[2]: f.verdict for f in found}
    assert verdicts["spec_eq_weights"] == "pass"
    assert verdicts["backward_eq_derivative"] == "fail"
    assert verdicts["derivative_apply"] == "pass"
