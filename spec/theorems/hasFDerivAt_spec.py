"""``hasFDerivAt_spec``: the same for the max-shifted implementation, also where the maximum is tied or changes index.

The dual numbers differentiate the subtracted maximum with the rest of the code, for every key that may be the maximum:
all of them give one derivative, so a tie has no effect. The numeric leg also measures the remainder across a change of
the maximum.
"""

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
from ..proofs.wrong_gradients import derivative_mean_centred, derivative_uncentred, derivative_wrong_sign

DECLARATION = declare(
    "hasFDerivAt_spec",
    statement=(
        "x -> hardMaskedSoftmaxVecSpec(x, m) is Frechet differentiable at every x, with derivative J(x); "
        "also where the maximum is tied or changes index."
    ),
    plain="The stable implementation has a kink or a wrong slope, for instance where two scores tie for the maximum.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The derivative of the code along ``u`` against ``J u``."""
    slopes = along(lambda y, ar: d.hardMaskedSoftmaxVecSpec(y, row.mask, ar), row.x, row.u, row.ar)
    for i, value in enumerate(d.derivative(row.mask, row.x, row.u, row.ar)):
        yield Equal(f"(D spec[u])[{i}] = (J u)[{i}]", slopes[i], value)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("derivative", derivative_uncentred, derivative_wrong_sign, derivative_mean_centred),
            Control("spec unshifted denominator", {"hardMaskedSoftmaxVecSpec": spec_unshifted_denominator}),
        ),
        symbols=("u",),
        shifted=True,
        differentiable="hardMaskedSoftmaxVecSpec",
    ),
)
