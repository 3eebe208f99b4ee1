"""``backward_eq_adjoint_fderiv``: the backward helper is the adjoint of the derivative of the concrete forward."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Control, Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_unshifted_denominator
from ..proofs.wrong_gradients import (
    backward_mean_centred,
    backward_of_logarithm,
    backward_uncentred,
    backward_wrong_sign,
)

DECLARATION = declare(
    "backward_eq_adjoint_fderiv",
    statement=(
        "softmaxBackwardFromWeightsSpec(hardMaskedSoftmaxVecSpec(x, m), g) = "
        "adjoint(fderiv(x -> hardMaskedSoftmaxVecSpec(x, m)) x) g."
    ),
    plain="The gradient that training uses is not the gradient of the function that the forward pass computes.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Coordinate ``j`` of the adjoint is ``<D f[e_j], g>``, with ``D f`` the derivative of the code."""
    w = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    backward = d.softmaxBackwardFromWeightsSpec(w, row.g, row.ar)
    for j in range(row.n):
        basis = [row.ar.zero + int(k == j) for k in range(row.n)]
        column = along(lambda y, ar: d.hardMaskedSoftmaxVecSpec(y, row.mask, ar), row.x, basis, row.ar)
        yield Equal(f"backward[{j}] = <D f[e_{j}], g>", backward[j], row.inner(column, row.g))


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls(
                "softmaxBackwardFromWeightsSpec",
                backward_uncentred,
                backward_wrong_sign,
                backward_mean_centred,
                backward_of_logarithm,
            ),
            Control("spec unshifted denominator", {"hardMaskedSoftmaxVecSpec": spec_unshifted_denominator}),
        ),
        symbols=("g",),
        shifted=True,
    ),
)
