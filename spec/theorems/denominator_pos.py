"""``denominator_pos``: the only public theorem of the module with a hypothesis.

Symbolically the denominator is a non-empty sum of positive symbols with positive coefficients; numerically the lower
end of its interval is positive.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES, SOME_ALLOWED
from ..proofs.claims import Claim, NonNegative
from ..proofs.definitions_record import Definitions
from ..proofs.proof import Control, Proof
from ..proofs.row import Row
from ..proofs.wrong import denominator_negated, denominator_without_last

DECLARATION = declare(
    "denominator_pos",
    statement="D > 0.",
    plain="A row with an allowed key divides by zero or by a negative number.",
    hypotheses=(REAL_SCORES, SOME_ALLOWED),
)


def residual(row: Row, d: Definitions) -> Iterator[Claim]:
    """Strict positivity on the rows that meet the hypothesis."""
    if row.allowed:
        yield NonNegative("D > 0", d.denominator(row.mask, row.x, row.ar), strict=True)


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            Control("denominator negated", {"denominator": denominator_negated}),
            Control("denominator without last", {"denominator": denominator_without_last}),
        ),
    ),
)
