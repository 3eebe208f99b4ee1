"""``extension:path-agreement``: one mask, written in four ways, is one function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head, Rows, same
from ..proofs.proof import Proof
from ..proofs.wrong import controls

DECLARATION = declare(
    "path_agreement",
    statement="Attention with a Boolean mask equals attention with an additive bias, 0 where the mask allows and "
    "-infinity where it blocks; with the mask j < n it equals attention to the first n keys; with j <= i + c it equals "
    "causal attention of offset c (0: top left, Lk - Lq: bottom right). So do their tangents.",
    plain="The same mask, written in another way, gives another answer.",
    hypotheses=(REAL_SCORES,),
    derivation="exp(s - infinity) = 0 is the numerator that the Boolean mask writes, and the maximum ignores -infinity "
    "as it ignores a blocked key. Cutting keys off drops terms that are 0 (truncation), query by query. Equal "
    "functions have equal derivatives.",
)


def residual(head: Head, d: Definitions) -> Iterator[Claim]:
    """Each of the other ways against the Boolean mask that it means."""
    factors = [[int(m) for m in row] for row in head.mask]

    def biased(h: Head) -> Rows:
        return d.attention_with_bias(h.q, h.k, h.v, factors, h.scale, h.ar)

    yield from same("O with a bias", biased(head), head.forward(d))
    yield from same("tangent with a bias", head.slope(biased), head.jvp(d))
    for n in range(head.keys + 1):
        first = replace(head, mask=[[j < n for j in range(head.keys)] for _ in range(head.queries)])
        yield from same(
            f"O with length {n}",
            d.attention_with_length(head.q, head.k, head.v, n, head.scale, head.ar),
            first.forward(d),
        )
    for offset in sorted({0, head.keys - head.queries}):
        lower = replace(head, mask=[[j <= i + offset for j in range(head.keys)] for i in range(head.queries)])
        flagged = d.attention_causal(head.q, head.k, head.v, offset, head.scale, head.ar)
        yield from same(f"O with causal offset {offset}", flagged, lower.forward(d))


PROOFS = (
    Proof(
        DECLARATION,
        residual,
        (
            *controls("attention_with_bias", wrong.bias_of_zero_score, wrong.bias_uniform_when_empty),
            *controls("attention_with_length", wrong.length_one_more),
            *controls("attention_causal", wrong.causal_one_late, wrong.causal_at_the_other_corner),
            *controls("scaledDotProductAttention", wrong.attention_inverted_mask),
        ),
        symbols=("u",),
        over="heads",
    ),
)
