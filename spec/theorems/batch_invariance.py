"""``extension:batch-invariance``: a row gives the same value alone and inside any batch."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.matrix import rotations
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, matrix_first_mask_for_all, matrix_normalised_jointly

DECLARATION = declare(
    "batch_invariance",
    statement="hardMaskedSoftmaxSpec(S, M)_r = hardMaskedSoftmaxVecSpec(S_r, M_r), whatever the other rows are.",
    plain="The answer for one row depends on which other rows are computed with it.",
    hypotheses=(REAL_SCORES,),
    derivation="hardMaskedSoftmaxSpec applies hardMaskedSoftmaxVecSpec to each row and passes it nothing else.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Rows alone against rows in a matrix, against a matrix with poisoned neighbours, and at rank 3."""
    scores, mask = rotations(row, at_most=2)
    batch = d.hardMaskedSoftmaxSpec(scores, mask, row.ar)
    cube = d.hardMaskedSoftmaxSpec([scores, scores[::-1]], [mask, mask[::-1]], row.ar)
    for r in range(len(mask)):
        alone = d.hardMaskedSoftmaxVecSpec(scores[r], mask[r], row.ar)
        for i in range(row.n):
            yield Equal(f"entry {i} of row {r} in a matrix", batch[r][i], alone[i], relative=True)
            yield Equal(f"entry {i} of row {r} in a stack", cube[0][r][i], alone[i], relative=True)
            yield Equal(f"entry {i} of row {r} in a reversed stack", cube[1][-1 - r][i], alone[i], relative=True)
        neighbours = d.hardMaskedSoftmaxSpec([scores[r], [row.poisons[-1]] * row.n], [mask[r], [False] * row.n], row.ar)
        for i in range(row.n):
            yield Equal(f"entry {i} of row {r} beside an empty row", neighbours[0][i], alone[i], relative=True)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls("hardMaskedSoftmaxSpec", matrix_normalised_jointly, matrix_first_mask_for_all),
        shifted=True,
    ),
)
