"""The derivative of attention: that it is one, and that the backward is its adjoint.

The slopes are those of the shipped forward code along free tangents of queries, keys and values, by dual numbers. With
a fixed mask the output is a quotient of sums of exponentials with a positive denominator, or the constant 0; hence it
is smooth, and its directional derivatives determine the Frechet derivative. The numeric leg also measures the remainder
itself (:mod:`~hardmask.spec.proofs.attention_remainder`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..catalogue import declare
from ..hypotheses import REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head, Rows, frobenius, same
from ..proofs.proof import Proof
from ..proofs.wrong import controls

DIFFERENTIABLE = declare(
    "attention_differentiability",
    statement="(Q, K, V) -> scaledDotProductAttention(Q, K, V, M) is Frechet differentiable everywhere, ties and empty "
    "rows included; scaledDotProductAttentionJvp is its derivative, scaledDotProductAttentionBackward the adjoint.",
    plain="The output of attention does not change at the rate that its derivatives say.",
    hypotheses=(REAL_SCORES,),
    derivation="Scores are bilinear in Q and K, the weights are differentiable in the scores (hasFDerivAt_spec) with "
    "the row centring J as derivative, and the output is bilinear in weights and values; the chain and product rules "
    "give J(scale (dQ K^T + Q dK^T)) V + A dV. J is self-adjoint, so the adjoint of each factor is the transpose that "
    "the backward applies. An empty row is constant.",
)
PAIRING = declare(
    "jvp_backward_pairing",
    statement="<scaledDotProductAttentionJvp(dQ, dK, dV), g> = <dQ, gQ> + <dK, gK> + <dV, gV>, where (gQ, gK, gV) = "
    "scaledDotProductAttentionBackward(g).",
    plain="Forward mode and backward mode of attention contradict each other.",
    hypotheses=(REAL_SCORES,),
)


def _pairing(head: Head, gradients: tuple[Rows, Rows, Rows]) -> Any:
    """``<dQ, gQ> + <dK, gK> + <dV, gV>``."""
    total = head.ar.zero
    for tangent, gradient in zip((head.dq, head.dk, head.dv), gradients, strict=True):
        total = total + frobenius(tangent, gradient, head.ar)
    return total


def differentiable(head: Head, d: Definitions) -> Iterator[Claim]:
    """The slopes of the forward code against the tangent, and paired with the cotangent against the gradients."""
    slopes = head.slope(lambda moving: moving.forward(d))
    yield from same("slope of O", slopes, head.jvp(d))
    # Tangents and cotangent are free, so this one identity says that every entry of every gradient is right.
    yield Equal(
        "<D O, g> = <(dQ, dK, dV), gradients>", frobenius(slopes, head.g, head.ar), _pairing(head, head.backward(d))
    )


def pairing(head: Head, d: Definitions) -> Iterator[Claim]:
    """The two pairings, for free tangents and a free cotangent."""
    left = frobenius(head.jvp(d), head.g, head.ar)
    yield Equal("<JVP(dQ, dK, dV), g> = <dQ, gQ> + <dK, gK> + <dV, gV>", left, _pairing(head, head.backward(d)))


PROOFS = (
    Proof(
        DIFFERENTIABLE,
        differentiable,
        controls(
            "scaledDotProductAttentionJvp",
            wrong.jvp_without_queries,
            wrong.jvp_without_keys,
            wrong.jvp_without_values,
            wrong.jvp_scale_squared,
            wrong.jvp_leaking,
        ),
        symbols=("g", "u"),
        shifted=True,
        over="heads",
        differentiable="scaledDotProductAttention",
    ),
    Proof(
        PAIRING,
        pairing,
        (
            *controls(
                "scaledDotProductAttentionBackward",
                wrong.backward_unscaled,
                wrong.backward_scale_squared,
                wrong.backward_keys_untransposed,
                wrong.backward_mean_centred,
                wrong.backward_leaking,
                wrong.backward_uniform_when_empty,
            ),
            *controls("scaledDotProductAttentionJvp", wrong.jvp_without_keys, wrong.jvp_without_values),
        ),
        symbols=("g", "u"),
        over="heads",
    ),
)
