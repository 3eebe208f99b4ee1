"""The audit of the oracle in every run: random rows of every batch, recomputed by the referee."""

from __future__ import annotations

import zlib

import numpy as np

from ..spec.oracle.audit import Audit, Claim, audit_rows, draw
from ..spec.oracle.referee import engine_name
from .suite_fault import SuiteFault
from .truth import SIDES, Truth

SHARE = 100
"""One row in so many is recomputed, rounded up for each batch."""

SLOW = 2
"""Rows per batch where the referee computes with mpmath, which takes fourteen times as long as python-flint."""


def audited(truth: Truth, seed: int, derivatives: bool) -> Audit:
    """Recompute random rows of a batch and hold the truth that subjects will be judged by against the result.

    The weights of those rows, and with ``derivatives`` their derivatives along cotangents and tangents. The rows are
    those that the seed and the name of the batch give.

    Raises SuiteFault when an entry lies outside the error that the oracle states for it.
    """
    batch = truth.batch
    sample = -(-batch.shape[0] // SHARE)
    if engine_name() == "mpmath":
        sample = min(sample, SLOW)
    claims: list[Claim] = [(truth.weights.weights, None)]
    if derivatives:
        claims += [(truth.derivative(side), truth.vectors[side]) for side in SIDES]
    rng = np.random.default_rng((seed, zlib.crc32(batch.key.encode()), SHARE))
    found = audit_rows(batch.scores64, truth.mask, claims, draw(batch, sample, rng))
    if found.outside:
        raise SuiteFault(
            f"The oracle states an error that it does not keep ({batch.key}, row {found.row}): the referee puts "
            f"{found.outside} of {found.checked} audited entries outside. Please report this as a fault of hardmask."
        )
    return found
