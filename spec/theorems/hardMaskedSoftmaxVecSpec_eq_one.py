"""``hardMaskedSoftmaxVecSpec_eq_one``: the only allowed key gets exactly 1."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import ONE_ALLOWED, REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_leaking, spec_plus_one, spec_unshifted_denominator

DECLARATION = declare(
    "hardMaskedSoftmaxVecSpec_eq_one",
    statement="hardMaskedSoftmaxVecSpec(x, m)_i = 1.",
    plain="The only key that may be attended to does not receive all the attention.",
    hypotheses=(REAL_SCORES, ONE_ALLOWED),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The single allowed coordinate."""
    if len(row.allowed) == 1:
        spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
        yield Equal(f"coordinate {row.allowed[0]} = 1", spec[row.allowed[0]], row.ar.zero + 1)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls("hardMaskedSoftmaxVecSpec", spec_plus_one, spec_unshifted_denominator, spec_leaking),
        shifted=True,
    ),
)
