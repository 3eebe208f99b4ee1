"""``denominator``: checked by peeling off one key at a time, down to the empty sum."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, denominator_leaking, denominator_plus_one, denominator_without_last

DECLARATION = declare(
    "denominator",
    statement="D = sum_i N_i.",
    plain="The normalising sum misses an allowed key or counts a blocked one.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Blocking an allowed key takes exactly ``exp x_k`` away; with nothing allowed the sum is 0."""
    whole = d.denominator(row.mask, row.x, row.ar)
    for k in row.allowed:
        peeled = d.denominator([m and i != k for i, m in enumerate(row.mask)], row.x, row.ar)
        yield Equal(f"D = D without key {k} + exp x[{k}]", peeled + row.ar.exp(row.x[k]), whole, relative=True)
    yield Equal("D = 0 with nothing allowed", d.denominator([False] * row.n, row.x, row.ar), row.ar.zero)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls("denominator", denominator_leaking, denominator_without_last, denominator_plus_one),
    ),
)
