"""``numerator``: checked against what characterises it, not against a copy of its formula.

Zero at a blocked key; at an allowed key the only function of that key's score with ``N' = N`` and ``N(0) = 1``,
whatever the other scores are.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs.claims import Claim, Equal, Unreadable
from ..proofs.definitions_record import Definitions
from ..proofs.dual import along
from ..proofs.proof import Proof
from ..proofs.row import Row
from ..proofs.wrong import controls, numerator_decaying, numerator_leaking, numerator_one_when_blocked

DECLARATION = declare(
    "numerator",
    statement="N_i = exp x_i where m_i, else 0.",
    plain="A blocked key carries weight before normalisation, or an allowed key carries the wrong amount.",
    hypotheses=(REAL_SCORES,),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Support, differential equation and initial value, key by key."""
    slopes = along(lambda y, ar: [d.numerator(row.mask, y, i, ar) for i in range(row.n)], row.x, row.u, row.ar)
    for i, allowed in enumerate(row.mask):
        value = d.numerator(row.mask, [x if k == i else Unreadable() for k, x in enumerate(row.x)], i, row.ar)
        if not allowed:
            yield Equal(f"N[{i}] = 0 at a blocked key", value, row.ar.zero)
            continue
        at_zero = d.numerator(row.mask, [x - x for x in row.x], i, row.ar)
        yield Equal(f"N[{i}] = 1 at score 0", at_zero, row.ar.zero + 1)
        yield Equal(f"dN[{i}] = N[{i}] u[{i}]", slopes[i], value * row.u[i], relative=True)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        controls("numerator", numerator_leaking, numerator_decaying, numerator_one_when_blocked),
        symbols=("u",),
    ),
)
