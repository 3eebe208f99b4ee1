"""``inner_derivative``: the row derivative is self-adjoint."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls
from ..proofs.wrong_gradients import derivative_leaking, derivative_mean_centred, derivative_of_logarithm

DECLARATION = declare(
    "inner_derivative",
    statement="<J(x) dx, g> = <dx, J(x) g>.",
    plain="One derivative, applied to two vectors, is not symmetric.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The two pairings, for free ``dx`` and ``g``."""
    left = row.inner(d.derivative(row.mask, row.x, row.u, row.ar), row.g)
    right = row.inner(row.u, d.derivative(row.mask, row.x, row.g, row.ar))
    yield Equal("<J dx, g> = <dx, J g>", left, right)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls("derivative", derivative_mean_centred, derivative_of_logarithm, derivative_leaking),
        symbols=("u", "g"),
    ),
)
