"""The worked example of docs/tutorial-empty-row.md: its numbers, its figure, and what the checks say about its row."""

from __future__ import annotations

import importlib.util
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import ModuleType

import mpmath
import numpy as np
import pytest

from hardmask.adapters import resolve
from hardmask.conformance.finding import Finding
from hardmask.conformance.runner import Policy, judge
from hardmask.conformance.verdicts import findings
from hardmask.spec.arithmetic import Arithmetic
from hardmask.spec.batch import Batch
from hardmask.spec.definitions import hardMaskedSoftmaxVecSpec, weights
from hardmask.spec.oracle.referee import enclose

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tutorial-empty-row.md").read_text()
S, V = (0, 1, 2), (10, 20, 90)
PARTIAL, EMPTY, FULL = [True, False, True], [False] * 3, [True] * 3


@dataclass(frozen=True)
class Example:
    """The row of the page as a case: under the partial mask and under the empty one."""

    dtype: str = "float64"
    kind: str = "example"
    key: str = "example"
    seed: int = 0
    layout: None = None

    def build(self) -> Batch:
        """Two rows; the vectors of the derivatives are the values."""
        scores = np.array([S, S], np.float64)
        vectors = np.array([V, V], np.float64)
        mask, family = np.array([PARTIAL, EMPTY]), np.array([0, 1])
        return Batch("example", "float64", scores, mask, vectors, vectors, family, ("partial", "empty"))


def judged(subject_id: str) -> list[Finding]:
    """The findings of the suite's checks on the row of the page."""
    subjects = resolve([subject_id])
    return list(findings(subjects, ["float64"], judge(Example(), subjects, Policy())))  # type: ignore[arg-type]


def exact_output(mask: list[bool]) -> mpmath.mpf:
    """``sum w_i v_i`` by the definitions, over fifty digits."""
    with mpmath.workdps(50):
        row = hardMaskedSoftmaxVecSpec(
            [mpmath.mpf(s) for s in S], mask, Arithmetic("mpmath", mpmath.exp, mpmath.mpf(0))
        )
        return mpmath.fdot(row, V)


def test_the_output_of_the_partial_row() -> None:
    with mpmath.workdps(50):
        closed = (10 + 90 * mpmath.e**2) / (1 + mpmath.e**2)
        assert abs(exact_output(PARTIAL) - closed) < mpmath.mpf(10) ** -45
        assert mpmath.nstr(closed, 20).startswith("80.463766")
    low, high = (sum(Fraction(v) * end for v, end in zip(V, ends, strict=True)) for ends in ends_of(PARTIAL))
    assert low <= Fraction(str(closed)) + Fraction(1, 10**14)
    assert Fraction(80463766, 10**6) < low <= high < Fraction(80463767, 10**6)


def ends_of(mask: list[bool]) -> tuple[list[Fraction], list[Fraction]]:
    """The referee's lower and upper bounds of the weights."""
    row = enclose([float(s) for s in S], mask)
    return [w.lo for w in row], [w.hi for w in row]


def test_the_empty_row_is_zero_by_definition_and_by_the_referee() -> None:
    floats = Arithmetic("float", mpmath.exp, 0)
    assert hardMaskedSoftmaxVecSpec(S, EMPTY, floats) == weights(EMPTY, S, floats) == [0, 0, 0]
    assert ends_of(EMPTY) == ([0, 0, 0], [0, 0, 0])


def test_what_the_leaks_return_is_the_mean_and_the_raw_softmax() -> None:
    assert Fraction(sum(V), 3) == 40
    with mpmath.workdps(50):
        closed = (10 + 20 * mpmath.e + 90 * mpmath.e**2) / (1 + mpmath.e + mpmath.e**2)
        assert abs(exact_output(FULL) - closed) < mpmath.mpf(10) ** -45
        assert mpmath.nstr(closed, 20).startswith("65.666561")
    for value in ("80.463766", "65.666561", "= 40"):
        assert value in PAGE


@pytest.mark.parametrize(
    ("subject_id", "diagnosis"),
    [
        ("numpy.replace-min", "uniform"),
        ("numpy.additive-1e9", "raw softmax"),
        ("numpy.unguarded-inf", "NaN"),
        ("numpy.zero-without-flag", "no valid flag"),
    ],
)
def test_the_row_of_the_page_gets_the_diagnosis_of_the_page(subject_id: str, diagnosis: str) -> None:
    failed = [f for f in judged(subject_id) if f.verdict == "fail" and f.family == "empty"]
    empty_row = [f for f in failed if f.declaration == "extension:empty-row"]
    assert [f.diagnosis for f in empty_row] == [diagnosis]
    (finding,) = empty_row
    assert finding.witness is not None
    assert finding.witness.scores == [float(s).hex() for s in S]
    assert not any(f.verdict == "fail" for f in judged(subject_id) if f.declaration.endswith("eq_one"))


@pytest.mark.parametrize("subject_id", ["numpy.softmax-where", "numpy.zero-with-flag"])
def test_zeros_with_a_flag_pass_on_the_row_of_the_page(subject_id: str) -> None:
    found = judged(subject_id)
    assert {f.verdict for f in found} <= {"pass", "hypothesis-unmet"}
    assert any(f.verdict == "pass" and f.declaration == "extension:empty-row" for f in found)


def figure() -> ModuleType:
    """The script of the figure."""
    spec = importlib.util.spec_from_file_location("hardmask_docs_empty_row", DOCS / "figures" / "empty_row.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_figure_shows_what_the_subjects_return() -> None:
    svg = (DOCS / "figures" / "empty-row.svg").read_text()
    shown = re.findall(r"<!-- (.*?) -->", svg)  # matplotlib writes each text in a comment beside its outlines
    places = [i for i, text in enumerate(shown) if text == "key 0"]
    parts = [shown[a:b] for a, b in zip(places, [*places[1:], None], strict=True)]
    panels = figure().panels()
    assert len(parts) == len(panels) == 5
    for part, panel in zip(parts, panels, strict=True):
        labels = ["NaN" if w != w else f"{w:.2f}" if w else "0" for w in panel.weights]
        for text in {*labels, *panel.caption.split("\n"), *panel.title.split("\n")}:
            assert part.count(text) >= labels.count(text), (panel.title, text)
            assert text in part, (panel.title, text)
    assert [panel.caption.split("\n")[0] for panel in panels] == [
        f"output {value}" for value in ("80.46", "40", "65.67", "NaN", "0")
    ]


def test_the_alternative_text_tells_the_same() -> None:
    (text,) = re.findall(r"!\[(.*?)\]\(figures/empty-row\.svg\)", PAGE, re.S)
    for panel in figure().panels():
        output = panel.caption.split("\n")[0].removeprefix("output ")
        for value in (output, *(f"{w:.2f}" for w in panel.weights if w == w and w)):
            assert value in text, value
