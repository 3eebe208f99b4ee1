"""``extension:empty-row``: everything about a row without an allowed key is exactly 0, and it is not valid."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import NONE_ALLOWED
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Control, Proof
from ..proofs.row import Row
from ..proofs.wrong import (
    controls,
    spec_raw_when_empty,
    spec_uniform_when_empty,
    spec_without_empty_branch,
    weights_uniform_when_empty,
    weights_without_empty_branch,
)
from ..proofs.wrong_gradients import derivative_identity_when_empty

DECLARATION = declare(
    "empty_row",
    statement="With no key allowed: weights, output, JVP and VJP are exactly 0, and valid is false.",
    plain="A row that may attend to nothing returns something.",
    hypotheses=(NONE_ALLOWED,),
    derivation="Every numerator is a literal 0 and the code branches before it divides; a constant has derivative 0.",
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """The row with every key blocked, and the flag on the row as it is."""
    mask = [False] * row.n
    yield Equal("valid says whether a key is allowed", d.valid(row.mask), len(row.allowed) > 0)
    yield Equal("valid is false", d.valid(mask), False)
    spec = d.hardMaskedSoftmaxVecSpec(row.x, mask, row.ar)
    outputs = {
        "weights": d.weights(mask, row.x, row.ar),
        "implementation": spec,
        "JVP": d.derivative(mask, row.x, row.u, row.ar),
        "VJP": d.softmaxBackwardFromWeightsSpec(spec, row.u, row.ar),
        "JVP of the implementation": along(lambda y, ar: d.hardMaskedSoftmaxVecSpec(y, mask, ar), row.x, row.u, row.ar),
        "output": [row.inner(spec, row.u)],
    }
    for name, values in outputs.items():
        for i, value in enumerate(values):
            yield Equal(f"{name}[{i}] = 0", value, row.ar.zero, relative=True)


def always_valid(mask: object) -> bool:
    """A flag that never says no."""
    return True


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("weights", weights_uniform_when_empty, weights_without_empty_branch),
            *controls(
                "hardMaskedSoftmaxVecSpec", spec_uniform_when_empty, spec_raw_when_empty, spec_without_empty_branch
            ),
            *controls("derivative", derivative_identity_when_empty),
            Control("always valid", {"valid": always_valid}),
        ),
        symbols=("u",),
    ),
)
