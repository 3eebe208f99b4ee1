"""The tables "Algorithms beyond the tiers" of docs/budgets.md: each formula is right, passes under the tier that is
named, and fails as the page says where none is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hardmask.adapters.subject import Subject
from hardmask.conformance.cases.masks import half
from hardmask.conformance.certification import Request, certify
from hardmask.spec.batch import Bools, Floats
from hardmask.spec.oracle import engine_for
from hardmask.spec.rounding import derivative_budget, model, weights_budget

PAGE = (Path(__file__).parents[2] / "docs" / "budgets.md").read_text()
Forward = Callable[[Floats, Bools], Floats]


def shifted(s: Floats, m: Bools) -> tuple[Floats, Floats]:
    """The scores, -inf where blocked, and the largest allowed one, 0 where there is none."""
    x = np.where(m, s, -np.inf).astype(s.dtype)
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    return x, np.where(np.isfinite(top), top, 0).astype(s.dtype)


def divided(e: Floats, m: Bools) -> Floats:
    """Numerators, divided by their sum."""
    total = e.sum(axis=-1, keepdims=True)
    return np.where(m, e / np.where(total > 0, total, 1), 0).astype(e.dtype)


def log_total(x: Floats, top: Floats) -> Floats:
    """``log S``, 0 on empty rows."""
    total = np.exp(x - top).sum(axis=-1, keepdims=True)
    return np.asarray(np.log(np.where(total > 0, total, 1)))


def plain(s: Floats, m: Bools) -> Floats:
    """What ``strict`` describes."""
    x, top = shifted(s, m)
    return divided(np.exp(x - top), m)


def exp2(s: Floats, m: Bools) -> Floats:
    """In base 2."""
    x, top = shifted(s, m)
    return divided(np.exp2((x - top) * s.dtype.type(np.log2(np.e))), m)


def log_softmax(s: Floats, m: Bools) -> Floats:
    """The exponential of a log-softmax."""
    x, top = shifted(s, m)
    return np.where(m, np.exp((x - top) - log_total(x, top)), 0).astype(s.dtype)


def log_sum_exp(s: Floats, m: Bools) -> Floats:
    """Rebuilt from a stored log-sum-exp."""
    x, top = shifted(s, m)
    return np.where(m, np.exp(x - (top + log_total(x, top))), 0).astype(s.dtype)


def reciprocal(s: Floats, m: Bools) -> Floats:
    """Each weight from its own row of differences."""
    x, _ = shifted(s, m)
    total = np.exp(x[:, None, :] - np.where(m, x, 0)[:, :, None]).sum(axis=-1)
    return np.where(m, 1 / np.where(m, total, 1), 0).astype(s.dtype)


def expm1(s: Floats, m: Bools) -> Floats:
    """A detour by ``expm1``."""
    x, top = shifted(s, m)
    return divided(np.where(m, 1 + np.expm1(x - top), 0).astype(s.dtype), m)


def derivative(s: Floats, m: Bools, g: Floats) -> Floats:
    """What ``strict`` describes."""
    w, g = plain(s, m), np.where(m, g, 0)
    return np.asarray(w * (g - (w * g).sum(axis=-1, keepdims=True)))


def centred_first(s: Floats, m: Bools, g: Floats) -> Floats:
    """The vector centred by its own maximum first."""
    x, top = shifted(g, m)
    return derivative(s, m, np.where(m, x - top, 0))


FORWARD: dict[str, Forward] = {
    "exp2((s - M) * log2(e))": exp2,
    "exp((s - M) - log(S))": log_softmax,
    "exp(s - logsumexp(s))": log_sum_exp,
    "1 / sum_j exp(s_j - s_i)": reciprocal,
    "1 + expm1(s - M)": expm1,
}
CENTRED = "g - max(g)"
FORMULAS = (*FORWARD, CENTRED)


def told(last: str) -> dict[str, set[str]]:
    """For each formula what stands in the last column of the table whose heading ends so."""
    (body,) = re.findall(rf"^\| formula \|[^\n]*\| {last} \|\n\|[-|]+\|\n((?:\|.*\n)+)", PAGE, re.M)
    rows = [re.split(r" \| ", line.strip("| ")) for line in body.splitlines()]
    return {re.findall(r"`(.+?)`", row[0])[0]: set(re.findall(r"`(.+?)`", row[-1])) for row in rows}


TIERED = told("tier")
DIAGNOSES = told("diagnoses, float64")


def seen(subject: Subject, rounds: int = 2) -> set[str]:
    """The diagnoses of its failures, without the tiers that they name."""
    request = Request(("x",), effort="smoke", dtypes=("float64",), rounds=rounds)
    found = certify(request, subjects=[subject]).certificate.findings
    return {f.diagnosis.partition(":")[0] for f in found if f.verdict == "fail"}


def subject(formula: str, tier: str = "strict") -> Subject:
    """The formula as a subject."""
    if formula == CENTRED:
        return Subject("beyond.centred", plain, vjp=centred_first, jvp=centred_first, tier=tier)
    return Subject("beyond.formula", FORWARD[formula], tier=tier)


def test_the_page_lists_these_formulas() -> None:
    assert (*TIERED, *DIAGNOSES) == FORMULAS


@pytest.mark.parametrize("formula", TIERED)
def test_each_formula_with_a_tier_passes_under_it_and_fails_strict(formula: str) -> None:
    (tier,) = TIERED[formula]
    assert seen(subject(formula, tier), 20) == set()
    assert "rounding" in seen(subject(formula))


@pytest.mark.parametrize("formula", DIAGNOSES)
def test_each_formula_fails_with_the_diagnoses_of_the_page(formula: str) -> None:
    # Another library's exp may carry a coarse formula beyond what still counts as rounding.
    found = seen(subject(formula), 20 if FORWARD.get(formula) is reciprocal else 2)  # it fails on few rows
    assert DIAGNOSES[formula] <= found <= DIAGNOSES[formula] | {"wrong weights"}


def test_what_the_tiers_describe_passes() -> None:
    assert seen(Subject("beyond.plain", plain, vjp=derivative, jvp=derivative)) == set()


@pytest.mark.parametrize("formula", FORMULAS)
def test_each_formula_is_right_where_rounding_is_out_of_the_way(formula: str) -> None:
    """In float64, on moderate float32 rows, every formula stays within the budget of float32."""
    rng = np.random.default_rng(0)
    scores, g = (rng.standard_normal((500, 8)).astype(np.float32).astype(np.float64) for _ in range(2))
    mask = half(rng, 500, 8)
    strict, exact = model("strict", "float32"), engine_for("float32").weights(scores, mask)
    budget = weights_budget(strict, scores, exact).error
    if formula == CENTRED:
        truth = engine_for("float32").derivative(exact, g).value
        budget = derivative_budget(strict, exact, budget, np.where(mask, g, 0.0)).vjp
        returned = centred_first(scores, mask, g)
    else:
        truth, returned = exact.weights.value, FORWARD[formula](scores, mask)
    assert (np.abs(returned - truth) <= budget).all()


def test_the_argument_of_base_2_is_off_by_as_much_as_the_page_says() -> None:
    import mpmath

    for dtype, u in ((np.float32, 2.0**-24), (np.float64, 2.0**-53)):
        constant = float(dtype(np.log2(np.e)))
        with mpmath.workdps(40):
            off = abs(mpmath.mpf(constant) * mpmath.log(2) - 1) / u
        assert 1.0 + 1.0 + float(off) < 2.3  # the difference, the product, the constant
    assert "2.3 d u" in PAGE
