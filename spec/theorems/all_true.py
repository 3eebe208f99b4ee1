"""An all-true mask is no mask: for a row, and for a matrix."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import ALL_ALLOWED, REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.matrix import rotations
from ..proofs.proof import Control, Proof
from ..proofs.row import Row
from ..proofs.wrong import (
    controls,
    matrix_inverted_mask,
    matrix_normalised_jointly,
    spec_plus_one,
    spec_unshifted_denominator,
    spec_without_last,
)

ROW = declare(
    "hardMaskedSoftmaxVecSpec_allTrue",
    statement="hardMaskedSoftmaxVecSpec(x, all true) = softmaxVecSpec(x).",
    plain="Passing a mask that allows everything changes the answer.",
    hypotheses=(REAL_SCORES, ALL_ALLOWED),
)
MATRIX = declare(
    "hardMaskedSoftmaxSpec_allTrueMask",
    statement="hardMaskedSoftmaxSpec(S, allTrueMask) = softmaxSpec(S) along the keys.",
    plain="Passing a mask that allows everything changes the answer for a matrix of scores.",
    hypotheses=(REAL_SCORES, ALL_ALLOWED),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Coordinates against the unmasked softmax."""
    masked = d.hardMaskedSoftmaxVecSpec(row.x, [True] * row.n, row.ar)
    unmasked = d.softmaxVecSpec(row.x, row.ar)
    yield Equal("lengths agree", len(masked), len(unmasked))
    for i in range(row.n):
        yield Equal(f"coordinate {i} agrees", masked[i], unmasked[i], relative=True)


def residual_matrix(row: Row, d: Definitions) -> Iterator[Claim]:
    """Entries against the unmasked softmax of each row, for the rotations of the row."""
    scores, _ = rotations(row)
    masked = d.hardMaskedSoftmaxSpec(scores, d.allTrueMask(row.n, row.n), row.ar)
    unmasked = d.softmaxSpec(scores, row.ar)
    yield Equal("numbers of rows agree", len(masked), len(unmasked))
    for i in range(row.n):
        for j in range(row.n):
            yield Equal(f"entry [{i}, {j}] agrees", masked[i][j], unmasked[i][j], relative=True)


def mask_without_last_key(rows: int, keys: int) -> list[list[bool]]:
    """An all-true mask that is one key short."""
    return [[j < keys - 1 for j in range(keys)] for _ in range(rows)]


PROOFS = (
    Proof(
        ROW,
        residual,
        controls("hardMaskedSoftmaxVecSpec", spec_plus_one, spec_without_last, spec_unshifted_denominator),
        shifted=True,
        over="lengths",
    ),
    Proof(
        MATRIX,
        residual_matrix,
        (
            *controls("hardMaskedSoftmaxSpec", matrix_normalised_jointly, matrix_inverted_mask),
            Control("mask without last key", {"allTrueMask": mask_without_last_key}),
        ),
        shifted=True,
        over="lengths",
    ),
)
