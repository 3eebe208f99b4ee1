"""The budgets of attention: every correct evaluation stays inside its tier, fine mistakes do not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hardmask.spec.attention.oracle import AttentionTruth
from hardmask.spec.attention.problem import Problem
from hardmask.spec.attention.rounding import QUANTITIES, attention_budget
from hardmask.spec.attention.tiers import TIERS, canonical, ladder, model, weaker
from hardmask.spec.formats import DTYPES, HALVES

from .attention_problems import KINDS, MASKS, half_ops, naive, problem, softmax, tiled

Sizes = tuple[int, int, int, int, int, int, int]

SIZES: tuple[Sizes, ...] = (
    (2, 2, 1, 5, 7, 4, 3),
    (1, 1, 1, 1, 33, 1, 8),
    (2, 2, 2, 3, 1, 4, 4),
    (1, 2, 1, 33, 65, 16, 16),
)


def problems(
    dtype: str, seed: int, sizes: tuple[Sizes, ...] = SIZES, masks: tuple[str, ...] = MASKS
) -> Iterator[Problem]:
    rng = np.random.default_rng(seed)
    for i, (kind, mask) in enumerate(product(KINDS, masks)):
        yield problem(rng, dtype, sizes[i % len(sizes)], kind, mask)


def outside(p: Problem, answers: dict[str, Any], *tiers: str) -> dict[str, set[str]]:
    """Tier -> the quantities of which some entry is off by more than the budget."""
    truth = AttentionTruth(p)
    found: dict[str, set[str]] = {tier: set() for tier in tiers}
    for tier in tiers:
        budget = attention_budget(model(tier, p.dtype), truth)
        for name, answer in answers.items():
            distance, slack = getattr(truth, name).distance(answer)
            if not np.all(distance - slack <= getattr(budget, name)):
                found[tier].add(name)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
def test_materialised_attention_keeps_every_budget(dtype: str) -> None:
    for p in problems(dtype, 1):
        assert outside(p, naive(p), *ladder(dtype)) == {tier: set() for tier in ladder(dtype)}, p.key


@pytest.mark.parametrize("dtype", DTYPES)
def test_online_softmax_keeps_the_fused_budget(dtype: str) -> None:
    for p in problems(dtype, 2):
        with np.errstate(invalid="ignore"):
            answers = tiled(p)
        assert outside(p, answers, "fused") == {"fused": set()}, p.key


@pytest.mark.parametrize("dtype", sorted(HALVES))
def test_attention_in_halves_keeps_the_half_ops_budget_and_no_other(dtype: str) -> None:
    seen = set()
    for p in problems(dtype, 3):
        found = outside(p, half_ops(p), "half-ops", "mixed")
        assert found["half-ops"] == set(), p.key
        seen |= found["mixed"]
    assert seen == {"output", "dq", "dk", "dv", "weights"}


def rounded(kind: Any) -> Callable[[Any], Any]:
    return lambda x: x.astype(kind).astype(x.dtype)


def eleven_bits(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.rint(mantissa * 2048.0) / 2048.0, exponent).astype(x.dtype)


def fast_exp(relative: float) -> Callable[[Any, Any], Any]:
    """A softmax whose exponentials are off by that much, up and down in turns."""

    def inner(s: Any, mask: Any) -> Any:
        w = softmax(s, mask)
        w = (w * (1.0 + relative * np.sign(np.sin(1e3 * s)))).astype(s.dtype)
        total = w.sum(axis=-1, keepdims=True)
        return w / np.where(total > 0, total, total.dtype.type(1))

    return inner


def epsilon(s: Any, mask: Any) -> Any:
    top = np.max(np.where(mask, s, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0).astype(s.dtype)
    e = np.where(mask, np.exp(np.where(mask, s - top, 0)), 0).astype(s.dtype)
    return e / (e.sum(axis=-1, keepdims=True) + s.dtype.type(1e-6))


def uncentred(w: Any, g: Any) -> Any:
    return w * g


MISTAKE_SIZES: tuple[Sizes, ...] = ((2, 1, 1, 16, 33, 16, 16), (1, 1, 1, 4, 9, 8, 8), (2, 1, 1, 4, 4, 8, 8))

ALL = {"output", "dq", "dk", "dv", "jvp"}
TO_BFLOAT16 = rounded(ml_dtypes.bfloat16)

MISTAKES: dict[str, tuple[dict[str, Any], tuple[str, ...], set[str]]] = {
    "a constant in the denominator": ({"softmax": epsilon}, DTYPES[:2], {"output", "dv", "weights"}),
    "exponentials off by 1e-5": ({"softmax": fast_exp(1e-5)}, DTYPES[:2], {*ALL, "weights"}),
    "exponentials off by 1e-3": ({"softmax": fast_exp(1e-3)}, DTYPES[2:], {"output", "dv"}),
    "weights cast to bfloat16": ({"weights": TO_BFLOAT16}, DTYPES[:3], ALL),
    "weights cast to bfloat16 in bfloat16": ({"weights": TO_BFLOAT16}, DTYPES[3:], {"output", "dv", "dk"}),
    "scores rounded to bfloat16": ({"scores": TO_BFLOAT16}, DTYPES, {*ALL, "weights"}),
    "inputs rounded to 11 bits": ({"inputs": eleven_bits}, ("float32",), {"output", "dq", "dk", "dv", "weights"}),
    "no centring": ({"centre": uncentred}, DTYPES, {"dq", "dk", "jvp"}),
    "the scale missing in the backward pass": ({"backward_scale": 3.0}, DTYPES, {"dq", "dk"}),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_fine_mistakes_exceed_the_strongest_budget(name: str) -> None:
    steps, dtypes, expected = MISTAKES[name]
    for dtype in dtypes:
        caught: set[str] = set()
        for p in problems(dtype, 4, MISTAKE_SIZES, ("random", "full")):
            caught |= outside(p, naive(p, **steps), ladder(dtype)[0])[ladder(dtype)[0]]
        assert caught >= expected, f"{name} in {dtype}: only {caught}"


def test_tf32_inputs_need_the_tier_of_that_name() -> None:
    needed = set()
    for p in problems("float32", 5, ((1, 1, 1, 8, 20, 16, 16),)):
        found = outside(p, {k: x for k, x in naive(p, inputs=eleven_bits).items() if k != "jvp"}, "fused", "tf32")
        assert found["tf32"] == set(), p.key
        needed |= found["fused"]
    assert needed >= {"output", "dv"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_containing_tier_has_no_smaller_budget(dtype: str) -> None:
    for p in problems(dtype, 6, ((2, 2, 1, 5, 7, 4, 3), (1, 1, 1, 2, 40, 3, 3))):
        truth = AttentionTruth(p)
        for tier in ladder(dtype):
            budget = attention_budget(model(tier, dtype), truth)
            for other in weaker(tier, dtype):
                wide = attention_budget(model(other, dtype), truth)
                for name in QUANTITIES:
                    narrow = getattr(budget, name)
                    assert np.all(narrow <= getattr(wide, name) * (1.0 + 1e-12)), (p.key, tier, other, name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_computed_has_no_budget(dtype: str) -> None:
    """Empty queries, keys that no query sees and blocked weights are exact in every tier."""
    p = problem(np.random.default_rng(7), dtype, (2, 2, 1, 4, 6, 3, 3), "normal", "empty")
    truth = AttentionTruth(p)
    assert p.empty.any()
    assert p.unseen.any()
    for tier in ladder(dtype):
        budget = attention_budget(model(tier, dtype), truth)
        for name in ("output", "dq", "jvp", "weights"):
            assert not getattr(budget, name)[p.empty].any()
            assert not getattr(truth, name).error[p.empty].any()
            assert (getattr(budget, name)[~p.empty] > 0.0).any()
        for name in ("dk", "dv"):
            assert not getattr(budget, name)[p.unseen].any()
            assert not getattr(truth, name).error[p.unseen].any()
            assert (getattr(budget, name)[~p.unseen] > 0.0).all()
        assert not budget.weights[~p.full_mask].any()


@pytest.mark.parametrize("dtype", DTYPES)
def test_budgets_stay_close_to_the_unit_roundoff(dtype: str) -> None:
    """For ordinary problems with 16 keys the strongest tier allows hundreds of units, in gradients thousands."""
    p = problem(np.random.default_rng(8), dtype, (1, 1, 1, 16, 16, 8, 8), "normal", "full")
    truth = AttentionTruth(p)
    budget = attention_budget(model("strict", dtype), truth)
    for name in QUANTITIES:
        size = np.abs(getattr(truth, name).value).max()
        assert 0.0 < getattr(budget, name).max() <= (4000.0 if name[0] == "d" else 1000.0) * p.format.u * size


def test_the_ladder_names_models_that_differ() -> None:
    for dtype in DTYPES:
        names = ladder(dtype)
        assert len({model(t, dtype) for t in names}) == len(names)
        assert {model(t, dtype) for t in TIERS} == {model(t, dtype) for t in names}
        assert all(canonical(t, dtype) in names for t in TIERS)
    with pytest.raises(ValueError, match="no accuracy tier 'fast' of attention"):
        model("fast", "float32")
