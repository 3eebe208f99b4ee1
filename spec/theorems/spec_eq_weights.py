"""``spec_eq_weights``: the max-shifted implementation is the real formula, as a vector."""

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
    spec_leaking,
    spec_plus_one,
    spec_remasked,
    spec_unshifted_denominator,
    spec_without_empty_branch,
)

DECLARATION = declare(
    "spec_eq_weights",
    statement="hardMaskedSoftmaxVecSpec(x, m) = weights(m, x).",
    plain="The weight vector of a row differs from the softmax over its allowed keys.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Equal lengths and equal coordinates."""
    spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    w = d.weights(row.mask, row.x, row.ar)
    yield Equal("lengths agree", len(spec), len(w))
    for i in range(row.n):
        yield Equal(f"coordinate {i} agrees", spec[i], w[i], relative=True)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "hardMaskedSoftmaxVecSpec",
            spec_unshifted_denominator,
            spec_leaking,
            spec_remasked,
            spec_plus_one,
            spec_without_empty_branch,
        ),
        shifted=True,
    ),
)
