"""Rows in arrays of any rank, along any axis, in any order in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hardmask.adapters import Answer, Subject, resolve
from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.conformance.calls import Fault, Returned, call
from hardmask.conformance.cases import plan
from hardmask.conformance.cases.layouts import COVERING, FEW, FURTHER
from hardmask.conformance.certification import Report
from hardmask.conformance.finding import Finding
from hardmask.conformance.mutants.layouts import mutants
from hardmask.conformance.mutants.mutant import Mutant
from hardmask.conformance.runner import Policy, Results, judge, merge
from hardmask.conformance.verdicts import findings
from hardmask.spec.formats import DTYPES
from hardmask.spec.layout import Layout

ALL = COVERING + FURTHER
IDS = [f"{layout.shape} {layout}" for layout in ALL]


def judged(*subjects: Subject, dtypes: tuple[str, ...] = DTYPES, effort: str = "default") -> list[Finding]:
    """The findings on the layouts alone."""
    results: Results = {}
    for case in plan(effort, 0, dtypes):
        if case.layout is not None:
            merge(results, judge(case, subjects, Policy()))
    return [f for f in findings(subjects, dtypes, results) if f.checked or f.verdict == "error"]


def bad(found: list[Finding]) -> list[Finding]:
    return [f for f in found if f.verdict not in ("pass", "permitted")]


@pytest.mark.parametrize("layout", ALL, ids=IDS)
def test_arrays_in_a_layout_hold_the_rows(layout: Layout) -> None:
    rng = np.random.default_rng(1)
    scores = layout.shared_scores(rng.standard_normal((layout.rows, layout.keys)).astype(np.float32))
    mask = layout.shared_mask(rng.random((layout.rows, layout.keys)) < 0.5)
    vector = rng.standard_normal((layout.rows, layout.keys)).astype(np.float32)
    s, m, v = layout.arrange(scores, mask, vector)
    assert s.shape == v.shape == layout.shape
    assert m.shape == layout.mask_shape
    assert s.flags.writeable
    assert not np.shares_memory(s, scores)
    for array, rows in ((s, scores), (np.broadcast_to(m, layout.shape), mask), (v, vector)):
        assert np.array_equal(layout.lowered(array), rows)
        # Row by row, without the method under test.
        flat = [np.moveaxis(array, layout.axis, -1)[i] for i in np.ndindex(*layout.others)]
        assert all(np.array_equal(a, b) for a, b in zip(flat, rows, strict=True))
    if layout.rows > 1 and s.size and layout.keys > 1 and s.ndim > 1:
        assert s.flags.c_contiguous == (layout.memory == "contiguous")
    if layout.memory == "reversed":
        assert max(s.strides) < 0
    if layout.memory == "strided" and s.ndim == 1:
        assert s.strides == (8,)
    if layout.memory == "repeated":
        assert 0 in s.strides


def test_the_layouts_cover_what_they_are_meant_to() -> None:
    assert {len(x.shape) for x in COVERING} == {1, 2, 3, 4}
    assert {x.memory for x in COVERING} == {"contiguous", "transposed", "strided", "reversed", "repeated"}
    deep = [x for x in COVERING if len(x.shape) > 2]
    assert {"first" if x.along == 0 else "last" if x.last else "middle" for x in deep} == {"first", "middle", "last"}
    assert {x.axis < 0 for x in COVERING} == {True, False}
    assert any(len(x.mask_shape) < len(x.shape) for x in COVERING)
    assert any(x.mask_shape == x.shape and x.rows > 3 for x in COVERING)
    assert {0, 1} <= {x.keys for x in COVERING}
    assert all(x.keys & (x.keys - 1) for x in COVERING if x.keys > 1), "no length is a power of two"
    assert set(FEW) < set(COVERING)
    names = [str(x) for x in COVERING]
    assert len(set(names)) == len(names)
    keys = [c.key for c in plan("deep", 0, ["float32"])]
    assert len(set(keys)) == len(keys)


def test_batches_of_layouts_are_reproducible_and_have_empty_rows() -> None:
    cases = [c for c in plan("default", 3, ["float16"]) if c.layout is not None]
    assert len(cases) == len(COVERING)
    built = [c.build() for c in cases]
    for case, batch in zip(cases, built, strict=True):
        assert np.array_equal(batch.scores, case.build().scores, equal_nan=True)
        assert batch.real.all()
        assert batch.shape == (case.rows, case.keys)
    assert sum(b.empty.any() and not b.empty.all() for b in built) >= 4


@pytest.mark.parametrize("layout", [((3,), 1, (3,)), ((3,), -2, (3,)), ((2, 3), 0, (3, 3)), ((2,), 0, (1, 2))])
def test_an_impossible_layout_is_refused(layout: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"has no axis|does not broadcast|broadcast"):
        Layout(*layout)
    with pytest.raises(ValueError, match="one row cannot be repeated"):
        Layout((3,), 0, (3,), "repeated")


def test_numpy_passes() -> None:
    found = judged(*resolve(["numpy"]), effort="deep")
    assert not bad(found)
    assert {f.family for f in found} == {str(x) for x in ALL}
    reference = [f for f in found if f.subject == "numpy.softmax-where" and f.dtype == "float32"]
    names = {f.declaration.rpartition(".")[2].rpartition(":")[2] for f in reference}
    assert {"spec_eq_weights", "backward_eq_derivative", "derivative_apply", "empty-row"} <= names


@pytest.mark.torch
def test_torch_passes() -> None:
    # additive-inf fails on infinities alone, of which layouts have none.
    found = judged(*resolve(["torch"]), effort="deep")
    assert not bad(found)
    assert len({f.subject for f in found}) == 5
    values = [f for f in found if f.declaration.endswith("spec_eq_weights") and f.dtype == "float16"]
    assert {f.tier for f in values if f.family == "axis 0 of 2"} == {"mixed-2"}
    assert {f.tier for f in values if f.family.startswith("axis -1 of 2")} == {"mixed"}


@pytest.mark.torch
def test_torch_rounds_once_more_along_other_axes() -> None:
    (subject,) = resolve(["torch.softmax-where"])
    found = bad(judged(replace(subject, tier_other_axis={}), dtypes=("bfloat16",)))
    assert found
    assert not any("axis -1" in f.family for f in found)


@pytest.mark.jax
def test_jax_passes() -> None:
    found = judged(*resolve(["jax"]), dtypes=("bfloat16",), effort="smoke")
    assert {f.subject for f in found} == {"jax.softmax-where[jit]"}
    assert {f.family for f in found} == {str(x) for x in FEW}
    assert not bad(found)


def test_numpy_adds_float16_in_float16_along_other_axes() -> None:
    (subject,) = resolve(["numpy.fill-inf"])
    found = bad(judged(replace(subject, any_axis=True), dtypes=("float16",)))
    assert found
    assert all(f.verdict == "fail" and f.diagnosis.startswith("rounding") for f in found)


@pytest.mark.parametrize("mutant", mutants(), ids=lambda m: m.name)
def test_a_mutant_is_right_on_plain_rows_and_fails_where_the_layout_says(mutant: Mutant) -> None:
    wrong = bad(judged(mutant.subject, dtypes=("float32", "bfloat16")))
    assert {f.dtype for f in wrong} == {"float32", "bfloat16"}
    families = {f.family for f in wrong}
    expected = {
        "axis-ignored": {"axis 0 of 2", "axis -3 of 4, reversed, mask broadcast"},
        "axis-negative": {"axis -3 of 4, reversed, mask broadcast"},
        "axis-first": {"axis 0 of 2", "axis 0 of 3, transposed, mask broadcast"},
        "axes-flattened": {"axis 1 of 3, strided, mask broadcast", "axis -1 of 4, repeated, mask broadcast"},
        "axis-reshaped": {"axis 0 of 2", "axis 1 of 3, strided, mask broadcast"},
        "mask-stretched": {"axis -1 of 2, transposed, mask broadcast", "axis -1 of 4, repeated, mask broadcast"},
        "memory-contiguous": {"axis 0 of 1, strided", "axis -1 of 2, transposed, mask broadcast"},
    }[mutant.name]
    assert expected <= families
    right = {str(x) for x in COVERING} - families
    if mutant.name == "axis-negative":
        assert right == {str(x) for x in COVERING if x.axis == -1 or x.axis >= 0}
    if mutant.name == "axis-first":
        assert right == {str(x) for x in COVERING if x.axis != 0 or len(x.shape) == 1}


def test_scores_that_are_overwritten_are_named_in_every_layout(changed: Callable[..., Subject]) -> None:
    def filled_in_place(scores: Any, mask: Any, axis: int = -1) -> Any:
        weights = softmax_where(scores, mask, axis).weights
        scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
        return weights

    wrong = bad(judged(changed("x.fills", forward=filled_in_place, any_axis=True), dtypes=("float32",)))
    assert all(f.verdict == "error" and "changed the scores that it was given" in f.diagnosis for f in wrong)
    # The strided row of rank 1 has masks of its own; an array without elements has nothing to overwrite.
    assert {f.family for f in wrong} >= {str(x) for x in COVERING if x.rows > 1 and x.keys > 0}


@pytest.mark.parametrize("method", ["vjp", "jvp"])
def test_a_derivative_that_ignores_the_axis_is_caught_alone(method: str) -> None:
    (subject,) = resolve(["numpy.softmax-where"])
    lazy = replace(subject, **{method: lambda s, m, v, axis=-1: softmax_where_derivative(s, m, v)})
    wrong = bad(judged(lazy, dtypes=("float64",)))
    serving = {"vjp": "backward_eq_derivative", "jvp": "derivative_apply"}[method]
    assert {f.family for f in wrong if f.declaration.endswith(serving)} == {str(x) for x in COVERING if not x.last}
    assert not [f for f in wrong if f.declaration.endswith("spec_eq_weights")]


LAYOUT = Layout((2, 3, 4), 1, (3, 1), "strided")
FLAT = np.zeros((8, 3), np.float32), np.ones((8, 3), bool)


@pytest.mark.parametrize(
    ("forward", "start", "end"),
    [
        (
            lambda s, m, axis: s.sum(axis=axis),
            "returned shape (2, 4) for scores of shape (2, 3, 4) along axis 1",
            "return one value per score.",
        ),
        (
            lambda s, m, axis: s.astype(np.float64),
            "returned float64 for float32 scores along axis 1",
            "return the dtype of the scores.",
        ),
        (
            lambda s, m, axis: Answer(s.copy(), np.ones(8, bool)),
            "returned a 'valid' flag of dtype bool and shape (8,) along axis 1",
            "return Booleans of shape (2, 4), one per row.",
        ),
        (lambda s, m: s, "failed on float32 scores of shape (2, 3, 4) along axis 1", "'axis'."),
        (
            lambda s, m, axis: np.invert(m, out=m) + s,
            "changed the mask that it was given, float32 scores of shape (2, 3, 4) along axis 1",
            "Work on a copy.",
        ),
    ],
    ids=["shape", "dtype", "flag", "no-axis", "mask"],
)
def test_an_unusable_answer_names_the_layout(
    forward: Callable[..., Any], start: str, end: str, changed: Callable[..., Subject]
) -> None:
    answer = call(changed("x.any", forward=forward, any_axis=True), "forward", *FLAT, layout=LAYOUT)
    assert isinstance(answer, Fault)
    assert answer.sentence.startswith(f"x.any.forward {start}")
    assert "(axis 1 of 3, strided, mask broadcast)" in answer.sentence
    assert answer.sentence.endswith(end)


def test_an_answer_comes_back_as_rows(changed: Callable[..., Subject]) -> None:
    flagged = changed("x.any", forward=softmax_where, any_axis=True)
    scores = np.arange(24, dtype=np.float32).reshape(8, 3)
    mask = LAYOUT.shared_mask(np.ones((8, 3), bool))
    answer = call(flagged, "forward", scores, mask, layout=LAYOUT)
    plain = call(flagged, "forward", scores, mask)
    assert isinstance(answer, Returned)
    assert isinstance(plain, Returned)
    assert np.allclose(answer.values, plain.values)
    assert answer.valid is not None
    assert answer.valid.shape == (8,)


def test_layouts_are_judged_in_the_dtypes_that_are_named_and_no_others(
    changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    subject = changed("x.any", forward=softmax_where, any_axis=("float32",))
    report = judge(subject, dtypes=("float32", "float64"))
    assert report.exit_code == 0
    by_family = {(f.dtype, f.family) for f in report.certificate.findings if f.family.startswith("axis")}
    assert by_family == {("float32", str(x)) for x in FEW}
    (record,) = report.certificate.subjects
    assert record.any_axis == ["float32"]


def test_a_function_that_rejects_empty_rows_does_so_in_every_layout(
    changed: Callable[..., Subject], judge: Callable[..., Report], select: Callable[..., list[Finding]]
) -> None:
    def rejecting(scores: Any, mask: Any, axis: int = -1) -> Any:
        answer = softmax_where(scores, mask, axis)
        assert answer.valid is not None
        if not answer.valid.all():
            raise ValueError("a row allows no key")
        return answer.weights

    report = judge(changed("x.reject", forward=rejecting, contract="reject", any_axis=True))
    assert report.exit_code == 0
    lax = changed("x.lax", forward=lambda s, m, axis=-1: softmax_where(s, m, axis).weights, contract="reject")
    found = select(judge(replace(lax, any_axis=True)), "empty-row", verdict="fail")
    assert {"axis 0 of 2"} <= {f.family for f in found}
