"""The mutants of derivatives are right forward, wrong where they say so, and caught."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.conformance.cases import Case, plan
from hardmask.conformance.mutants import Mutant, derivatives, derivatives_rounding, derivatives_sometimes
from hardmask.conformance.mutants.jacobian import Rows, faulty
from hardmask.conformance.runner import Policy, Results, judge, merge
from hardmask.spec.batch import Batch
from hardmask.spec.formats import DTYPES

MUTANTS = [*derivatives.mutants(), *derivatives_sometimes.mutants(), *derivatives_rounding.mutants()]
NAMES = [m.name for m in MUTANTS]
MODES = (("vjp", "cotangents"), ("jvp", "tangents"))


def cases(dtype: str) -> Iterator[Case]:
    """Small batches that hold whatever a mutant may need to be wrong: lengths, empty rows, NaN, many rows."""
    for kind in ("shapes", "mixture", "facts"):
        yield Case(dtype, kind, 104, 16, 0, 0)
    for keys in (64, 131, 257):
        yield Case(dtype, "shapes", 104, keys, 0, 0)
    yield Case(dtype, "shapes", 1552, 16, 0, 0)


@pytest.fixture(scope="module")
def batches() -> dict[str, list[Batch]]:
    return {dtype: [case.build() for case in cases(dtype)] for dtype in DTYPES}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)


def test_there_are_many_and_each_has_its_own_name_and_story() -> None:
    assert len(MUTANTS) >= 60
    assert len(set(NAMES)) == len({m.story for m in MUTANTS}) == len(MUTANTS)
    for m in MUTANTS:
        assert m.story.endswith("."), m.name
        assert m.kind in {"K", "C", "E", "I", "O", "numeric"}


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_a_mutant_is_right_forward_and_wrong_in_each_dtype(mutant: Mutant, batches: dict[str, list[Batch]]) -> None:
    """Else it would be the reference under another name: its survival, or its being caught, would say nothing."""
    subject = mutant.subject
    everywhere = set()
    for dtype in subject.dtypes:
        wrong = set()
        for batch in batches[dtype]:
            rows = batch.scores, batch.mask
            assert same(np.asarray(subject.forward(*rows)), softmax_where(*rows).weights)
            for method, side in MODES:
                vector = getattr(batch, side)
                answer = getattr(subject, method)(*rows, vector)
                assert answer.dtype == batch.scores.dtype
                if not same(answer, softmax_where_derivative(*rows, vector)):
                    wrong.add(method)
        everywhere.add(frozenset(wrong))
    (modes,) = everywhere
    assert modes
    # A name or a story that speaks of one mode is of a fault in that mode alone.
    for mode, _ in MODES:
        if mutant.name.startswith(mode) or mutant.story.startswith(f"The {mode.upper()}"):
            assert modes == {mode}


LATER = {
    "squared-sum-overflows": Case("float16", "shapes", 416, 320, 0, 0),
    "uncentred-at-full-tiles": Case("float32", "shapes", 104, 64, 0, 0),
    "first-1024-rows": Case("float32", "shapes", 1552, 16, 0, 0),
}
"""Where a mutant is caught that needs more than the smoke effort and one batch of long rows."""


@pytest.fixture(scope="module")
def judged() -> Results:
    """All mutants at smoke effort and on long rows, in one dtype; the kill table has the others."""
    results: Results = {}
    subjects = [m.subject for m in MUTANTS]
    for case in [*plan("smoke", 0, ["float32"]), Case("float32", "shapes", 104, 131, 0, 0)]:
        merge(results, judge(case, subjects, Policy()))
    for case in [*plan("smoke", 0, ["bfloat16"])]:
        merge(results, judge(case, [s for s in subjects if "float32" not in s.dtypes], Policy()))
    for case in plan("smoke", 0, ["float64"]):
        merge(results, judge(case, [s for s in subjects if s.dtypes == ("float64",)], Policy()))
    for name, case in LATER.items():
        merge(results, judge(case, [m.subject for m in MUTANTS if m.name == name], Policy()))
    return results


@pytest.mark.parametrize("mutant", MUTANTS, ids=NAMES)
def test_a_mutant_is_caught_by_what_judges_derivatives(mutant: Mutant, judged: Results) -> None:
    mine = [tallies for (id, _), tallies in judged.items() if id == mutant.subject.id]
    caught = {name for tallies in mine for (name, _), tally in tallies.items() if tally.failed}
    assert caught & {"backward_eq_derivative", "derivative_apply", "isolation"}
    assert not [e for tallies in mine for tally in tallies.values() for e in tally.errors]
    forward = {"spec_eq_weights", "row_sum", "score_non_interference", "hardMaskedSoftmaxVecSpec_blocked_eq_zero"}
    assert not caught & forward


def test_a_fault_in_one_mode_alone_is_named_by_that_mode(judged: Results) -> None:
    for name, there, not_there in [
        ("vjp-uncentred", "backward_eq_derivative", "derivative_apply"),
        ("jvp-uncentred", "derivative_apply", "backward_eq_derivative"),
    ]:
        tallies = judged[f"mutant.{name}", "float32"]
        failed = {key for (key, _), tally in tallies.items() if tally.failed}
        assert there in failed
        assert "backward_eq_adjoint_fderiv" in failed
        assert not_there not in failed


def test_a_rule_sees_the_row_in_the_format_that_is_computed_in() -> None:
    seen: list[Rows] = []

    def rule(rows: Rows) -> np.ndarray:
        seen.append(rows)
        return rows.right

    made = faulty("plain", "K", "Nothing is wrong.", rule, dtypes=("float16",)).subject
    scores, mask = np.array([[0.0, 1.0, np.nan]], np.float16), np.array([[True, True, False]])
    vector = np.array([[1.0, 2.0, np.nan]], np.float16)
    assert made.vjp is not None
    assert same(made.vjp(scores, mask, vector), softmax_where_derivative(scores, mask, vector))
    (rows,) = seen
    assert rows.weights.dtype == rows.vector.dtype == np.float32
    assert rows.vector.tolist() == [[1.0, 2.0, 0.0]]
    assert np.isnan(rows.given[0, 2])
    assert rows.storage == np.float16
