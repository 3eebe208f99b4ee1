"""The three definitions of masked attention, coordinate by coordinate, against formulas written another way.

The formulas use numerators that no maximum is subtracted from, and centre the values instead of the weights: ``dS_ij =
scale w_ij <g_i, v_j - O_i>``, the form in which fused kernels compute it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head, same
from ..proofs.proof import Proof
from ..proofs.wrong import controls

FORWARD = declare(
    "scaledDotProductAttention",
    statement="O[i, l] = sum_j N_ij v_jl / sum_j N_ij, where N_ij = exp(scale <q_i, k_j>) for an allowed pair and 0 "
    "for a blocked one; O[i, l] = 0 where no key is allowed. In Lean, scale = 1/sqrt(d), and 1 for d = 0.",
    plain="The output of attention is not the softmax-weighted mean of the allowed values.",
    hypotheses=(REAL_SCORES,),
)
BACKWARD = declare(
    "scaledDotProductAttentionBackward",
    statement="With weights w, output O and cotangent g: dV_jl = sum_i w_ij g_il, dQ_ia = sum_j dS_ij k_ja, dK_ja = "
    "sum_i dS_ij q_ia, where dS_ij = scale w_ij (<g_i, v_j> - <g_i, O_i>).",
    plain="A gradient of attention is not what backpropagation gives.",
    hypotheses=(REAL_SCORES,),
)
JVP = declare(
    "scaledDotProductAttentionJvp",
    statement="The tangent of O[i, l] along (dq, dk, dv) is sum_j w_ij (ds_ij (v_jl - O_il) + dv_jl), where ds_ij = "
    "scale (<dq_i, k_j> + <q_i, dk_j>).",
    plain="The forward-mode derivative of attention is wrong.",
    hypotheses=(REAL_SCORES,),
)


def _weights(head: Head, d: Definitions) -> list[list[Any]]:
    """The real formula for the weights of every query."""
    out = []
    for query, mask in zip(head.q, head.mask, strict=True):
        scores = [head.scale * _inner(query, key, head) for key in head.k]
        out.append(d.weights(mask, scores, head.ar))
    return out


def _inner(a: Any, b: Any, head: Head) -> Any:
    total = head.ar.zero
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def _outputs(head: Head, w: list[list[Any]]) -> list[list[Any]]:
    return [[_inner(row, [value[l] for value in head.v], head) for l in range(head.width)] for row in w]


def forward(head: Head, d: Definitions) -> Iterator[Claim]:
    """The output against the weighted means."""
    yield from same("O", head.forward(d), _outputs(head, _weights(head, d)))


def backward(head: Head, d: Definitions) -> Iterator[Claim]:
    """The three gradients, with the values centred."""
    w = _weights(head, d)
    output = _outputs(head, w)
    ds = [
        [
            head.scale * w[i][j] * (_inner(head.g[i], head.v[j], head) - _inner(head.g[i], output[i], head))
            for j in range(head.keys)
        ]
        for i in range(head.queries)
    ]
    columns = [[ds[i][j] for i in range(head.queries)] for j in range(head.keys)]
    d_q, d_k, d_v = head.backward(d)
    features = len((*head.q, *head.k)[0]) if head.queries + head.keys else 0
    yield from same("dQ", d_q, _combinations(ds, head.k, features, head))
    yield from same("dK", d_k, _combinations(columns, head.q, features, head))
    shares = [[w[i][j] for i in range(head.queries)] for j in range(head.keys)]
    yield from same("dV", d_v, _combinations(shares, head.g, head.width, head))


def _combinations(coefficients: list[list[Any]], rows: Any, columns: int, head: Head) -> list[list[Any]]:
    return [[_inner(line, [row[a] for row in rows], head) for a in range(columns)] for line in coefficients]


def jvp(head: Head, d: Definitions) -> Iterator[Claim]:
    """The tangent, with the values centred."""
    w = _weights(head, d)
    output = _outputs(head, w)
    expected = []
    for i in range(head.queries):
        row = []
        for l in range(head.width):
            total = head.ar.zero
            for j in range(head.keys):
                pairings = _inner(head.dq[i], head.k[j], head) + _inner(head.q[i], head.dk[j], head)
                total = total + w[i][j] * (head.scale * pairings * (head.v[j][l] - output[i][l]) + head.dv[j][l])
            row.append(total)
        expected.append(row)
    yield from same("tangent of O", head.jvp(d), expected)


PROOFS = (
    Proof(
        FORWARD,
        forward,
        controls(
            "scaledDotProductAttention",
            wrong.attention_leaking,
            wrong.attention_blocked_as_zero_score,
            wrong.attention_mean_when_empty,
            wrong.attention_inverted_mask,
            wrong.attention_normalised_jointly,
            wrong.attention_scale_on_the_output,
            wrong.attention_unscaled,
        ),
        shifted=True,
        over="heads",
    ),
    Proof(
        BACKWARD,
        backward,
        controls(
            "scaledDotProductAttentionBackward",
            wrong.backward_unscaled,
            wrong.backward_scale_squared,
            wrong.backward_keys_untransposed,
            wrong.backward_mean_centred,
            wrong.backward_uncentred,
            wrong.backward_leaking,
            wrong.backward_values_by_scores,
        ),
        symbols=("g",),
        over="heads",
    ),
    Proof(
        JVP,
        jvp,
        controls(
            "scaledDotProductAttentionJvp",
            wrong.jvp_without_queries,
            wrong.jvp_without_keys,
            wrong.jvp_without_values,
            wrong.jvp_scale_squared,
            wrong.jvp_leaking,
        ),
        symbols=("u",),
        over="heads",
    ),
)
