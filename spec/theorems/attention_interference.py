"""What a blocked key and its value cannot reach: outputs, tangents and gradients of attention."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalogue import declare
from ..hypotheses import REAL_SCORES, SOME_BLOCKED
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head
from ..proofs.proof import Proof
from ..proofs.wrong import controls

VALUES = declare(
    "attention_non_interference",
    statement="Where key j is blocked for query i, O_i does not depend on k_j and v_j, nor does its tangent; they are "
    "finite, and so is every product with them.",
    plain="A query is told something about a key or a value that it may not see.",
    hypotheses=(REAL_SCORES, SOME_BLOCKED),
    derivation="The softmax writes a literal 0 for a blocked pair and never reads its score; the value enters the "
    "output times that 0, and 0 x = 0 for every real x. The tangent is the derivative of a function that does not "
    "depend on them.",
)
GRADIENTS = declare(
    "attention_gradient_non_interference",
    statement="Where key j is blocked for query i, dQ_i does not depend on k_j and v_j, and neither does what query i "
    "contributes to dK and dV; they are finite, and so is every product with them.",
    plain="A gradient carries something of a key or a value that its query may not see.",
    hypotheses=(REAL_SCORES, SOME_BLOCKED),
    derivation="With w_ij = 0, dS_ij = 0 whatever <g_i, v_j> is, and the centring sum_j w_ij <g_i, v_j> does not read "
    "it. So dQ_i = sum dS_ij k_j, dK_j' = dS_ij' q_i and dV_j' = w_ij' g_i do not depend on k_j and v_j. What a key "
    "gets is the sum over the queries; for a key that no query may see, nothing of it reaches any gradient.",
)


def _blocked(head: Head) -> Iterator[tuple[int, int]]:
    """The blocked pairs of a query and a key."""
    return ((i, j) for i, row in enumerate(head.mask) for j, allowed in enumerate(row) if not allowed)


def _unchanged(what: str, after: object, before: object) -> Iterator[Claim]:
    for l, (x, y) in enumerate(zip(after, before, strict=True)):  # type: ignore[call-overload]  # two rows
        yield Equal(f"{what}[{l}]", x, y)


def values(head: Head, d: Definitions) -> Iterator[Claim]:
    """Output and tangent of a query before and after its blocked keys and values are rewritten."""
    before, slopes = head.forward(d), head.jvp(d)
    for i, j in _blocked(head):
        changed = head.rewritten(j, head.others[(i + j) % len(head.others)])
        yield from _unchanged(f"O[{i}] without key {j}", changed.forward(d)[i], before[i])
        yield from _unchanged(f"tangent[{i}] without key {j}", changed.jvp(d)[i], slopes[i])


def gradients(head: Head, d: Definitions) -> Iterator[Claim]:
    """The gradients that come from a query before and after its blocked keys and values are rewritten."""
    for i, j in _blocked(head):
        alone = head.only(i)
        before = alone.backward(d)
        for other in head.others:
            after = alone.rewritten(j, other).backward(d)
            for name, rows, old in zip(("dQ", "dK", "dV"), after, before, strict=True):
                for r, (row, old_row) in enumerate(zip(rows, old, strict=True)):
                    yield from _unchanged(f"{name}[{r}] of query {i} without key {j}", row, old_row)


PROOFS = (
    Proof(
        VALUES,
        values,
        (
            *controls(
                "scaledDotProductAttention",
                wrong.attention_leaking,
                wrong.attention_blocked_values_leaking,
                wrong.attention_mean_when_empty,
            ),
            *controls("scaledDotProductAttentionJvp", wrong.jvp_leaking),
        ),
        symbols=("u",),
        over="heads",
    ),
    Proof(
        GRADIENTS,
        gradients,
        controls(
            "scaledDotProductAttentionBackward",
            wrong.backward_leaking,
            wrong.backward_mean_centred,
            wrong.backward_uniform_when_empty,
        ),
        symbols=("g",),
        over="heads",
    ),
)
