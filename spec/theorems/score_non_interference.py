"""``extension:score-non-interference``: blocked scores are not read, whatever they are.

The residual writes other values into the blocked scores: in the symbolic leg a value that raises when it is read, in
the numeric leg NaN and infinities.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_leaking, spec_raw_when_empty, spec_remasked, weights_leaking, weights_remasked

DECLARATION = declare(
    "score_non_interference",
    statement="w and its derivatives do not depend on blocked scores, NaN and infinities included.",
    plain="Changing a score that the mask forbids changes the answer.",
    hypotheses=(REAL_SCORES,),
    derivation="The numerator of a blocked key is a literal 0, and the maximum folds over allowed keys only.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Weights, implementation, its derivative and backward, with and without the blocked scores replaced."""
    expected = _outputs(row, d, row.x)
    for number, poison in enumerate(row.poisons):
        for name, values in _outputs(row, d, row.poisoned(poison)).items():
            for i, value in enumerate(values):
                yield Equal(f"{name}[{i}] with replacement {number}", value, expected[name][i])


def _outputs(row: Row, d: Definitions, x: Sequence[Any]) -> dict[str, list[Any]]:
    spec = d.hardMaskedSoftmaxVecSpec(x, row.mask, row.ar)
    return {
        "weights": d.weights(row.mask, x, row.ar),
        "implementation": spec,
        "derivative of the implementation": along(
            lambda y, ar: d.hardMaskedSoftmaxVecSpec(y, row.mask, ar), x, row.u, row.ar
        ),
        "backward": d.softmaxBackwardFromWeightsSpec(spec, row.u, row.ar),
    }


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("hardMaskedSoftmaxVecSpec", spec_leaking, spec_remasked, spec_raw_when_empty),
            *controls("weights", weights_leaking, weights_remasked),
        ),
        symbols=("u",),
        shifted=True,
    ),
)
