"""Rounding models beyond the tiers: a tier with some fields changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..formats import FORMATS, HALVES
from .model import RoundingModel
from .tiers import model

CHANGEABLE: dict[str, type | tuple[type, ...]] = {
    "alpha": (int, float),
    "divisions": int,
    "flush": bool,
    "cast_numerators": bool,
    "composed": bool,
    "argument": str,
    "online": bool,
    "accumulate": str,
}
"""Fields of a rounding model that a subject may change, with the types of their values."""

ARGUMENTS = ("shift", "exp2", "lse")
"""From strongest to weakest; each contains the one before it."""

LARGEST_ALPHA = 1e6
"""exp with an error of so many u is no exp in any of the formats."""


def customised(tier: str, dtype: str, changes: Mapping[str, Any]) -> RoundingModel:
    """The model of a tier with some fields changed; ``accumulate`` is given by the name of a format.

    Raises ValueError, with a sentence, for a field that cannot be changed or a value that it cannot take.

    >>> customised("strict", "float32", {"alpha": 20}).alpha
    20.0
    """
    made: dict[str, Any] = {}
    for name, value in changes.items():
        kind = CHANGEABLE.get(name)
        if kind is None:
            raise ValueError(
                f"A rounding model has no field '{name}' that could be changed. Choose from: {', '.join(CHANGEABLE)}."
            )
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"The field '{name}' of a rounding model cannot be {value!r}.")
        made[name] = value
    if "alpha" in made and not 0.0 <= made["alpha"] <= LARGEST_ALPHA:
        raise ValueError(f"alpha is the error of exp in u, from 0 to {LARGEST_ALPHA:.0e}; {made['alpha']} is not.")
    if "alpha" in made:
        made["alpha"] = float(made["alpha"])
    if "divisions" in made and made["divisions"] not in (1, 2):
        raise ValueError(f"divisions is 1 (divide) or 2 (multiply by a reciprocal); {made['divisions']} is neither.")
    if "argument" in made and made["argument"] not in ARGUMENTS:
        raise ValueError(f"There is no argument '{made['argument']}'. Choose from: {', '.join(ARGUMENTS)}.")
    if "accumulate" in made:
        if made["accumulate"] not in FORMATS:
            raise ValueError(f"There is no format '{made['accumulate']}'. Choose from: {', '.join(FORMATS)}.")
        made["accumulate"] = FORMATS[made["accumulate"]]
    base = model(tier, dtype)
    if made.get("cast_numerators") and dtype not in HALVES:
        raise ValueError(f"Only halves may cast their numerators; {dtype} is stored as it is computed.")
    return replace(base, **made)


def widens(changed: RoundingModel, base: RoundingModel) -> bool:
    """Whether a changed model admits errors that the model it was made from does not.

    >>> base = model("strict", "float32")
    >>> widens(replace(base, alpha=20.0), base), widens(replace(base, alpha=1.0), base)
    (True, False)
    """
    return (
        changed.alpha > base.alpha
        or changed.divisions > base.divisions
        or changed.flush > base.flush
        or changed.cast_numerators > base.cast_numerators
        or changed.composed > base.composed
        or changed.online > base.online
        or ARGUMENTS.index(changed.argument) > ARGUMENTS.index(base.argument)
        or changed.accumulate.u > base.accumulate.u
        or changed.accumulate.emin > base.accumulate.emin
    )
