"""The accuracy tiers of attention kernels: named rounding models with fixed parameters.

- ``strict``: ``float32`` and ``float64``: every operation in the storage format, materialised softmax.
- ``mixed``: halves: the same in float32, and one rounding to storage at the end.
- ``fused``: contains the former: an online softmax over tiles, exponents in base 2, fast exponentials, weights rebuilt
  from a log-sum-exp; for halves weights and ``dS`` are cast to storage before products, and gradients are added up in
  storage, block by block.
- ``half-ops``: halves: scores, weights and ``dS`` materialised in the half format, sums in float32.
- ``tf32``: ``float32``: ``fused`` with the inputs of products rounded to 11 bits.

For ``float64`` and ``float32``, ``mixed`` and ``half-ops`` mean what ``strict`` means, and ``tf32`` means ``fused`` for
all but ``float32``; for halves ``strict`` means ``mixed``. ``fused`` contains ``strict`` and ``mixed``, ``half-ops``
contains ``mixed``, ``tf32`` contains ``fused``; between ``fused`` and ``half-ops`` neither contains the other.

The parameters leave headroom over what was measured. PyTorch's vectorised ``exp_u20`` is off by 7.7 u at most over all
float32 arguments, and ``fused`` allows 16 u for ``float32``; its exponential for halves is off by ``1.12e-4``, and
``fused`` allows ``1.4e-4``. Its backward pass adds gradients up per block of 32 queries at least, and of 512 keys.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from ..formats import FORMATS, HALVES
from ..rounding.model import FLOAT32, RoundingModel
from ..rounding.tiers import model as softmax_model
from .model import AttentionModel

TIERS: tuple[str, ...] = ("strict", "mixed", "fused", "half-ops", "tf32")
"""From strongest to weakest."""

FAST_EXP = 16.0
"""Error of a fast float32 exponential in u."""

FAST_EXP_HALVES = 1.4e-4 * 2.0**24
"""Error of an exponential that is good enough for halves, in u of float32."""

SMALLEST_TILE = 16
SMALLEST_QUERY_BLOCK = 32
SMALLEST_KEY_BLOCK = 512


@cache
def model(tier: str, dtype: str) -> AttentionModel:
    """The rounding model that a tier means for a storage dtype.

    Raises ValueError for an unknown tier.

    >>> model("fused", "float32").softmax.alpha
    16.0
    """
    if tier not in TIERS:
        raise ValueError(f"There is no accuracy tier '{tier}' of attention. Choose one of: {', '.join(TIERS)}.")
    tier, storage = canonical(tier, dtype), FORMATS[dtype]
    half = dtype in HALVES
    compute = FLOAT32 if half else storage
    plain = RoundingModel(compute, compute, compute, alpha=4.0)
    base = AttentionModel(plain, storage, compute)
    if tier in ("strict", "mixed"):
        return base
    if tier == "half-ops":
        # The half format's own operations; flush as the softmax tier of that name says.
        return replace(base, softmax=softmax_model("half-ops", dtype), intermediate=storage, cast=storage)
    alpha = FAST_EXP_HALVES if half else FAST_EXP if dtype == "float32" else plain.alpha
    online = replace(plain, alpha=alpha, argument="exp2", online=True)
    fused = replace(base, softmax=online, tile=SMALLEST_TILE)
    if half:
        return replace(fused, cast=storage, query_block=SMALLEST_QUERY_BLOCK, key_block=SMALLEST_KEY_BLOCK)
    return replace(fused, inputs=2.0**-11) if tier == "tf32" else fused


def ladder(dtype: str) -> tuple[str, ...]:
    """The tiers that mean different models for a dtype, strongest first.

    >>> ladder("float64"), ladder("float32"), ladder("bfloat16")
    (('strict', 'fused'), ('strict', 'fused', 'tf32'), ('mixed', 'fused', 'half-ops'))
    """
    return tuple(t for t in TIERS if canonical(t, dtype) == t)


def canonical(tier: str, dtype: str) -> str:
    """The usual name of what a tier means for a dtype.

    >>> canonical("half-ops", "float64"), canonical("strict", "bfloat16"), canonical("tf32", "float16")
    ('strict', 'mixed', 'fused')
    """
    if tier == "tf32":
        return "tf32" if dtype == "float32" else "fused"
    if dtype in HALVES:
        return "mixed" if tier == "strict" else tier
    return "fused" if tier == "fused" else "strict"


CONTAINS: dict[str, tuple[str, ...]] = {
    "strict": ("fused", "tf32"),
    "mixed": ("fused", "half-ops"),
    "fused": ("tf32",),
}
"""Tier -> the tiers that admit whatever it admits."""


def weaker(tier: str, dtype: str) -> tuple[str, ...]:
    """The tiers that mean another model for this dtype and admit whatever the given one admits, strongest first.

    >>> weaker("mixed", "bfloat16"), weaker("fused", "float64")
    (('fused', 'half-ops'), ())
    """
    containing = CONTAINS.get(canonical(tier, dtype), ())
    return tuple(t for t in ladder(dtype) if t in containing)
