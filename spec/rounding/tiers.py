"""The accuracy tiers: named rounding models with fixed parameters, from strongest to weakest.

| tier | meaning |
|---|---|
| ``strict`` | every operation in the storage format, stable shift |
| ``mixed`` | halves: float32 compute, one rounding to storage |
| ``exp2`` | the same, with exponents in base 2: their error grows with the size of the scores |
| ``online`` | the same, and numerators and sums may be rescaled whenever a running maximum grows |
| ``lse`` | the same, and weights may be rebuilt as ``exp(s - log-sum-exp)``, without a division |
| ``mixed-2`` | halves: float32 compute, numerators rounded to storage too |
| ``half-ops`` | halves: every elementwise operation rounded to the half format, sums accumulated in float32 |

For ``float64`` and ``float32``, ``mixed``, ``mixed-2`` and ``half-ops`` mean what ``strict`` means; for the halves
``strict`` means ``mixed``. ``exp2``, ``online`` and ``lse`` contain each other in this order, and contain ``strict`` or
``mixed``. Between these three and ``mixed-2`` or ``half-ops`` neither contains the other: the errors of the first three
grow with the scores, those of the others are those of the half format.

The parameters leave headroom for other instruction sets: the largest error of exp measured over all float32 arguments
is 3.57 u (NumPy), over sampled float64 arguments 2.36 u (XLA), and ``strict`` allows 4 u (2 ulp).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ..formats import FORMATS, HALVES
from .model import FLOAT32, Argument, RoundingModel

TIERS: tuple[str, ...] = ("strict", "mixed", "exp2", "online", "lse", "mixed-2", "half-ops")
"""From strongest to weakest."""


@cache
def model(tier: str, dtype: str) -> RoundingModel:
    """The rounding model that a tier means for a storage dtype.

    Raises ValueError for an unknown tier.

    >>> model("mixed", "float16").compute.name
    'float32'
    """
    if tier not in TIERS:
        raise ValueError(f"There is no accuracy tier '{tier}'. Choose one of: {', '.join(TIERS)}.")
    storage = FORMATS[dtype]
    if tier in ("exp2", "online", "lse"):
        argument: Argument = "lse" if tier == "lse" else "exp2"
        return replace(model("mixed", dtype), argument=argument, online=tier != "exp2")
    if dtype not in HALVES:
        return RoundingModel(storage, storage, storage, alpha=4.0)
    if tier == "half-ops":
        # float16 results were never seen flushed; bfloat16 has the exponents of float32, which XLA flushes.
        return RoundingModel(storage, storage, FLOAT32, alpha=2.0, flush=dtype == "bfloat16")
    return RoundingModel(FLOAT32, storage, FLOAT32, alpha=4.0, cast_numerators=tier == "mixed-2")


def ladder(dtype: str) -> tuple[str, ...]:
    """The tiers that mean different models for a dtype, strongest first.

    >>> ladder("float32")
    ('strict', 'exp2', 'online', 'lse')
    >>> ladder("float16")
    ('mixed', 'exp2', 'online', 'lse', 'mixed-2', 'half-ops')
    """
    return tuple(canonical(t, dtype) for t in TIERS if canonical(t, dtype) == t)


def canonical(tier: str, dtype: str) -> str:
    """The usual name of what a tier means for a dtype: of equal models, ``mixed`` for halves, else the first.

    >>> canonical("half-ops", "float64"), canonical("strict", "bfloat16")
    ('strict', 'mixed')
    """
    if dtype in HALVES:
        return "mixed" if tier == "strict" else tier
    return tier if tier in ("exp2", "online", "lse") else "strict"


CONTAINS: dict[str, tuple[str, ...]] = {
    "strict": ("exp2", "online", "lse"),
    "mixed": ("exp2", "online", "lse", "mixed-2", "half-ops"),
    "exp2": ("online", "lse"),
    "online": ("lse",),
    "mixed-2": ("half-ops",),
}
"""Tier -> the tiers that admit whatever it admits."""


def weaker(tier: str, dtype: str) -> tuple[str, ...]:
    """The tiers that mean another model for this dtype and admit whatever the given one admits, strongest first.

    >>> weaker("mixed-2", "bfloat16"), weaker("exp2", "bfloat16")
    (('half-ops',), ('online', 'lse'))
    >>> weaker("lse", "float32")
    ()
    """
    containing = CONTAINS.get(canonical(tier, dtype), ())
    return tuple(t for t in ladder(dtype) if t in containing)
