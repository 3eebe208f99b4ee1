"""Attention problems, and calls of attention subjects as if they were hostile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.attention import LIMITS, Attention, AttentionAnswer
from hardmask.conformance.attention.calls import AttentionReturned, call_attention, limit_of, takes
from hardmask.conformance.attention.masks import MASKS, causal
from hardmask.conformance.attention.plan import (
    EDGES,
    GROUPED,
    NO_KEYS,
    NO_QUERIES,
    ONE_QUERY,
    SMALL,
    SQUARE,
    VALUES,
    AttentionCase,
    plan_attention,
)
from hardmask.conformance.attention.smallest import smallest, taken
from hardmask.conformance.calls import Fault
from hardmask.spec.attention.problem import Problem
from hardmask.spec.formats import DTYPES, FORMATS


def problem(shape: Any = SMALL, mask: str = "random", content: str = "plain", **more: Any) -> Problem:
    """One problem in float32."""
    return AttentionCase("float32", shape, mask, content, 0, **more).build()


def good(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    """Something of the right shape and dtype."""
    return np.zeros((*q.shape[:3], v.shape[3]), q.dtype)


def test_a_plan_is_reproducible_and_has_what_it_must() -> None:
    cases = plan_attention("deep", 3, ["float32"])
    assert len({c.key for c in cases}) == len(cases)
    one, again = (c[5].build() for c in (cases, plan_attention("deep", 3, ["float32"])))
    assert np.array_equal(one.q, again.q)
    assert np.array_equal(one.mask, again.mask)
    assert set(EDGES) <= {c.shape[4] for c in cases}
    default = plan_attention("default", 0, DTYPES)
    assert {c.mask for c in default} == set(MASKS)
    assert {c.layout for c in default} == {"contiguous", "transposed", "expanded"}
    widths = {c.shape[5] for c in default}
    assert {1, 128} <= widths
    sizes = [c.shape for c in default]
    assert any(lq < lk for _, _, _, lq, lk, _, _ in sizes)
    assert any(lq > lk > 0 for _, _, _, lq, lk, _, _ in sizes)


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_what_they_are_called(name: str) -> None:
    rng = np.random.default_rng(0)
    made = MASKS[name](rng, (3, 2, 6, 9))
    full = np.broadcast_to(made.mask, (3, 2, 6, 9))
    if made.causal:
        assert (full == causal(6, 9, made.causal)).all()
    if made.lengths:
        assert (full == full[:, :1, :1]).all()
        assert (np.diff(full[:, 0, 0].astype(int), axis=-1) <= 0).all()
    empties = {"all padding", "one empty query", "causal and padding"}
    assert (~full.any(axis=-1)).any() == (name in empties)


def test_bottom_right_with_more_queries_empties_the_first() -> None:
    mask = causal(4, 2, "bottom-right")
    assert mask.tolist() == [[False, False], [False, False], [True, False], [True, True]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_poison_overflows_nothing(dtype: str) -> None:
    p = AttentionCase(dtype, GROUPED, "padding", "poison", 0).build()
    largest = FORMATS[dtype].max
    q, k, v, g = (np.abs(p.wide(name)) for name in ("q", "k", "v", "cotangent"))
    assert k[p.unseen].max() > 16 * k[~p.unseen].max()
    with np.errstate(over="raise"):
        heads = p.sizes[1] // p.sizes[2]
        assert (q @ np.repeat(k, heads, axis=1).swapaxes(-1, -2)).max() < largest / 4
        assert (g @ np.repeat(v, heads, axis=1).swapaxes(-1, -2)).max() < largest / 4


def test_layouts_hold_the_same_numbers() -> None:
    plain, other = (problem(layout=layout) for layout in ("contiguous", "transposed"))
    assert not other.q.flags.c_contiguous
    expanded = problem(layout="expanded")
    assert expanded.k.strides[0] == 0
    assert (expanded.k[0] == expanded.k[1]).all()
    assert plain.q.shape == other.q.shape


ODD: dict[str, tuple[Any, str]] = {
    "raises": (lambda *a: 1 / 0, "failed on float32 q (2, 2, 5, 4)"),
    "exits": (lambda *a: exit(3), "raised SystemExit"),
    "a list": (lambda *a: [1.0], "returned a list as its output; return a NumPy array"),
    "a wrong shape": (lambda q, *a: q[:, :1], "returned a output of shape (2, 1, 5, 4)"),
    "a wrong dtype": (lambda q, *a: q.astype(np.float64), "returned float64 as its output"),
    "a wrong flag": (
        lambda q, *a: AttentionAnswer(q.copy(), valid=np.ones((2, 5), bool)),
        "returned a 'valid' flag of dtype bool and shape (2, 5)",
    ),
    "wrong weights": (
        lambda q, *a: AttentionAnswer(q.copy(), weights=q.copy()),
        "returned a weights of shape (2, 2, 5, 4)",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_whatever_a_subject_does_there_is_a_sentence(name: str) -> None:
    function, sentence = ODD[name]
    answer = call_attention(Attention("mine.odd", function), "forward", problem())
    assert isinstance(answer, Fault)
    assert sentence in answer.sentence


def test_a_subject_that_changes_its_arrays_is_at_fault_and_spoils_nothing() -> None:
    def spoil(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
        k[:] = 0
        return good(q, k, v, mask, scale)

    p = problem()
    before = p.k.copy()
    answer = call_attention(Attention("mine.spoil", spoil), "forward", p)
    assert isinstance(answer, Fault)
    assert "changed the array k" in answer.sentence
    assert np.array_equal(p.k, before)


def test_gradients_come_as_three_arrays() -> None:
    subject = Attention("mine.two", good, vjp=lambda q, k, v, *rest: (q, k))
    answer = call_attention(subject, "vjp", problem())
    assert isinstance(answer, Fault)
    assert "return the three arrays (dq, dk, dv)" in answer.sentence
    fine = Attention("mine.three", good, vjp=lambda q, k, v, *rest: (q.copy(), k.copy(), v.copy()))
    answer = call_attention(fine, "vjp", problem(VALUES))
    assert isinstance(answer, AttentionReturned)
    assert answer.values("dv").shape == VALUES[:1] + VALUES[2:3] + VALUES[4:5] + VALUES[6:]


LIMITED: dict[str, Problem] = {
    "grouped heads": problem(GROUPED),
    "queries other than keys": problem(SMALL),
    "values of another width": problem(VALUES),
    "scale": problem(scale=0.75),
    "no keys": problem(NO_KEYS, "full"),
    "no queries": problem(NO_QUERIES, "full"),
    "mask per head": problem(SMALL, "random"),
    "mask per query": problem(SMALL, "random"),
    "head width": problem(ONE_QUERY, "full"),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits(limit: str) -> None:
    subject = Attention("mine.limited", good, limits={limit: "It is so."}, widths=lambda d: d != ONE_QUERY[5])
    assert limit_of(subject, LIMITED[limit]) == limit
    assert limit_of(subject, problem(SQUARE, "padding")) == ""


def test_an_encoding_takes_the_masks_that_it_can_express() -> None:
    lengths, flag = (Attention("mine.x", good, encoding=e, causal="top-left") for e in ("lengths", "causal"))
    undeclared = Attention("mine.x", good, encoding="causal")
    for name in MASKS:
        p = problem(SMALL, name)
        assert takes(lengths, p) == (name in ("padding", "all padding"))
        assert takes(flag, p) == (name == "causal top-left")
        assert not takes(undeclared, p)
    assert takes(undeclared, problem(SQUARE, "causal bottom-right"))
    assert takes(flag, problem(SQUARE, "causal bottom-right"))


def test_a_part_of_a_problem_is_described_by_its_own_mask() -> None:
    p = problem(SQUARE, "causal top-left")
    assert taken(p, {"queries": [0, 1, 2], "keys": [0, 1, 2]}).causal == "top-left"
    assert taken(p, {"keys": [0, 2]}).causal is None
    padding = problem(SMALL, "padding")
    assert taken(padding, {"keys": [0, 1, 2]}).lengths
    assert taken(p, {"width": [0]}).scale == 1.0


def test_shrinking_keeps_what_a_problem_shows() -> None:
    p = problem(GROUPED, "random")

    def shows(q: Problem) -> bool:
        return bool(q.empty.size) and q.sizes[4] > 1 and bool((~q.full_mask).any()) and abs(float(q.q.sum())) > 0.1

    small = smallest(replace(p, family="x"), shows)
    assert shows(small)
    assert small.q.size + small.k.size < 12
