"""``hasFDerivAt_weights``: the derivative of the real formula, as the code's own derivative and as a limit.

The residual differentiates the shipped ``weights`` by dual numbers. Away from empty rows ``weights`` is a quotient of
sums of exponentials with a positive denominator, hence smooth, and its directional derivatives determine the Frechet
derivative; an empty row is the constant zero. The numeric leg also measures the remainder itself
(:mod:`~hardmask.spec.proofs.remainder`).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls
from ..proofs.wrong_gradients import (
    derivative_identity_when_empty,
    derivative_mean_centred,
    derivative_negated,
    derivative_uncentred,
    derivative_wrong_sign,
)

DECLARATION = declare(
    "hasFDerivAt_weights",
    statement="x -> weights(m, x) is Frechet differentiable at every x, with derivative J(x); empty rows included.",
    plain="The weights do not change with the scores at the rate that the derivative says.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The derivative of the code along ``u`` against ``J u``."""
    slopes = along(lambda y, ar: d.weights(row.mask, y, ar), row.x, row.u, row.ar)
    for i, value in enumerate(d.derivative(row.mask, row.x, row.u, row.ar)):
        yield Equal(f"(D weights[u])[{i}] = (J u)[{i}]", slopes[i], value)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "derivative",
            derivative_uncentred,
            derivative_wrong_sign,
            derivative_negated,
            derivative_mean_centred,
            derivative_identity_when_empty,
        ),
        symbols=("u",),
        differentiable="weights",
    ),
)
