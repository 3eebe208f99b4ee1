"""Recipes are true: run without hardmask, they give what their subjects give, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hardmask.adapters.attention import Attention, AttentionAnswer
from hardmask.adapters.recipe import Recipe
from hardmask.adapters.registry import BUILT_IN, resolve_all
from hardmask.adapters.subject import Answer, Subject
from hardmask.conformance.attention.calls import limit_of, takes
from hardmask.conformance.attention.plan import SMALL, AttentionCase, plan_attention
from hardmask.spec.attention.problem import Problem
from hardmask.spec.formats import FORMATS

SLOW = ("compile", "export", "opset", "flex", "eager")
"""What is compiled or traced anew takes seconds: there one problem, or a dtype, is enough."""


def recipes() -> list[tuple[str, Subject | Attention]]:
    return [(s.id, s) for adapter in BUILT_IN if not adapter.missing for s in adapter.load() if s.recipe is not None]


def arrays(recipe: Recipe, given: Any) -> Any:
    if isinstance(given, tuple):
        return tuple(arrays(recipe, x) for x in given)
    if isinstance(given, float):
        return given
    if recipe.library == "torch":
        from hardmask.adapters.torch_arrays import to_torch

        return to_torch(given)
    if recipe.library == "jax":
        import jax.numpy as jnp

        return jnp.asarray(given)
    return given.copy()


def numbers(recipe: Recipe, found: Any) -> Any:
    if isinstance(found, tuple | list):
        return tuple(numbers(recipe, x) for x in found)
    if recipe.library == "torch":
        from hardmask.adapters.torch_arrays import to_numpy

        return to_numpy(found)
    return np.asarray(found)


def run(recipe: Recipe, method: Any, *given: Any) -> Any:
    space: dict[str, Any] = {}
    before = np.geterr()
    try:
        if recipe.library == "jax":
            from hardmask.adapters.jax_rows import enable_x64

            with enable_x64(True):
                text = recipe.script(method).replace("jax.config.update", "str.format")
                exec(text, space)
                return numbers(recipe, space["run"](*(arrays(recipe, x) for x in given)))
        exec(recipe.script(method), space)
        return numbers(recipe, space["run"](*(arrays(recipe, x) for x in given)))
    finally:
        np.seterr(**before)


def same(a: Any, b: Any) -> None:
    if isinstance(a, tuple):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            same(x, y)
        return
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    wide = [np.asarray(x).astype(np.float64) for x in (a, b)]
    assert np.array_equal(*wide, equal_nan=True)
    assert np.array_equal(*(np.signbit(x[~np.isnan(x)]) for x in wide))


def rows(dtype: str, finite: bool) -> list[Any]:
    rng = np.random.default_rng(5)
    scores, g = rng.normal(size=(2, 12, 5)) * 3.0
    mask = rng.random((12, 5)) < 0.6
    mask[3] = False
    scores[1, 2], mask[1, 2] = (1e4 if finite else np.nan), False
    return [scores.astype(FORMATS[dtype].dtype), mask, g.astype(FORMATS[dtype].dtype)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("id", "subject"), recipes(), ids=[r[0] for r in recipes()])
def test_a_recipe_gives_what_its_subject_gives(id: str, subject: Subject | Attention) -> None:
    recipe = subject.recipe
    assert recipe is not None
    if subject.path == "compile" and subject.opt_in:
        from hardmask.adapters.torch_compiled import no_compiler

        if no_compiler():
            pytest.skip(no_compiler())
    slow = any(word in id for word in SLOW) or bool(getattr(subject, "few_shapes", ""))
    offered = tuple(d for d in subject.dtypes if d not in subject.unsupported)
    dtypes = offered[-1:] if slow else offered
    for dtype in dtypes:
        if isinstance(subject, Subject):
            _rows(subject, recipe, dtype)
        else:
            for problem in _problems(subject, dtype, 1 if slow or subject.few_shapes else 6):
                _problem(subject, recipe, problem)


def forget(subject: Subject | Attention) -> None:
    """Let torch compile anew: a process that has seen other shapes and dtypes may run other code, with other bits."""
    if subject.adapter == "torch" and subject.path == "compile":
        import torch

        torch._dynamo.reset()


def _rows(subject: Subject, recipe: Recipe, dtype: str) -> None:
    scores, mask, vector = rows(dtype, bool(subject.finite_scores))
    for method in subject.methods:
        given = [scores, mask] + ([vector] if method != "forward" else [])
        forget(subject)
        mine = getattr(subject, method)(*(x.copy() for x in given))
        forget(subject)
        same(mine.weights if isinstance(mine, Answer) else mine, run(recipe, method, *given))


def _problems(subject: Attention, dtype: str, most: int) -> list[Problem]:
    cases = [AttentionCase(dtype, SMALL, mask, "plain", 0) for mask in ("full", "all padding")]
    cases += plan_attention("smoke", 0, [dtype])
    found = []
    for case in cases:
        problem = case.build()
        if not limit_of(subject, problem) and takes(subject, problem) and problem.sizes[4]:
            found.append(problem)
    assert found
    with_empty = [p for p in found if p.empty.any()] or found
    return [*with_empty[: max(1, most // 2)], *found[:most]] if most > 1 else with_empty[:1]


def _problem(subject: Attention, recipe: Recipe, p: Problem) -> None:
    mask = np.ascontiguousarray(p.full_mask)
    given = [p.q, p.k, p.v, mask if subject.few_shapes else p.mask, p.scale]
    for method in subject.methods:
        more = {"forward": [], "vjp": [p.cotangent], "jvp": [p.tangents]}[method]
        forget(subject)
        mine = getattr(subject, method)(*given, *more)
        forget(subject)
        theirs = run(recipe, method, *given, *more)
        if isinstance(mine, AttentionAnswer):
            mine = mine.output if mine.weights is None else (mine.output, mine.weights)
        same(mine, theirs)


def test_the_entry_points_of_the_frameworks_have_recipes() -> None:
    ids = {s.id for adapter in BUILT_IN if not adapter.missing for s in adapter.load() if s.role == "entry-point"}
    assert ids
    without = {s for s in ids if resolve_all([s])[0].recipe is None}
    # The encoder layer is read through two layer norms, and the others are long programs.
    allowed = ("torch.transformer_encoder_layer", "torch.sdpa[export]")
    assert {s for s in without if not s.startswith((*allowed, "torch.sdpa[math,compile]"))} == set()
