"""``getScalar_hardMaskedSoftmaxVecSpec``: removing the stable shift gives the exponential quotient."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import (
    controls,
    spec_blocked_as_zero_score,
    spec_leaking,
    spec_uniform_when_empty,
    spec_unshifted_denominator,
    spec_without_last,
)

DECLARATION = declare(
    "getScalar_hardMaskedSoftmaxVecSpec",
    statement="hardMaskedSoftmaxVecSpec(x, m)_i = N_i / D (with 0 / 0 = 0), whichever maximum is subtracted.",
    plain="A weight differs from exp(score) over the sum of exp over the allowed keys.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Each coordinate against numerator over denominator; Lean's total division on an empty row."""
    spec = d.hardMaskedSoftmaxVecSpec(row.x, row.mask, row.ar)
    total = d.denominator(row.mask, row.x, row.ar)
    for i in range(row.n):
        quotient = d.numerator(row.mask, row.x, i, row.ar) / total if row.allowed else row.ar.zero
        yield Equal(f"coordinate {i} = N[{i}] / D", spec[i], quotient, relative=True)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls(
            "hardMaskedSoftmaxVecSpec",
            spec_unshifted_denominator,
            spec_leaking,
            spec_blocked_as_zero_score,
            spec_without_last,
            spec_uniform_when_empty,
        ),
        shifted=True,
    ),
)
