"""``extension:truncation``: deleting blocked keys, or padding with blocked keys, changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, spec_blocked_as_zero_score, spec_leaking, spec_remasked, weights_leaking
from ..proofs.wrong_gradients import backward_mean_centred

DECLARATION = declare(
    "truncation",
    statement="Deleting blocked keys, or padding with blocked keys, changes no weight and no gradient of the others.",
    plain="The length of the padding changes the answer.",
    hypotheses=(REAL_SCORES,),
    derivation="Blocked keys contribute 0 to D and are skipped by the maximum; the other numerators do not change.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The row with its blocked keys deleted, and with one blocked key added at either end."""
    whole = _outputs(row, d, row.mask, row.x, row.g)
    kept = row.allowed
    short = _outputs(row, d, [True] * len(kept), [row.x[i] for i in kept], [row.g[i] for i in kept])
    pad = row.poisons[-1]
    long = _outputs(row, d, [False, *row.mask, False], [pad, *row.x, pad], [1, *row.g, 1])
    for name, values in whole.items():
        for position, i in enumerate(kept):
            yield Equal(f"{name}[{i}] after deletion", short[name][position], values[i], relative=name != "backward")
        for i, value in enumerate(values):
            yield Equal(f"{name}[{i}] after padding", long[name][i + 1], value, relative=name != "backward")
        for i in (0, -1):
            yield Equal(f"{name} of the padding", long[name][i], row.ar.zero, relative=True)


def _outputs(
    row: Row, d: Definitions, mask: Sequence[bool], x: Sequence[Any], g: Sequence[Any]
) -> dict[str, list[Any]]:
    spec = d.hardMaskedSoftmaxVecSpec(x, mask, row.ar)
    return {
        "weights": d.weights(mask, x, row.ar),
        "implementation": spec,
        "backward": d.softmaxBackwardFromWeightsSpec(spec, g, row.ar),
    }


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("hardMaskedSoftmaxVecSpec", spec_blocked_as_zero_score, spec_leaking, spec_remasked),
            *controls("weights", weights_leaking),
            *controls("softmaxBackwardFromWeightsSpec", backward_mean_centred),
        ),
        symbols=("g",),
        shifted=True,
    ),
)
