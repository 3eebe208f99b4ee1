"""``weights``: the only row that is zero where blocked, has the right ratios, and sums to 1 (or is all zero)."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import (
    controls,
    weights_doubled,
    weights_leaking,
    weights_remasked,
    weights_uniform_when_empty,
    weights_without_empty_branch,
)

DECLARATION = declare(
    "weights",
    statement="w_i = N_i / D; the zero row when no key is allowed.",
    plain="The attention weights are not the softmax of the allowed scores.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Support, ratios and sum."""
    w = d.weights(row.mask, row.x, row.ar)
    for i, allowed in enumerate(row.mask):
        if not allowed:
            yield Equal(f"w[{i}] = 0 at a blocked key", w[i], row.ar.zero, relative=True)
    if not row.allowed:
        return
    first = row.allowed[0]
    for i in row.allowed[1:]:
        left, right = w[i] * row.ar.exp(row.x[first]), w[first] * row.ar.exp(row.x[i])
        yield Equal(f"w[{i}] / w[{first}] = exp(x[{i}] - x[{first}])", left, right, relative=True)
    yield Equal("sum w = 1", row.total(w), row.ar.zero + 1)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "weights",
            weights_leaking,
            weights_remasked,
            weights_doubled,
            weights_uniform_when_empty,
            weights_without_empty_branch,
        ),
    ),
)
