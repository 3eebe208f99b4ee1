"""The fast engines on trial: random rows, recomputed by the referee."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..batch import Batch, Bools, Floats
from .exact import Engine, Exact
from .libraries import Name
from .referee import exceeding


@dataclass(frozen=True)
class Audit:
    """How many entries were recomputed, and how many lie outside the enclosure that the engine claims for them."""

    checked: int
    outside: int


def audit(engine: Engine, batch: Batch, sample: int, rng: np.random.Generator, *, lib: Name | None = None) -> Audit:
    """Recompute up to ``sample`` random rows of a batch: weights, and the derivative along cotangents and tangents.

    Only rows whose allowed scores are all real are drawn. The engine passes if nothing is outside.
    """
    real_rows = np.flatnonzero(batch.real)
    drawn = rng.choice(real_rows, size=min(sample, len(real_rows)), replace=False)
    scores, mask = batch.scores64[drawn], batch.mask[drawn]
    weights = engine.weights(scores, mask)
    claims: list[tuple[Exact, Floats | None]] = [(weights.weights, None)]
    for vectors in (batch.cotangents, batch.tangents):
        vector = vectors[drawn].astype(np.float64)
        claims.append((engine.derivative(weights, vector), vector))
    outside = 0
    for exact, vectors64 in claims:
        for r in range(len(drawn)):
            claim = Exact(exact.value[r], exact.low[r], exact.error[r])
            outside += _outside(scores[r], mask[r], None if vectors64 is None else vectors64[r], claim, lib)
    return Audit(checked=len(claims) * mask.size, outside=outside)


def _outside(scores: Floats, mask: Bools, vector: Floats | None, claim: Exact, lib: Name | None) -> int:
    """How many entries of one row are certainly outside; one exactly on the edge is inside, NaN is outside."""
    numbers = np.isfinite(claim.value) & np.isfinite(claim.low) & ~np.isnan(claim.error)
    open_ended = np.isinf(claim.error)  # claims nothing
    indices = np.flatnonzero(numbers & ~open_ended)
    value, low, error = (part[indices].tolist() for part in (claim.value, claim.low, claim.error))
    along = None if vector is None else vector.tolist()
    wrong = exceeding(scores.tolist(), mask.tolist(), indices.tolist(), value, error, along, low=low, lib=lib)
    return int((~numbers).sum()) + sum(wrong)
