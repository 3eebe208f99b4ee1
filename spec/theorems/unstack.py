"""The rows of attention's weights and of its centring are independent, and the centring is self-adjoint.

The matrices have the rotations of a row for rows, at most two, so that they are rarely square.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.head import frobenius, same
from ..proofs.matrix import rotations
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, matrix_first_mask_for_all, matrix_inverted_mask, matrix_normalised_jointly

WEIGHTS = declare(
    "unstack_hardMaskedSoftmaxSpec",
    statement="Row i of hardMaskedSoftmaxSpec(S, M) is hardMaskedSoftmaxVecSpec(S_i, M_i).",
    plain="The weights of one query depend on other queries.",
    hypotheses=(REAL_SCORES,),
)
CENTRED = declare(
    "unstack_softmaxBackwardFromWeightsSpec",
    statement="Row i of softmaxBackwardFromWeightsSpec(A, G) is softmaxBackwardFromWeightsSpec(A_i, G_i).",
    plain="The gradient of one query's scores depends on other queries.",
    hypotheses=(REAL_SCORES,),
)
SELF_ADJOINT = declare(
    "dot_backward_comm",
    statement="<C(X), Y> = <X, C(Y)> in the Frobenius product, for C(X) = softmaxBackwardFromWeightsSpec(A, X) row by "
    "row, and any A.",
    plain="The centring of the gradients of the scores, applied to two matrices, is not symmetric.",
    hypotheses=(REAL_SCORES,),
)
_ROWS = 2


def _turned(row: Row, vector: Sequence[Any]) -> list[list[Any]]:
    return [[vector[(k + r) % row.n] for k in range(row.n)] for r in range(min(_ROWS, row.n))]


def weights(row: Row, d: Definitions) -> Iterator[Claim]:
    """Every row of a matrix against the row alone."""
    scores, mask = rotations(row, at_most=_ROWS)
    alone = [d.hardMaskedSoftmaxVecSpec(s, m, row.ar) for s, m in zip(scores, mask, strict=True)]
    yield from same("row", d.attention_weights(scores, mask, row.ar), alone, relative=True)


def centred(row: Row, d: Definitions) -> Iterator[Claim]:
    """Every row of a centred matrix against the row alone, for the weights and for any matrix in their place."""
    scores, mask = rotations(row, at_most=_ROWS)
    # Not turned with the rows, or all of them would have one mean.
    g = [row.g] * len(scores)
    for a in (d.attention_weights(scores, mask, row.ar), _turned(row, row.u)):
        alone = [d.softmaxBackwardFromWeightsSpec(w, x, row.ar) for w, x in zip(a, g, strict=True)]
        yield from same("row", d.centred(a, g, row.ar), alone)


def self_adjoint(row: Row, d: Definitions) -> Iterator[Claim]:
    """The two pairings, for the weights and for any matrix in their place."""
    scores, mask = rotations(row, at_most=_ROWS)
    x, y = _turned(row, row.u), _turned(row, row.g)
    for name, a in (("weights", d.attention_weights(scores, mask, row.ar)), ("any matrix", _turned(row, row.v))):
        left, right = frobenius(d.centred(a, x, row.ar), y, row.ar), frobenius(x, d.centred(a, y, row.ar), row.ar)
        yield Equal(f"<C(X), Y> = <X, C(Y)> with {name}", left, right)


PROOFS = (
    Proof(
        WEIGHTS,
        weights,
        controls("attention_weights", matrix_normalised_jointly, matrix_first_mask_for_all, matrix_inverted_mask),
        shifted=True,
    ),
    Proof(
        CENTRED,
        centred,
        controls("centred", wrong.centred_by_the_first_row, wrong.centred_by_the_mean, wrong.centred_as_logarithm),
        symbols=("u", "g"),
    ),
    Proof(
        SELF_ADJOINT,
        self_adjoint,
        controls("centred", wrong.centred_by_the_mean, wrong.centred_as_logarithm),
        symbols=("u", "v", "g"),
    ),
)
