"""The script of a failure on a problem of attention."""

from __future__ import annotations

import numpy as np

from ...adapters.attention import Attention
from ...adapters.recipe import Recipe
from ...spec.contracts import Contract
from ..attention.view import AttentionView, Known
from ..finding import Finding
from ..replay.problems import problem_of
from .literals import array, booleans, exactly, number, numbers
from .verdict import ENTRIES, NOT_NAN

PLACE = {"output": ("forward", ""), "weights": ("forward", "[1]"), "tangent": ("jvp", "")}
PLACE.update({"dq": ("vjp", "[0]"), "dk": ("vjp", "[1]"), "dv": ("vjp", "[2]")})
"""Quantity -> the method that returns it, and where in its answer."""


def of_problem(subject: Attention, recipe: Recipe, f: Finding, rule: Contract) -> tuple[str, str]:
    """The part of the script that judges, and the method that it calls. Raises ValueError, with a sentence."""
    w = f.smallest or f.attention
    if w is None or w.q is None:
        raise ValueError(
            f"The problem of finding {f.id} is too large for a script. Run 'hardmask replay CERTIFICATE {f.id}'."
        )
    if w.quantity not in PLACE or not w.index:
        raise ValueError(
            f"Finding {f.id} compares several answers ({w.quantity}), which one call does not show. "
            f"Run 'hardmask replay CERTIFICATE {f.id}', or take a finding on the values."
        )
    method, place = PLACE[w.quantity]
    if recipe.several and w.quantity == "output":
        place = "[0]"
    p = problem_of(w, f)

    def given(name: str, values: np.ndarray) -> str:
        with np.errstate(all="ignore"):
            flat = values.astype(np.float64).reshape(-1).tolist()
        return f"{name} = {array(recipe, flat, values.shape, f.dtype)}"

    lines = [given(n, x) for n, x in (("q", p.q), ("k", p.k), ("v", p.v))]
    lines.append(f"mask = {booleans(recipe, p.full_mask.reshape(-1).tolist(), p.full_mask.shape)}  # True = allowed")
    arguments = f"q, k, v, mask, {number(p.scale)}"
    if method == "vjp":
        lines.append(given("vector", p.cotangent))
    elif method == "jvp":
        lines += [given(n, x) for n, x in zip(("u", "r", "t"), p.tangents, strict=True)]
        lines.append("vector = (u, r, t)")
    arguments += "" if method == "forward" else ", vector"
    at = tuple(w.index[:-1])
    lines.append(f"returned = {exactly(recipe, f'run({arguments}){place}')}[{', '.join(map(str, at))}]")
    if rule.kind == "nan" and w.quantity == "output" and bool(p.empty[at]):
        return "\n".join([*lines, *NOT_NAN]) + "\n", method
    view = AttentionView(subject, rule, Known(p), frozenset())
    exact = view.known.exact(w.quantity).value[at]  # type: ignore[arg-type]
    budget = view.budget(w.quantity)[at]  # type: ignore[arg-type]
    if not np.all(np.isfinite(exact)):
        raise ValueError(f"Nothing is true of the problem of finding {f.id}: it holds numbers that are not real.")
    lines += [
        f"true = np.array({numbers(np.asarray(exact).tolist())})",
        f"budget, at = np.array({numbers(np.asarray(budget).tolist())}), slice(None)",
        *(line.replace("{budget:.3g}", "{budget}") for line in ENTRIES),
    ]
    return "\n".join(lines) + "\n", method
