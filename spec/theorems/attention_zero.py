"""Where attention is exactly 0: the gradients of what is never seen, and everything about a query that sees nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..catalogue import declare
from ..hypotheses import NONE_ALLOWED, REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head, same, zero
from ..proofs.proof import Proof
from ..proofs.wrong import controls

BLOCKED = declare(
    "attention_blocked_gradient_zero",
    statement="dK_j = 0 and dV_j = 0 exactly, where no query may see key j; dQ_i = 0 exactly, where query i may see no "
    "key.",
    plain="Something that is masked everywhere gets a gradient.",
    hypotheses=(REAL_SCORES,),
    derivation="w_ij = 0 for every i makes dS_ij = scale 0 (...) = 0 and dV_j = sum_i 0 g_i = 0; w_ij = 0 for every j "
    "makes dQ_i = sum_j 0 k_j = 0.",
)
EMPTY = declare(
    "attention_empty_row",
    statement="With no key allowed for query i: O_i, its tangent and dQ_i are exactly 0, and query i contributes "
    "nothing to dK and dV, whatever its cotangent is.",
    plain="A query that may attend to nothing returns something, or reaches the gradients of keys and values.",
    hypotheses=(NONE_ALLOWED,),
    derivation="All weights of the query are a literal 0, so that its output, tangent and dS_i are sums of 0 x, and "
    "its summands in dK and dV are 0 q_i and 0 g_i.",
)


def blocked(head: Head, d: Definitions) -> Iterator[Claim]:
    """The gradients of unseen keys and of empty queries, as they are and with every pair blocked."""
    closed = replace(head, mask=[[False] * head.keys for _ in range(head.queries)])
    for case in (head, closed):
        d_q, d_k, d_v = case.backward(d)
        for i in case.empty:
            yield from zero(f"dQ[{i}]", d_q[i], head.ar)
        for j in case.unseen:
            yield from zero(f"dK[{j}]", d_k[j], head.ar)
            yield from zero(f"dV[{j}]", d_v[j], head.ar)


def empty(head: Head, d: Definitions) -> Iterator[Claim]:
    """Each query in turn closed; then its cotangent changed, and the gradients compared."""
    for i in range(head.queries):
        shut = replace(head, mask=[[False] * head.keys if r == i else row for r, row in enumerate(head.mask)])
        d_q, d_k, d_v = shut.backward(d)
        yield from zero(f"O[{i}]", shut.forward(d)[i], head.ar)
        yield from zero(f"tangent[{i}]", shut.jvp(d)[i], head.ar)
        yield from zero(f"dQ[{i}]", d_q[i], head.ar)
        other = head.others[i % len(head.others)]
        g = [[other(x) for x in row] if r == i else row for r, row in enumerate(head.g)]
        changed = replace(shut, g=g).backward(d)
        yield from zero(f"dQ[{i}] for another cotangent", changed[0][i], head.ar)
        yield from same("dK for another cotangent", changed[1], d_k)
        yield from same("dV for another cotangent", changed[2], d_v)


PROOFS = (
    Proof(
        BLOCKED,
        blocked,
        controls(
            "scaledDotProductAttentionBackward",
            wrong.backward_leaking,
            wrong.backward_uniform_when_empty,
            wrong.backward_values_by_scores,
        ),
        symbols=("g",),
        over="heads",
    ),
    Proof(
        EMPTY,
        empty,
        (
            *controls("scaledDotProductAttention", wrong.attention_mean_when_empty, wrong.attention_leaking),
            *controls("scaledDotProductAttentionJvp", wrong.jvp_values_unweighted_when_empty),
            *controls("scaledDotProductAttentionBackward", wrong.backward_uniform_when_empty),
        ),
        symbols=("g", "u"),
        over="heads",
    ),
)
