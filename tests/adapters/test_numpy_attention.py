"""The NumPy references of attention against the definitions, run head by head in float64, and what they promise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.attention import Attention, AttentionAnswer
from hardmask.adapters.numpy_attention import subjects
from hardmask.adapters.numpy_tiled import Tiled, tiled
from hardmask.conformance.attention.calls import AttentionReturned, call_attention, takes
from hardmask.conformance.attention.contents import CONTENTS
from hardmask.conformance.attention.masks import MASKS
from hardmask.conformance.attention.plan import NO_KEYS, NO_QUERIES, VALUES, AttentionCase
from hardmask.spec.arithmetic import Arithmetic
from hardmask.spec.attention.definitions import (
    scaledDotProductAttention,
    scaledDotProductAttentionBackward,
    scaledDotProductAttentionJvp,
)
from hardmask.spec.attention.problem import Problem
from hardmask.spec.formats import DTYPES, FORMATS

FLOATS = Arithmetic("float", math.exp, 0.0)
MIXED = (2, 4, 2, 7, 11, 3, 5)
EDGES = (NO_KEYS, NO_QUERIES, VALUES, (0, 2, 1, 3, 4, 2, 2), (1, 2, 1, 3, 4, 2, 0), (2, 2, 2, 3, 4, 0, 2))

EVERY = [
    *subjects(),
    *(tiled(size) for size in (1, 5)),
    Attention("numpy.lse", Tiled(3, lse=True).forward, Tiled(3, lse=True).vjp, Tiled(3, lse=True).jvp, dtypes=DTYPES),
]
FULL = [s for s in EVERY if s.encoding == "boolean"]


def named(subject: Attention) -> str:
    return subject.id


def definitions(p: Problem) -> dict[str, Any]:
    """Output, dq, dk, dv and tangent of a problem, by the definitions."""
    batch, heads, groups, queries, _, _, value_width = p.sizes
    q, k, v, g = (p.wide(name) for name in ("q", "k", "v", "cotangent"))
    tq, tk, tv = (t.astype(np.float64) for t in p.tangents)
    found = {
        "output": np.zeros((batch, heads, queries, value_width)),
        "dq": np.zeros(q.shape),
        "dk": np.zeros(k.shape),
        "dv": np.zeros(v.shape),
        "tangent": np.zeros((batch, heads, queries, value_width)),
    }

    def put(into: np.ndarray, rows: list[list[float]]) -> None:
        into += np.reshape(rows, into.shape) if into.size and np.size(rows) else 0

    for b in range(batch):
        for h in range(heads):
            r = h // (heads // groups)
            one = (q[b, h].tolist(), k[b, r].tolist(), v[b, r].tolist(), p.full_mask[b, h].tolist(), p.scale)
            put(found["output"][b, h], scaledDotProductAttention(*one, FLOATS))
            backward = scaledDotProductAttentionBackward(*one, g[b, h].tolist(), FLOATS)
            for name, at, rows in zip(("dq", "dk", "dv"), ((b, h), (b, r), (b, r)), backward, strict=True):
                put(found[name][at], rows)
            moved = (tq[b, h].tolist(), tk[b, r].tolist(), tv[b, r].tolist())
            put(found["tangent"][b, h], scaledDotProductAttentionJvp(*one, moved, FLOATS))
    return found


def returned(subject: Attention, p: Problem) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for method in subject.methods:
        answer = call_attention(subject, method, p)
        assert isinstance(answer, AttentionReturned), answer
        found.update({name: answer.values(name) for name in answer.raw})
    return found


def agree(subject: Attention, p: Problem, steps: float) -> None:
    truth = definitions(p)
    for name, values in returned(subject, p).items():
        size = max(1.0, float(np.abs(truth[name]).max(initial=0)))
        far = float(np.abs(values - truth[name]).max(initial=0))
        assert far <= steps * FORMATS[p.dtype].u * size, (subject.id, p.key, name, far, size)


@pytest.mark.parametrize("subject", FULL, ids=named)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_definitions_are_met_under_every_mask(subject: Attention, dtype: str) -> None:
    for seed, mask in enumerate(MASKS):
        p = AttentionCase(dtype, MIXED, mask, "plain", seed).build()
        agree(subject, p, 60)


@pytest.mark.parametrize("subject", FULL, ids=named)
def test_the_definitions_are_met_for_every_content_and_layout(subject: Attention) -> None:
    for seed, content in enumerate(CONTENTS):
        if content == "poison":
            continue
        for layout in ("transposed", "expanded"):
            p = AttentionCase("float64", MIXED, "random", content, seed, layout=layout).build()
            size = 1 + np.abs(p.scale) * np.abs(p.q).max() * np.abs(p.k).max() * p.sizes[5] * np.abs(p.v).max()
            agree(subject, p, 60 * size)


@pytest.mark.parametrize("subject", FULL, ids=named)
@pytest.mark.parametrize("shape", EDGES, ids=str)
def test_lengths_of_zero_are_taken(subject: Attention, shape: Any) -> None:
    agree(subject, AttentionCase("float32", shape, "full", "plain", 1).build(), 60)


@pytest.mark.parametrize("subject", [s for s in EVERY if s.encoding in ("lengths", "causal")], ids=named)
def test_other_encodings_compute_the_same_numbers(subject: Attention) -> None:
    plain = FULL[0]
    met = 0
    for mask in MASKS:
        p = AttentionCase("float32", MIXED, mask, "plain", 2).build()
        if takes(subject, p):
            met += 1
            mine, its = returned(subject, p), returned(plain, p)
            assert all(np.array_equal(mine[name], its[name]) for name in its)
    assert met


def test_the_additive_form_is_right_where_keys_are_allowed_and_nan_elsewhere() -> None:
    additive = next(s for s in EVERY if s.id == "numpy.attention[-inf]")
    p = AttentionCase("float64", MIXED, "one empty query", "plain", 3).build()
    assert p.empty.any()
    values = returned(additive, p)["output"]
    assert np.isnan(values[p.empty]).all()
    assert np.abs(values - definitions(p)["output"])[~p.empty].max() < 1e-13


@pytest.mark.parametrize("subject", [s for s in FULL if s.role == "reference"], ids=named)
def test_an_empty_query_is_flagged_and_zero(subject: Attention) -> None:
    p = AttentionCase("float32", MIXED, "one empty query", "plain", 3).build()
    answer = subject.forward(p.q, p.k, p.v, p.mask, p.scale)
    assert isinstance(answer, AttentionAnswer)
    assert answer.valid is not None
    assert np.array_equal(answer.valid, ~p.empty)
    assert (answer.output[p.empty] == 0).all()


def poisoned(p: Problem) -> Problem:
    """NaN and infinity where nothing may read them: keys that are never seen, and queries without a key."""
    q, k, v, g = (a.copy() for a in (p.q, p.k, p.v, p.cotangent))
    tangents = tuple(t.copy() for t in p.tangents)
    k[p.unseen], v[p.unseen] = np.nan, np.inf
    tangents[1][p.unseen], tangents[2][p.unseen] = -np.inf, np.nan
    q[p.empty], g[p.empty], tangents[0][p.empty] = np.inf, np.nan, np.nan
    return replace(p, q=q, k=k, v=v, cotangent=g, tangents=tangents)  # type: ignore[arg-type]


@pytest.mark.parametrize("subject", [s for s in FULL if "isolation" in s.promises], ids=named)
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_blocked_everywhere_is_not_read(subject: Attention, dtype: str) -> None:
    for mask in ("padding", "one empty query", "left padding", "causal bottom-right"):
        p = AttentionCase(dtype, (2, 4, 2, 7, 6, 3, 5), mask, "plain", 4).build()
        clean, dirty = returned(subject, p), returned(subject, poisoned(p))
        assert all(np.array_equal(clean[name], dirty[name]) for name in clean)


@pytest.mark.parametrize("subject", [s for s in FULL if "isolation" in s.promises], ids=named)
def test_a_key_that_is_blocked_for_some_queries_reaches_only_the_others(subject: Attention) -> None:
    p = AttentionCase("float32", (1, 1, 1, 6, 6, 4, 4), "causal top-left", "plain", 5).build()
    for name, value in (("k", np.nan), ("v", np.nan), ("v", np.inf)):
        array = getattr(p, name).copy()
        array[0, 0, 3] = value
        dirty = returned(subject, replace(p, **{name: array}))
        clean = returned(subject, p)
        for kind in ("output", "dq", "tangent"):
            assert np.array_equal(dirty[kind][:, :, :3], clean[kind][:, :, :3]), (name, kind)
        assert not np.isfinite(dirty["output"][:, :, 3:]).any()


def test_a_nan_in_an_allowed_query_reaches_its_row_and_the_keys_that_it_sees() -> None:
    for subject in (s for s in FULL if "allowed-nan-visible" in s.promises):
        p = AttentionCase("float64", (1, 1, 1, 6, 6, 4, 4), "causal top-left", "plain", 6).build()
        q = p.q.copy()
        q[0, 0, 2] = np.nan
        found = returned(subject, replace(p, q=q))
        assert np.isnan(found["output"][0, 0, 2]).all()
        assert np.isfinite(np.delete(found["output"][0, 0], 2, axis=0)).all()
        assert np.isnan(found["dk"][0, 0, :3]).all()
        assert np.isfinite(found["dk"][0, 0, 3:]).all()
        assert np.isnan(found["dv"][0, 0, :3]).all()
        assert np.isfinite(found["dv"][0, 0, 3:]).all()


def test_a_tile_holds_at_least_one_key() -> None:
    with pytest.raises(ValueError, match="holds none"):
        tiled(0)
