"""What attention does not depend on: its batch, what comes after a causal prefix, and its padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head, Rows, same, zero
from ..proofs.proof import Control, Proof
from ..proofs.wrong import controls, mask_one_late, mask_transposed

BATCH = declare(
    "attention_batch_invariance",
    statement="The output, the tangent and dQ of a query are the same alone and among other queries, in any order; dK "
    "and dV are the sums of what the queries give alone. A head or batch entry is computed by itself, and heads that "
    "share keys and values are the queries of one head.",
    plain="The answer for one query depends on which other queries are computed with it.",
    hypotheses=(REAL_SCORES,),
    derivation="Scores, weights, output and dS are computed row by row (unstack_hardMaskedSoftmaxSpec, "
    "unstack_softmaxBackwardFromWeightsSpec), and dK = dS^T Q, dV = A^T g are sums over the rows.",
)
PREFIX = declare(
    "attention_prefix_invariance",
    statement="Under a causal mask, the outputs, tangents and dQ of the first queries do not change when later "
    "queries, and keys that those first ones may not see, are appended; the alignment stays.",
    plain="A token that comes later changes what was computed for an earlier one.",
    hypotheses=(REAL_SCORES,),
    derivation="Appended keys come after what the first queries may see: they are blocked for them, hence padding "
    "(attention_padding_invariance); appended queries are other queries of a batch (attention_batch_invariance).",
)
PADDING = declare(
    "attention_padding_invariance",
    statement="Appending blocked keys, before or after, changes no output, no tangent and no gradient; the appended "
    "keys and values get gradients that are exactly 0. What is appended is finite, and so is every product with it.",
    plain="The length of the padding changes the answer, or the padding gets a gradient.",
    hypotheses=(REAL_SCORES,),
    derivation="A blocked key has weight 0 and dS = 0; it adds 0 v_j to the output, 0 k_j to dQ, and its own gradients "
    "are sums of 0 q_i and 0 g_i.",
)


def batch(head: Head, d: Definitions) -> Iterator[Claim]:
    """Queries alone against the head, and against the head with its queries in reverse."""
    turned = replace(head, mask=head.mask[::-1], q=head.q[::-1], g=head.g[::-1], dq=head.dq[::-1])
    alone = [head.query(i) for i in range(head.queries)]
    outputs, tangents = [one.forward(d)[0] for one in alone], [one.jvp(d)[0] for one in alone]
    gradients = [one.backward(d) for one in alone]
    for name, whole, order in (("", head, slice(None)), (" in reverse", turned, slice(None, None, -1))):
        yield from same(f"O{name}", whole.forward(d)[order], outputs)
        yield from same(f"tangent{name}", whole.jvp(d)[order], tangents)
        d_q, d_k, d_v = whole.backward(d)
        yield from same(f"dQ{name}", d_q[order], [one[0][0] for one in gradients])
        if alone:
            yield from same(f"dK{name}", d_k, _sum([one[1] for one in gradients]))
            yield from same(f"dV{name}", d_v, _sum([one[2] for one in gradients]))


def _sum(matrices: Sequence[Rows]) -> Rows:
    total = matrices[0]
    for matrix in matrices[1:]:
        total = [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(total, matrix, strict=True)]
    return total


def prefix(head: Head, d: Definitions) -> Iterator[Claim]:
    """For both alignments: the head cut to its first queries and keys, against the whole."""
    longest = head.queries + head.keys
    table = d.causalMask(longest)
    for offset in sorted({0, head.keys - head.queries}):
        mask = [[i + offset >= 0 and table[i + offset][j] for j in range(head.keys)] for i in range(head.queries)]
        whole = replace(head, mask=mask)
        outputs, tangents, d_q = whole.forward(d), whole.jvp(d), whole.backward(d)[0]
        for queries in range(head.queries):
            # Everything that the first queries may see, and nothing else.
            keys = max(0, min(head.keys, queries + offset))
            if keys == 0:
                continue
            short = replace(
                whole.with_keys(range(keys)),
                mask=[row[:keys] for row in mask[:queries]],
                q=head.q[:queries],
                g=head.g[:queries],
                dq=head.dq[:queries],
            )
            where = f"of the first {queries} queries at offset {offset}"
            yield from same(f"O {where}", outputs[:queries], short.forward(d))
            yield from same(f"tangent {where}", tangents[:queries], short.jvp(d))
            yield from same(f"dQ {where}", d_q[:queries], short.backward(d)[0])


def padding(head: Head, d: Definitions) -> Iterator[Claim]:
    """The head with a blocked key before it and another one after it."""
    if not head.keys:
        return
    first, last = head.others

    def padded(rows: Rows) -> list[Sequence[Any]]:
        return [[first(x) for x in rows[0]], *rows, [last(x) for x in rows[0]]]

    longer = replace(
        head,
        mask=[[False, *row, False] for row in head.mask],
        k=padded(head.k),
        v=padded(head.v),
        dk=padded(head.dk),
        dv=padded(head.dv),
    )
    yield from same("O", longer.forward(d), head.forward(d))
    yield from same("tangent", longer.jvp(d), head.jvp(d))
    after, before = longer.backward(d), head.backward(d)
    yield from same("dQ", after[0], before[0])
    for name, rows, old in zip(("dK", "dV"), after[1:], before[1:], strict=True):
        yield from same(name, rows[1:-1], old)
        for row in (rows[0], rows[-1]):
            yield from zero(f"{name} of the padding", row, head.ar)


PROOFS = (
    Proof(
        BATCH,
        batch,
        (
            *controls(
                "scaledDotProductAttention", wrong.attention_normalised_jointly, wrong.attention_first_mask_for_all
            ),
            *controls(
                "scaledDotProductAttentionBackward",
                wrong.backward_keys_untransposed,
                wrong.backward_normalised_jointly,
            ),
        ),
        symbols=("g", "u"),
        over="heads",
    ),
    Proof(
        PREFIX,
        prefix,
        (
            Control("mask one late", {"causalMask": mask_one_late}),
            Control("mask transposed", {"causalMask": mask_transposed}),
            *controls("scaledDotProductAttention", wrong.attention_leaking),
            *controls("scaledDotProductAttentionBackward", wrong.backward_mean_centred),
        ),
        symbols=("g", "u"),
        over="heads",
    ),
    Proof(
        PADDING,
        padding,
        (
            *controls(
                "scaledDotProductAttention",
                wrong.attention_blocked_as_zero_score,
                wrong.attention_mean_when_empty,
                wrong.attention_blocked_values_leaking,
            ),
            *controls("scaledDotProductAttentionJvp", wrong.jvp_leaking),
            *controls(
                "scaledDotProductAttentionBackward",
                wrong.backward_mean_centred,
                wrong.backward_blocked_as_zero_score,
                wrong.backward_leaking,
            ),
        ),
        symbols=("g", "u"),
        over="heads",
    ),
)
