"""``extension:blocked-gradient-zero``: rows and columns of the derivative at a blocked key are exactly 0."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES, SOME_BLOCKED
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import (
    backward_of_logarithm,
    controls,
    derivative_leaking,
    derivative_of_logarithm,
    spec_leaking,
    spec_remasked,
)

DECLARATION = declare(
    "blocked_gradient_zero",
    statement="For a blocked j: (J u)_j = 0, J e_j = 0, and backward(w, g)_j = 0, exactly.",
    plain="A gradient flows into, or out of, a key that the mask forbids.",
    hypotheses=(REAL_SCORES, SOME_BLOCKED),
    derivation="w_j = 0 makes row and column j of diag(w) - w w^T zero.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Row and column of the derivative, of the code's own derivative, and of the backward helper."""
    zero = row.ar.zero

    def slopes(direction: list[object]) -> list[object]:
        return along(lambda y, ar: d.hardMaskedSoftmaxVecSpec(y, row.mask, ar), row.x, direction, row.ar)

    image = d.derivative(row.mask, row.x, row.u, row.ar)
    slope = slopes(list(row.u))
    w = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    backward = d.softmaxBackwardFromWeightsSpec(w, row.u, row.ar)
    for j, allowed in enumerate(row.mask):
        if allowed:
            continue
        yield Equal(f"(J u)[{j}] = 0", image[j], zero, relative=True)
        yield Equal(f"(D f[u])[{j}] = 0", slope[j], zero, relative=True)
        yield Equal(f"backward[{j}] = 0", backward[j], zero, relative=True)
        basis = [zero + int(k == j) for k in range(row.n)]
        column = zip(d.derivative(row.mask, row.x, basis, row.ar), slopes(basis), strict=True)
        for i, (entry, derived) in enumerate(column):
            yield Equal(f"J[{i},{j}] = 0", entry, zero, relative=True)
            yield Equal(f"(D f[e_{j}])[{i}] = 0", derived, zero, relative=True)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("derivative", derivative_leaking, derivative_of_logarithm),
            *controls("softmaxBackwardFromWeightsSpec", backward_of_logarithm),
            *controls("hardMaskedSoftmaxVecSpec", spec_leaking, spec_remasked),
        ),
        symbols=("u",),
        shifted=True,
    ),
)
