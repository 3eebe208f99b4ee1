"""Each attention mutant is wrong by more than rounding somewhere; each correct variant nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from hardmask.adapters.attention import Attention
from hardmask.adapters.numpy_attention import attention, attention_jvp, attention_vjp
from hardmask.conformance.attention.calls import AttentionReturned, call_attention
from hardmask.conformance.attention.masks import MASKS
from hardmask.conformance.attention.mutants import (
    AttentionMutant,
    AttentionVariant,
    attention_mutants,
    attention_variants,
)
from hardmask.conformance.attention.plan import AttentionCase
from hardmask.spec.attention.problem import Problem
from hardmask.spec.batch import Floats
from hardmask.spec.formats import DTYPES, FORMATS, HALVES

MUTANTS, VARIANTS = attention_mutants(), attention_variants()
GROUPED = (1, 4, 2, 66, 70, 8, 8)
SQUARE = (2, 2, 2, 7, 7, 4, 4)
WIDE = (1, 2, 1, 5, 40, 16, 3)


def widened(p: Problem, by: float) -> Problem:
    """The problem with larger queries, so that the scores are large."""
    return replace(p, q=(p.wide("q") * by).astype(p.q.dtype))


def poisoned(p: Problem) -> Problem:
    """NaN where nothing may be read: in values that nobody sees, and in the cotangents of empty rows."""
    v, g = p.v.copy(), p.cotangent.copy()
    v[p.unseen], g[p.empty] = np.inf, np.nan
    return replace(p, v=v, cotangent=g)


@cache
def problems(dtype: str) -> tuple[Problem, ...]:
    def case(shape: tuple[int, ...], mask: str, content: str = "plain", scale: float | None = None) -> Problem:
        return AttentionCase(dtype, shape, mask, content, 5, scale=scale).build()  # type: ignore[arg-type]

    found = [case(SQUARE, mask) for mask in MASKS]
    found += [case(GROUPED, mask) for mask in ("random", "first tile blocked", "causal bottom-right", "full")]
    found += [case(GROUPED, "random", content) for content in ("ascending", "descending", "offset")]
    found += [case((2, 2, 1, 1, 70, 4, 4), "random"), case((1, 2, 2, 5, 9, 4, 4), "causal top-left")]
    found += [case(WIDE, "full", scale=0.7), case(WIDE, "random", scale=0.7)]
    found += [widened(case(WIDE, mask), 30.0) for mask in ("random", "left padding")]
    found += [poisoned(case(SQUARE, mask)) for mask in ("padding", "one empty query")]
    single = case((1, 2, 2, 4, 1, 1, 5), "full", "tiny")
    found.append(replace(single, v=np.ones_like(single.v)))
    found.append(case((2, 4, 4, 40, 6, 1, 6), "random", "one-hot"))
    pair = case((1, 1, 1, 1, 2, 1, 2), "full", scale=1.0)
    keys = np.arange(2.0).reshape(1, 1, 2, 1).astype(pair.k.dtype)
    found.append(replace(pair, q=np.ones_like(pair.q), k=keys, v=np.eye(2).reshape(1, 1, 2, 2).astype(pair.v.dtype)))
    flat = case((1, 2, 2, 6, 40, 4, 4), "random")
    steep = np.broadcast_to(np.arange(40.0)[:, None], flat.k.shape)
    for keys in (flat.wide("k") * 0.1 - 20, steep, steep[:, :, ::-1]):
        found.append(replace(flat, q=np.full_like(flat.q, 30), k=keys.astype(flat.k.dtype)))
    hidden = case((1, 2, 2, 6, 40, 4, 4), "padding")
    bright = np.where(hidden.unseen[..., None], 100.0, hidden.wide("k") * 0.1)
    found.append(replace(hidden, q=np.full_like(hidden.q, 30), k=bright.astype(hidden.k.dtype)))
    return tuple(found)


@cache
def truths(dtype: str) -> tuple[dict[str, Floats], ...]:
    """Output, gradients and tangent of every problem, in float64."""
    found = []
    for p in problems(dtype):
        q, k, v, g = (p.wide(name) for name in ("q", "k", "v", "cotangent"))
        tangents = tuple(t.astype(np.float64) for t in p.tangents)
        dq, dk, dv = attention_vjp(q, k, v, p.mask, p.scale, g)
        tangent = attention_jvp(q, k, v, p.mask, p.scale, tangents)  # type: ignore[arg-type]
        output = attention(q, k, v, p.mask, p.scale).output
        found.append({"output": output, "dq": dq, "dk": dk, "dv": dv, "tangent": tangent})
    return tuple(found)


def half_a_step(values: Floats, dtype: str) -> Floats:
    """Half the distance between two numbers of the format at each value."""
    storage = FORMATS[dtype]
    _, exponent = np.frexp(np.abs(values))
    return np.maximum(np.ldexp(1.0, exponent - 1 - storage.precision), storage.eta / 2)


def allowance(p: Problem, truth: dict[str, Floats], fused: bool) -> dict[str, Floats]:
    """One rounding to storage of every entry, and what float32 or float64 lose on the way to the largest."""
    inside = FORMATS["float32" if p.dtype in HALVES else p.dtype]

    def largest(x: Floats) -> float:
        return float(np.abs(x[np.isfinite(x)]).max(initial=0))

    q, k, v, g = (largest(p.wide(name)) for name in ("q", "k", "v", "cotangent"))
    moved = max(largest(t.astype(np.float64)) for t in p.tangents)
    lost = 4 * inside.u * (1 + q * k * p.sizes[5] * p.scale)
    if fused and p.dtype in HALVES:
        lost += 4 * FORMATS[p.dtype].u
    wide = 8 * max(1, q, k) * max(1, v)
    sizes = {"output": v, "dv": 8 * g, "dq": wide * g, "dk": wide * g, "tangent": wide * moved}
    return {name: 1.001 * half_a_step(t, p.dtype) + lost * sizes[name] for name, t in truth.items()}


def violations(subject: Attention, dtype: str) -> Iterator[str]:
    for p, truth in zip(problems(dtype), truths(dtype), strict=True):
        within = allowance(p, truth, subject.tier_for("forward", dtype) == "fused")
        for method in subject.methods:
            answer = call_attention(subject, method, p)
            if not isinstance(answer, AttentionReturned):
                yield f"{p.key}: {answer.sentence}"
                continue
            for name in answer.raw:
                values = answer.values(name)
                with np.errstate(all="ignore"):
                    far = ~(np.abs(values - truth[name]) <= within[name])
                if far.any():
                    worst = np.nanmax(np.abs(values - truth[name]) / within[name])
                    yield f"{p.key}: {name} at {far.sum()} of {far.size} entries, up to {worst:.3g}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_a_mutant_is_wrong_by_more_than_rounding(mutant: AttentionMutant) -> None:
    """By a crude measure, in one dtype at least; which theorem catches it in which dtype is on the kill table."""
    assert mutant.caught
    assert any(next(violations(mutant.subject, dtype), None) is not None for dtype in mutant.caught)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_a_variant_is_right_everywhere(variant: AttentionVariant) -> None:
    wrong = {dtype: found for dtype in variant.subject.dtypes if (found := list(violations(variant.subject, dtype)))}
    assert not wrong


def test_names_are_unique_and_stories_are_sentences() -> None:
    names = [x.name for x in (*MUTANTS, *VARIANTS)]
    assert len(set(names)) == len(names)
    assert all(x.story.endswith(".") for x in (*MUTANTS, *VARIANTS))
    assert {dtype for m in MUTANTS for dtype in m.caught} == set(DTYPES)


def test_a_record_refuses_what_it_cannot_mean() -> None:
    one = MUTANTS[0]
    with pytest.raises(ValueError, match="has the id"):
        replace(one, name="other")
    with pytest.raises(ValueError, match="has the kind 'Z'"):
        replace(one, kind="Z")
    with pytest.raises(ValueError, match="survives in float8"):
        replace(one, survivors={"float8": "Nobody has it."})
