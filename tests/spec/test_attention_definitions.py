"""The definitions of attention: numbers published with TorchLean, shapes without rows, and the other ways to a mask."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mpmath
import pytest
from mpmath.ctx_mp import MPContext

from hardmask.spec.arithmetic import Arithmetic
from hardmask.spec.attention import paths, unmasked
from hardmask.spec.attention.definitions import (
    scaledDotProductAttention,
    scaledDotProductAttentionBackward,
    scaledDotProductAttentionJvp,
)
from hardmask.spec.masks import allTrueMask, causalMask

KNOWN = json.loads((Path(__file__).parents[1] / "data" / "known-attention.json").read_text())
CAUSAL, EMPTY = KNOWN["causal"], KNOWN["empty_row_gradient"]

CONTEXT = MPContext()
CONTEXT.dps = 50
NUMBERS = Arithmetic("mpmath", CONTEXT.exp, CONTEXT.mpf(0))
FLOATS = Arithmetic("float", math.exp, 0.0)
SCALE = 1 / CONTEXT.sqrt(2)

Rows = list[list[Any]]


def numbers(rows: Rows) -> Rows:
    return [[CONTEXT.mpf(x) for x in row] for row in rows]


def assert_equal(found: Rows, expected: Rows) -> None:
    """To 38 digits: the known numbers have 40."""
    assert [len(row) for row in found] == [len(row) for row in expected]
    for row, other in zip(found, numbers(expected), strict=True):
        for x, y in zip(row, other, strict=True):
            assert abs(x - y) <= abs(y) * CONTEXT.mpf(10) ** -38


@pytest.mark.parametrize(
    ("name", "mask", "appended"),
    [
        ("causal_output", causalMask(3), False),
        ("full_output", allTrueMask(3, 3), False),
        ("appended_causal_output", causalMask(4), True),
    ],
)
def test_known_outputs(name: str, mask: list[list[bool]], appended: bool) -> None:
    more = CAUSAL["appended"]
    q, k, v = (numbers(CAUSAL[x] + ([more[x.lower()]] if appended else [])) for x in "QKV")
    assert_equal(scaledDotProductAttention(q, k, v, mask, SCALE, NUMBERS), CAUSAL[name])


def test_the_other_paths_give_the_known_outputs() -> None:
    q, k, v = (numbers(CAUSAL[x]) for x in "QKV")
    factors = [[int(m) for m in row] for row in causalMask(3)]
    assert_equal(paths.with_bias(q, k, v, factors, SCALE, NUMBERS), CAUSAL["causal_output"])
    assert_equal(paths.causal(q, k, v, 0, SCALE, NUMBERS), CAUSAL["causal_output"])
    assert_equal(paths.with_length(q, k, v, 3, SCALE, NUMBERS), CAUSAL["full_output"])
    assert_equal(unmasked.attention(q, k, v, SCALE, NUMBERS), CAUSAL["full_output"])


def test_known_gradients_of_an_empty_row() -> None:
    q, k, v, g = (numbers(EMPTY[x]) for x in ("q", "k", "v", "cotangent"))
    one = CONTEXT.mpf(1)
    assert_equal(scaledDotProductAttention(q, k, v, EMPTY["mask"], one, NUMBERS), EMPTY["output"])
    gradients = scaledDotProductAttentionBackward(q, k, v, EMPTY["mask"], one, g, NUMBERS)
    for name, found in zip(("dQ", "dK", "dV"), gradients, strict=True):
        assert_equal(found, EMPTY[name])


def test_a_nan_cotangent_of_an_empty_row_is_a_matter_of_the_isolation_promise() -> None:
    q, k, v = (numbers(EMPTY[x]) for x in "qkv")
    g = [[CONTEXT.mpf(EMPTY["cotangent"][0][0])], [CONTEXT.nan]]
    empty = [i for i, row in enumerate(EMPTY["mask"]) if not any(row)]
    assert empty == [1]
    # The formula, run in numbers with a NaN, gives 0 NaN = NaN: no theorem speaks of it.
    _, d_k, d_v = scaledDotProductAttentionBackward(q, k, v, EMPTY["mask"], CONTEXT.mpf(1), g, NUMBERS)
    assert all(mpmath.isnan(x) for x in (*d_k[0], *d_v[0], *d_v[1]))
    # Who promises isolation computes as if the query were not there; its own gradient is 0. That is the known answer.
    d_q, d_k, d_v = scaledDotProductAttentionBackward(q[:1], k, v, EMPTY["mask"][:1], CONTEXT.mpf(1), g[:1], NUMBERS)
    assert_equal([*d_q, [0]], EMPTY["dQ"])
    assert_equal(d_k, EMPTY["dK"])
    assert_equal(d_v, EMPTY["dV"])


def test_no_keys_give_gradients_in_the_shape_of_the_queries() -> None:
    d_q, d_k, d_v = scaledDotProductAttentionBackward([[1.0, 2.0]], [], [], [[]], 1.0, [[]], FLOATS)
    assert (d_q, d_k, d_v) == ([[0.0, 0.0]], [], [])
    assert scaledDotProductAttention([[1.0, 2.0]], [], [], [[]], 1.0, FLOATS) == [[]]
    assert unmasked.backward([[1.0, 2.0]], [], [], 1.0, [[]], FLOATS) == (d_q, d_k, d_v)


def test_no_queries_give_zero_gradients_in_the_shape_of_keys_and_values() -> None:
    k, v = [[1.0, 2.0]], [[3.0]]
    d_q, d_k, d_v = scaledDotProductAttentionBackward([], k, v, [], 1.0, [], FLOATS)
    assert (d_q, d_k, d_v) == ([], [[0.0, 0.0]], [[0.0]])
    assert scaledDotProductAttention([], k, v, [], 1.0, FLOATS) == []
    assert scaledDotProductAttentionJvp([], k, v, [], 1.0, ([], k, v), FLOATS) == []


def test_causal_corners_differ_when_lengths_do() -> None:
    q, k, v = [[0.0], [0.0]], [[0.0]] * 3, [[1.0], [3.0], [8.0]]
    assert paths.causal(q, k, v, 0, 1.0, FLOATS) == [[1.0], [2.0]]
    assert paths.causal(q, k, v, 1, 1.0, FLOATS) == [[2.0], [4.0]]
    assert paths.causal(q, k, v, -1, 1.0, FLOATS) == [[0.0], [1.0]]
