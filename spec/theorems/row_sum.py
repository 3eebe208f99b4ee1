"""``extension:row-sum``: the weights of a row with an allowed key sum to 1."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES, SOME_ALLOWED
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_blocked_as_zero_score, spec_plus_one, spec_remasked, spec_without_last

DECLARATION = declare(
    "row_sum",
    statement="sum_i w_i = 1.",
    plain="The attention of a row does not add up to 1.",
    hypotheses=(REAL_SCORES, SOME_ALLOWED),
    derivation="sum_i N_i / D = D / D, and D > 0 by denominator_pos.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The sum of the implementation's weights."""
    if row.allowed:
        spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
        yield Equal("sum of the weights = 1", row.total(spec), row.ar.zero + 1)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "hardMaskedSoftmaxVecSpec", spec_plus_one, spec_remasked, spec_blocked_as_zero_score, spec_without_last
        ),
        shifted=True,
    ),
)
