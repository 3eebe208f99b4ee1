"""The fast engines on trial: rows of a batch, recomputed by the referee, against the error that the engine states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..batch import Batch, Bools, Floats
from .exact import Engine, Exact
from .libraries import Library, Name, library
from .referee import START, along, exceeding, row

Codes = npt.NDArray[np.int64]
Claim = tuple[Exact, Floats | None]
"""What an engine says of every row: the weights, or with vectors the derivatives along them."""


@dataclass(frozen=True)
class Audit:
    """How many rows and entries were recomputed, and how many entries lie outside what the engine states for them.

    ``share``: the largest part of a stated error that an entry inside used. ``row``: the first row that holds an entry
    outside, None where all are inside. The engine passes if nothing is outside.
    """

    rows: int = 0
    checked: int = 0
    outside: int = 0
    share: float = 0.0
    row: int | None = None

    def __add__(self, other: Audit) -> Audit:
        """Both together; of rows at fault, the first."""
        return Audit(
            self.rows + other.rows,
            self.checked + other.checked,
            self.outside + other.outside,
            max(self.share, other.share),
            self.row if self.row is not None else other.row,
        )


def audit(engine: Engine, batch: Batch, sample: int, rng: np.random.Generator, *, lib: Name | None = None) -> Audit:
    """Recompute up to ``sample`` random rows of a batch: weights, and the derivative along cotangents and tangents.

    Only rows whose allowed scores are all real are drawn.
    """
    mask = batch.mask & batch.real[:, None]
    weights = engine.weights(batch.scores64, mask)
    vectors = [v.astype(np.float64) for v in (batch.cotangents, batch.tangents)]
    claims: list[Claim] = [(weights.weights, None), *((engine.derivative(weights, v), v) for v in vectors)]
    return audit_rows(batch.scores64, mask, claims, draw(batch, sample, rng), lib=lib)


def draw(batch: Batch, sample: int, rng: np.random.Generator) -> Codes:
    """Up to ``sample`` random rows that meet the theorems' hypotheses, in ascending order."""
    real = np.flatnonzero(batch.real)
    return np.sort(rng.choice(real, size=min(sample, len(real)), replace=False))


def audit_rows(scores: Floats, mask: Bools, claims: Sequence[Claim], rows: Codes, *, lib: Name | None = None) -> Audit:
    """Recompute the given rows and hold what an engine claimed of them against the result.

    ``scores`` and ``mask`` have shape ``(R, n)``, and so has every part of a claim; ``scores`` are float64, exact, and
    finite where allowed. An entry exactly on the edge of its stated error is inside; NaN is outside.
    """
    real = library(lib)
    outside, share, first = 0, 0.0, None
    for r in rows.tolist():
        vectors = [None if v is None else v[r].tolist() for _, v in claims]
        line, allowed = scores[r].tolist(), mask[r].tolist()
        with real.precision(START):
            weights = row(real, line, allowed)
            truths = [weights if v is None else along(real, weights, allowed, v) for v in vectors]
            verdicts = [
                _compare(real, true, Exact(claim.value[r], claim.low[r], claim.error[r]))
                for true, (claim, _) in zip(truths, claims, strict=True)
            ]
        wrong = 0
        for (bad, doubtful, used), (claim, _), vector in zip(verdicts, claims, vectors, strict=True):
            share = max(share, used)
            value, low, error = (part[r, doubtful].tolist() for part in (claim.value, claim.low, claim.error))
            wrong += bad + sum(exceeding(line, allowed, doubtful, value, error, vector, low=low, lib=lib))
        outside += wrong
        if wrong and first is None:
            first = r
    return Audit(len(rows), len(claims) * len(rows) * mask.shape[1], outside, share, first)


def _compare(real: Library, true: list[object], claim: Exact) -> tuple[int, list[int], float]:
    """For one row: how many entries are certainly outside, which are open at this precision, the largest share used."""
    numbers = np.isfinite(claim.value) & np.isfinite(claim.low) & ~np.isnan(claim.error)
    bad, doubtful, share = int((~numbers).sum()), [], 0.0
    closed = np.flatnonzero(numbers & ~np.isinf(claim.error))  # an infinite error claims nothing
    parts = (part[closed].tolist() for part in (claim.value, claim.low, claim.error))
    for i, value, low, error in zip(closed.tolist(), *parts, strict=True):
        distance = abs(true[i] - real.number(value) - real.number(low))
        limit = real.number(error)
        if distance > limit:
            bad += 1
        elif not distance <= limit:
            doubtful.append(i)
        elif error:
            share = max(share, min(1.0, real.rough(distance / limit)))
    return bad, doubtful, share
