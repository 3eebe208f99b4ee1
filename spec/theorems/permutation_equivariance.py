"""``extension:permutation-equivariance``: permuting the keys permutes the weights and the gradients.

A swap of the first two keys and a rotation generate every permutation, so these two are enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_without_last, weights_halving_first
from ..proofs.wrong_gradients import backward_first_key_uncentred

DECLARATION = declare(
    "permutation_equivariance",
    statement="w(m o s, x o s) = w(m, x) o s and backward(w, g) likewise, for every permutation s of the keys.",
    plain="The order in which keys are listed changes their weights.",
    hypotheses=(REAL_SCORES,),
    derivation="A finite sum of reals does not depend on the order; the numerator of a key depends on that key alone.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Formula, implementation and backward under a swap and a rotation."""
    w = d.weights(row.mask, row.x, row.ar)
    spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    backward = d.softmaxBackwardFromWeightsSpec(spec, row.g, row.ar)
    for name, order in generators(row.n).items():
        mask, x, g = ([values[i] for i in order] for values in (row.mask, row.x, row.g))
        moved_w = d.weights(mask, x, row.ar)
        moved_spec = d.hardMaskedSoftmaxVecSpec(x, mask, row.ar)
        moved_backward = d.softmaxBackwardFromWeightsSpec(moved_spec, g, row.ar)
        for position, i in enumerate(order):
            yield Equal(f"w[{i}] under the {name}", moved_w[position], w[i], relative=True)
            yield Equal(f"implementation[{i}] under the {name}", moved_spec[position], spec[i], relative=True)
            yield Equal(f"backward[{i}] under the {name}", moved_backward[position], backward[i])


def generators(n: int) -> dict[str, Sequence[int]]:
    """A swap and a rotation of n keys."""
    if n < 2:
        return {"identity": range(n)}
    return {"swap": [1, 0, *range(2, n)], "rotation": [*range(1, n), 0]}


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("hardMaskedSoftmaxVecSpec", spec_without_last),
            *controls("weights", weights_halving_first),
            *controls("softmaxBackwardFromWeightsSpec", backward_first_key_uncentred),
        ),
        symbols=("g",),
        shifted=True,
    ),
)
