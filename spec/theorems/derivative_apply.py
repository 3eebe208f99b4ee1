"""``derivative_apply``: one coordinate of the derivative is a weighted centring."""

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
    derivative_leaking,
    derivative_mean_centred,
    derivative_negated,
    derivative_uncentred,
    derivative_wrong_sign,
)

DECLARATION = declare(
    "derivative_apply",
    statement="(J(x) dx)_i = w_i (dx_i - sum_j w_j dx_j).",
    plain="The forward-mode derivative (JVP) is not the tangent, centred by its weighted mean, times the weight.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Each coordinate against the centring."""
    w = d.weights(row.mask, row.x, row.ar)
    mean = row.inner(w, row.u)
    for i, value in enumerate(d.derivative(row.mask, row.x, row.u, row.ar)):
        yield Equal(f"(J dx)[{i}]", value, w[i] * (row.u[i] - mean))


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
            derivative_leaking,
        ),
        symbols=("u",),
    ),
)
