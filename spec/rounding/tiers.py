"""The accuracy tiers: named rounding models with fixed parameters, from strongest to weakest.

| tier | meaning |
|---|---|
| ``strict`` | every operation in the storage format, stable shift |
| ``mixed`` | halves: float32 compute, one rounding to storage |
| ``mixed-2`` | halves: float32 compute, numerators rounded to storage too |
| ``half-ops`` | halves: every elementwise operation rounded to the half format, sums accumulated in float32 |

``float64`` and ``float32`` have one model, ``strict``, under each of these names; the strongest model of a half is
``mixed``.

The parameters leave headroom for other instruction sets: the largest error of exp measured over all float32 arguments
is 3.57 u (NumPy), over sampled float64 arguments 2.36 u (XLA), and ``strict`` allows 4 u (2 ulp).
"""

from __future__ import annotations

from functools import cache

from ..formats import FORMATS, HALVES
from .model import FLOAT32, RoundingModel

TIERS: tuple[str, ...] = ("strict", "mixed", "mixed-2", "half-ops")
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
    if dtype not in HALVES:
        return RoundingModel(storage, storage, storage, alpha=4.0)
    if tier == "half-ops":
        # float16 results were never seen flushed; bfloat16 has the exponents of float32, which XLA flushes.
        return RoundingModel(storage, storage, FLOAT32, alpha=2.0, flush=dtype == "bfloat16")
    return RoundingModel(FLOAT32, storage, FLOAT32, alpha=4.0, cast_numerators=tier == "mixed-2")


def weaker(tier: str, dtype: str) -> tuple[str, ...]:
    """The tiers weaker than the given one that mean another model for this dtype, strongest first.

    >>> weaker("mixed", "bfloat16")
    ('mixed-2', 'half-ops')
    >>> weaker("strict", "float32")
    ()
    """
    later = TIERS[TIERS.index(tier) + 1 :]
    return tuple(t for t in later if model(t, dtype) != model(tier, dtype))
