"""Numbers and arrays as Python source that gives back the same bits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...adapters.recipe import MODULE, Recipe

LONGEST = 8
"""Digits of a decimal that is still easier to read than a hexadecimal float."""


def number(x: float) -> str:
    """The shortest exact source of a float; NaN and infinities as NumPy calls them.

    >>> number(0.5), number(float("-inf")), number(0.1)
    ('0.5', '-np.inf', '0.1')
    >>> number(0.30000001192092896)
    "float.fromhex('0x1.3333340000000p-2')"
    """
    if x != x:
        return "np.nan"
    if x in (float("inf"), float("-inf")):
        return "np.inf" if x > 0 else "-np.inf"
    short = repr(x)
    digits = sum(c.isdigit() for c in short.partition("e")[0])
    return short if digits <= LONGEST else f"float.fromhex({x.hex()!r})"


def numbers(values: Iterable[float]) -> str:
    """A list of numbers."""
    return f"[{', '.join(number(x) for x in values)}]"


def dtype_of(recipe: Recipe, dtype: str) -> str:
    """The dtype in the library of a recipe; NumPy has its bfloat16 from ml_dtypes."""
    if recipe.library == "numpy" and dtype == "bfloat16":
        return "ml_dtypes.bfloat16"
    return f"{MODULE[recipe.library]}.{dtype}"


def array(recipe: Recipe, values: Sequence[float], shape: Sequence[int], dtype: str) -> str:
    """An array of the library of a recipe."""
    maker = {"numpy": "np.array", "torch": "torch.tensor", "jax": "jnp.array"}[recipe.library]
    return f"{maker}({numbers(values)}, dtype={dtype_of(recipe, dtype)}).reshape({tuple(shape)})"


def booleans(recipe: Recipe, values: Sequence[bool], shape: Sequence[int]) -> str:
    """A Boolean array of the library of a recipe."""
    maker = {"numpy": "np.array", "torch": "torch.tensor", "jax": "jnp.array"}[recipe.library]
    kind = {"numpy": "bool", "torch": "torch.bool", "jax": "bool"}[recipe.library]
    return f"{maker}({list(values)}, dtype={kind}).reshape({tuple(shape)})"


def exactly(recipe: Recipe, expression: str) -> str:
    """The source that turns an array of the library into float64 of NumPy."""
    if recipe.library == "torch":
        return f"{expression}.detach().double().numpy()"
    return f"np.asarray({expression}).astype(np.float64)"
