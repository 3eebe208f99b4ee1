"""A blocked coordinate is exactly 0: for a row, and for every entry of a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES, SOME_BLOCKED
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.matrix import rotations
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import (
    controls,
    matrix_first_mask_for_all,
    matrix_inverted_mask,
    spec_leaking,
    spec_raw_when_empty,
    spec_uniform_when_empty,
)

ROW = declare(
    "hardMaskedSoftmaxVecSpec_blocked_eq_zero",
    statement="hardMaskedSoftmaxVecSpec(x, m)_j = 0.",
    plain="A key that the mask forbids receives attention.",
    hypotheses=(REAL_SCORES, SOME_BLOCKED),
)
MATRIX = declare(
    "hardMaskedSoftmaxSpec_blocked_eq_zero",
    statement="hardMaskedSoftmaxSpec(S, M)[i, j] = 0.",
    plain="A key that the mask of its own row forbids receives attention.",
    hypotheses=(REAL_SCORES, SOME_BLOCKED),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Exact zeros of a row."""
    spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    for j, allowed in enumerate(row.mask):
        if not allowed:
            yield Equal(f"coordinate {j} = 0", spec[j], row.ar.zero, relative=True)


def residual_matrix(row: Row, d: Definitions) -> Iterator[Claim]:
    """Exact zeros of the matrix whose rows are the row and one rotation of it."""
    scores, mask = rotations(row, at_most=2)
    spec = d.hardMaskedSoftmaxSpec(scores, mask, row.ar)
    for i, allowed in enumerate(mask):
        for j, m in enumerate(allowed):
            if not m:
                yield Equal(f"entry [{i}, {j}] = 0", spec[i][j], row.ar.zero, relative=True)


PROOFS = (
    Proof(
        ROW,
        residual,
        controls("hardMaskedSoftmaxVecSpec", spec_leaking, spec_uniform_when_empty, spec_raw_when_empty),
        shifted=True,
    ),
    Proof(
        MATRIX,
        residual_matrix,
        controls("hardMaskedSoftmaxSpec", matrix_first_mask_for_all, matrix_inverted_mask),
        shifted=True,
    ),
)
