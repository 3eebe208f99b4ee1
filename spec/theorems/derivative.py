"""``derivative``: the linear map with matrix ``diag(w) - w w^T``, entry by entry and by linearity."""

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
    derivative_identity_when_empty,
    derivative_leaking,
    derivative_mean_centred,
    derivative_uncentred,
    derivative_wrong_sign,
)

DECLARATION = declare(
    "derivative",
    statement="J(x) = diag(w) - w w^T as a linear map; the zero map when no key is allowed.",
    plain="The matrix of partial derivatives has a wrong entry.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Columns ``J e_j`` against the matrix entries, and ``J u`` against the combination of columns."""
    w = d.weights(row.mask, row.x, row.ar)
    columns = [
        d.derivative(row.mask, row.x, [row.ar.zero + int(k == j) for k in range(row.n)], row.ar) for j in range(row.n)
    ]
    image = d.derivative(row.mask, row.x, row.u, row.ar)
    for i in range(row.n):
        for j in range(row.n):
            entry = w[i] - w[i] * w[j] if i == j else -(w[i] * w[j])
            yield Equal(f"J[{i},{j}]", columns[j][i], entry)
        yield Equal(f"(J u)[{i}] is linear in u", image[i], row.inner([column[i] for column in columns], row.u))


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "derivative",
            derivative_uncentred,
            derivative_wrong_sign,
            derivative_mean_centred,
            derivative_leaking,
            derivative_identity_when_empty,
        ),
        symbols=("u",),
    ),
)
