"""``extension:shift-invariance``: one constant added to all allowed scores changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_unshifted_denominator
from ..proofs.wrong_gradients import derivative_of_logarithm, derivative_uncentred, derivative_wrong_sign

DECLARATION = declare(
    "shift_invariance",
    statement="w(x + c) = w(x) for one constant c added to all allowed scores, and J(x) 1 = 0.",
    plain="Adding the same number to every allowed score changes the weights.",
    hypotheses=(REAL_SCORES,),
    derivation="exp(x_i + c) = exp(c) exp(x_i), and the factor exp(c) > 0 cancels; differentiate in c for J 1 = 0.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Implementation and formula on shifted scores, and the derivative along the constant vector."""
    moved = [x + row.c if m else x for x, m in zip(row.x, row.mask, strict=True)]
    spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    for i, value in enumerate(d.hardMaskedSoftmaxVecSpec(moved, row.mask, row.ar)):
        yield Equal(f"coordinate {i} of the implementation", value, spec[i], relative=True)
    w = d.weights(row.mask, row.x, row.ar)
    for i, value in enumerate(d.weights(row.mask, moved, row.ar)):
        yield Equal(f"coordinate {i} of the formula", value, w[i], relative=True)
    ones = [row.ar.zero + 1 for _ in row.mask]
    for i, value in enumerate(d.derivative(row.mask, row.x, ones, row.ar)):
        yield Equal(f"(J 1)[{i}] = 0", value, row.ar.zero)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("hardMaskedSoftmaxVecSpec", spec_unshifted_denominator),
            *controls("derivative", derivative_uncentred, derivative_wrong_sign, derivative_of_logarithm),
        ),
        symbols=("c",),
        shifted=True,
    ),
)
