"""``hardMaskedSoftmaxVecSpec_mem_Icc``: every weight lies in [0, 1], on an empty row too.

Symbolically, ``w_i`` and ``1 - w_i`` have no negative coefficient over a positive denominator.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, NonNegative
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_centred, spec_without_empty_branch, spec_without_last

DECLARATION = declare(
    "hardMaskedSoftmaxVecSpec_mem_Icc",
    statement="0 <= hardMaskedSoftmaxVecSpec(x, m)_i <= 1.",
    plain="A weight is negative, exceeds 1, or is not a number.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Both bounds, coordinate by coordinate."""
    for i, w in enumerate(d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)):
        yield NonNegative(f"coordinate {i} >= 0", w)
        yield NonNegative(f"coordinate {i} <= 1", 1 - w)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls("hardMaskedSoftmaxVecSpec", spec_without_last, spec_centred, spec_without_empty_branch),
        shifted=True,
    ),
)
