"""``extension:blocked-gradient-zero``: rows and columns of the derivative at a blocked key are exactly 0."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES, SOME_BLOCKED
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_leaking, spec_remasked
from ..proofs.wrong_gradients import backward_of_logarithm, derivative_leaking, derivative_of_logarithm

DECLARATION = declare(
    "blocked_gradient_zero",
    statement="For a blocked j: (J u)_j = 0, J e_j = 0, and backward(w, g)_j = 0, exactly.",
    plain="A gradient flows into, or out of, a key that the mask forbids.",
    hypotheses=(REAL_SCORES, SOME_BLOCKED),
    derivation="w_j = 0 makes row and column j of diag(w) - w w^T zero.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Rows and columns of the derivative, of the code's own derivative, and rows of the backward helper.

    A tangent that moves blocked keys only stands for all of their columns: its image is 0 for free entries exactly when
    each column is.
    """
    zero = row.ar.zero
    blocked_only = [zero if m else u for u, m in zip(row.u, row.mask, strict=True)]
    w = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    backward = d.softmaxBackwardFromWeightsSpec(w, row.u, row.ar)

    def formula(direction: Sequence[Any]) -> list[Any]:
        return d.derivative(row.mask, row.x, direction, row.ar)

    def slope(direction: Sequence[Any]) -> list[Any]:
        return along(lambda y, ar: d.hardMaskedSoftmaxVecSpec(y, row.mask, ar), row.x, direction, row.ar)

    for name, linear in (("J", formula), ("D f", slope)):
        image = linear(row.u)
        for j, allowed in enumerate(row.mask):
            if not allowed:
                yield Equal(f"row {j} of {name} is 0", image[j], zero, relative=True)
        for i, value in enumerate(linear(blocked_only)):
            yield Equal(f"entry {i} of the blocked columns of {name} is 0", value, zero, relative=True)
    for j, allowed in enumerate(row.mask):
        if not allowed:
            yield Equal(f"backward[{j}] = 0", backward[j], zero, relative=True)


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
