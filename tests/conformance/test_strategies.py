"""The public strategies: exact numbers, the options they promise, and shrinking to the obvious minimal example."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import find, given, settings

from hardmask.adapters import resolve
from hardmask.adapters.subject import Subject
from hardmask.conformance import check_row
from hardmask.conformance.strategies import (
    Attention,
    Row,
    RowWithVectors,
    attention_inputs,
    batches,
    cotangents,
    masked_rows,
    numbers,
    rows_with_vectors,
)
from hardmask.spec.formats import DTYPES, FORMATS

FEW = settings(max_examples=40, derandomize=True, database=None, deadline=None)
FIND = settings(max_examples=1500, derandomize=True, database=None)
(REFERENCE,) = resolve(["numpy.softmax-where"])


def smallest(strategy: Any, condition: Callable[[Any], bool]) -> Any:
    return find(strategy, condition, settings=FIND)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_correct_softmax_keeps_every_declaration_on_every_row(dtype: str) -> None:
    lengths = set()

    @FEW
    @given(rows_with_vectors(dtype, empty=True, poison=True, extremes=True, min_keys=0))
    def judged(row: RowWithVectors) -> None:
        lengths.add(len(row.scores))
        assert {part.dtype for part in (row.scores, row.cotangents, row.tangents)} == {FORMATS[dtype].dtype}
        found = check_row(REFERENCE, *row)
        assert found
        assert {f.verdict for f in found} <= {"pass", "permitted"}

    judged()
    assert len(lengths) > 3


def high_and_long(row: Row) -> bool:
    return len(row.scores) >= 3 and bool((row.scores.astype(float) > 10).any())


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_fault_shrinks_to_the_obvious_row(dtype: str) -> None:
    row = smallest(masked_rows(dtype), high_and_long)
    assert row.scores.dtype == FORMATS[dtype].dtype
    assert row.scores.astype(float).tolist() == [0.0, 0.0, 11.0]
    assert row.mask.tolist() == [True, True, True]


def test_a_failing_subject_shrinks_to_the_obvious_row() -> None:
    def planted(scores: Any, mask: Any) -> Any:
        w = REFERENCE.forward(scores, mask).weights  # type: ignore[union-attr]
        wrong = (np.where(mask, scores, 0) > 10).any(axis=1) & (scores.shape[1] >= 3)
        return np.where(wrong[:, None], w[:, ::-1] * np.float32(0.5), w)

    def fails(row: Row) -> bool:
        try:
            check_row(planted, *row)
        except AssertionError:
            return True
        return False

    row = smallest(masked_rows("float32"), fails)
    assert (row.scores.tolist(), row.mask.tolist()) == ([0.0, 0.0, 11.0], [True, True, True])


SMALLEST: dict[str, tuple[Any, Callable[[Any], bool], Any]] = {
    "a blocked key": (batches(), lambda b: not b.mask.all(), ([[0.0, 0.0]], [[True, False]])),
    "an empty row": (masked_rows(empty=True), lambda r: not r.mask.any(), ([0.0], [False])),
    "a row of no keys": (masked_rows(min_keys=0, empty=True), lambda r: not r.mask.any(), ([], [])),
    "a fraction": (masked_rows(), lambda r: bool((r.scores % 1).any()), ([1.5], [True])),
    "two rows": (batches(min_rows=2), lambda b: True, ([[0.0], [0.0]], [[True], [True]])),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_the_smallest_examples(name: str) -> None:
    strategy, condition, (scores, mask) = SMALLEST[name]
    found = smallest(strategy, condition)
    assert (found.scores.tolist(), found.mask.tolist()) == (scores, mask)


def test_options_bring_what_they_name_and_nothing_else_does() -> None:
    poisoned = smallest(masked_rows(poison=True), lambda r: bool(np.isnan(r.scores).any()))
    assert not poisoned.mask[np.isnan(poisoned.scores)].any()
    smallest(masked_rows(extremes=True), lambda r: bool((np.abs(r.scores[r.mask]) == FORMATS["float32"].max).any()))
    smallest(masked_rows(), lambda r: len(set(r.scores.tolist())) < len(r.scores) and bool(r.scores[0]))

    @FEW
    @given(masked_rows(ties=False))
    def plain(row: Row) -> None:
        assert row.mask.any()
        assert np.abs(row.scores).max() <= 100.0
        assert 1 <= len(row.scores) <= 8

    plain()


@FEW
@given(attention_inputs("float16", min_length=0, empty=True))
def test_attention_inputs_fit_together(a: Attention) -> None:
    (heads, queries, keys), width = a.mask.shape, a.Q.shape[2]
    assert a.Q.shape == (heads, queries, width)
    assert a.K.shape == (heads, keys, width)
    assert a.V.shape[:2] == (heads, keys)
    assert a.mask.dtype == np.bool_
    assert {x.dtype for x in (a.Q, a.K, a.V)} == {np.dtype("float16")}
    assert float(np.float16(a.scale)) == a.scale


def test_attention_reaches_its_corners() -> None:
    smallest(attention_inputs(min_length=0, empty=True), lambda a: a.K.shape[1] == 0 and a.Q.shape[1] > 0)
    smallest(attention_inputs(empty=True), lambda a: not a.mask.any(axis=-1).all())
    apart = smallest(attention_inputs(), lambda a: a.Q.shape[1] != a.K.shape[1] and a.mask.shape[0] > 1)
    assert not apart.V.any()


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "dtype": (lambda: numbers("float8"), "There is no dtype 'float8'"),
    "range": (lambda: masked_rows(min_keys=3, max_keys=2), "The keys range from 3 to 2"),
    "no keys": (lambda: masked_rows(min_keys=0), "pass empty=True"),
    "no rows": (lambda: batches(min_rows=2, max_rows=1), "The rows range from 2 to 1"),
    "no width": (lambda: attention_inputs(max_width=0), "The width range from 1 to 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_gets_a_sentence(name: str) -> None:
    call, sentence = WRONG[name]
    with pytest.raises(ValueError, match=sentence):
        call()


def test_vectors_follow_their_row() -> None:
    row = Row(np.zeros((2, 3), "float16"), np.ones((2, 3), bool))
    vector = smallest(cotangents(row, extremes=True), lambda g: bool(np.abs(g).max() > 1000))
    assert (vector.shape, vector.dtype) == ((2, 3), np.dtype("float16"))


def test_without_hypothesis_there_is_a_sentence() -> None:
    program = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import hardmask.conformance\n"
        "hardmask.conformance.check_row\n"
        "try:\n    import hardmask.conformance.strategies\n"
        "except ImportError as problem:\n    print(problem)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "needs Hypothesis, which is not installed. Run: pip install hypothesis" in run.stdout


def test_check_row_judges_derivatives_along_the_given_vectors(good: Subject, changed: Callable[..., Subject]) -> None:
    def vjp(scores: Any, mask: Any, v: Any) -> Any:
        return np.where(v[:, :1] == 7.0, 0, good.vjp(scores, mask, v))  # type: ignore[misc]

    lazy = changed("x.lazy", vjp=vjp, jvp=good.jvp)
    row = np.float64([0.0, 1.0]), [True, True]
    assert {f.verdict for f in check_row(lazy, *row)} == {"pass"}
    with pytest.raises(AssertionError, match="zero derivative") as problem:
        check_row(lazy, *row, cotangents=[7.0, 0.0])
    assert "cotangent" in str(problem.value)


def test_check_row_takes_contracts_batches_and_refusals(changed: Callable[..., Subject]) -> None:
    def nan(scores: Any, mask: Any) -> Any:
        with np.errstate(invalid="ignore"):
            e = np.where(mask, np.exp(scores), 0)
            return (e / e.sum(axis=1, keepdims=True)).astype(scores.dtype)

    empty = np.zeros((2, 2), "float32"), [[False, False], [True, True]]
    with pytest.raises(AssertionError, match="extension:empty-row"):
        check_row(nan, *empty)
    assert {f.verdict for f in check_row(nan, *empty, contract="nan")} == {"pass", "permitted"}

    def refuses(scores: Any, mask: Any) -> Any:
        raise OSError("device lost")

    with pytest.raises(AssertionError, match="device lost"):
        check_row(refuses, np.float32([0.0]), [True])


MISFITS: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "dtype": (([1, 2], [True, True]), {}, "The scores are int64; hardmask judges float64"),
    "mask": ((np.float32([1, 2]), [1, 0]), {}, "give Booleans"),
    "shape": ((np.float32([1, 2]), [True]), {}, r"The scores have shape \(2,\) and the mask \(1,\)"),
    "no row": ((np.zeros((0, 2)), np.ones((0, 2), bool)), {}, "There is no row to judge"),
    "vectors": ((np.float32([1, 2]), [True, True], [1.0]), {}, "The cotangents have shape"),
    "too large": ((np.float64([1, 2]), [True, True], [1e300, 0.0]), {}, "Some cotangents are beyond"),
    "inexact": ((np.float16([1, 2]), [True, True], [0.1, 0]), {}, "numbers of float16"),
    "contract": ((np.float32([1]), [True]), {"contract": "none"}, "There is no empty-row contract 'none'"),
}


@pytest.mark.parametrize("name", MISFITS)
def test_arrays_that_do_not_fit_get_a_sentence(name: str) -> None:
    arrays, options, sentence = MISFITS[name]
    with pytest.raises(ValueError, match=sentence):
        check_row(REFERENCE, *arrays, **options)


def test_what_cannot_be_judged_gets_a_sentence(changed: Callable[..., Subject]) -> None:
    with pytest.raises(ValueError, match="not a int"):
        check_row(3, np.float32([1]), [True])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"'x\.narrow' offers float64, and the scores are float32"):
        check_row(changed("x.narrow", dtypes=("float64",)), np.float32([1]), [True])
