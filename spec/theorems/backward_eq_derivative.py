"""``backward_eq_derivative``: the backward helper evaluates the derivative itself."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls
from ..proofs.wrong_gradients import (
    backward_mean_centred,
    backward_of_logarithm,
    backward_uncentred,
    backward_wrong_sign,
)

DECLARATION = declare(
    "backward_eq_derivative",
    statement="softmaxBackwardFromWeightsSpec(hardMaskedSoftmaxVecSpec(x, m), g) = J(x) g.",
    plain="The backward pass (VJP) computes something other than the derivative.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The helper on the implementation's weights against ``J g``."""
    w = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    backward = d.softmaxBackwardFromWeightsSpec(w, row.g, row.ar)
    for i, value in enumerate(d.derivative(row.mask, row.x, row.g, row.ar)):
        yield Equal(f"backward[{i}] = (J g)[{i}]", backward[i], value)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "softmaxBackwardFromWeightsSpec",
            backward_uncentred,
            backward_wrong_sign,
            backward_mean_centred,
            backward_of_logarithm,
        ),
        symbols=("g",),
        shifted=True,
    ),
)
