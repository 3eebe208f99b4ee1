"""An all-true mask is no mask, for attention, its backward and its forward-mode derivative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..catalogue import declare
from ..hypotheses import ALL_ALLOWED, REAL_SCORES
from ..proofs import wrong_attention as wrong
from ..proofs.claims import Claim
from ..proofs.definitions_record import Definitions
from ..proofs.head import Head, same
from ..proofs.proof import Control, Proof
from ..proofs.wrong import controls
from .all_true import mask_without_last_key

PLAIN = "Passing a mask that allows everything changes the answer of attention"
FORWARD = declare(
    "scaledDotProductAttention_allTrueMask",
    statement="scaledDotProductAttention(Q, K, V, allTrueMask) = scaledDotProductAttention(Q, K, V) without a mask.",
    plain=f"{PLAIN}.",
    hypotheses=(REAL_SCORES, ALL_ALLOWED),
)
BACKWARD = declare(
    "scaledDotProductAttentionBackward_allTrueMask",
    statement="scaledDotProductAttentionBackward(Q, K, V, allTrueMask, g) = the same without a mask: dQ, dK and dV.",
    plain=f"{PLAIN}'s gradients.",
    hypotheses=(REAL_SCORES, ALL_ALLOWED),
)
JVP = declare(
    "scaledDotProductAttentionJvp_allTrueMask",
    statement="scaledDotProductAttentionJvp(Q, K, V, allTrueMask, dQ, dK, dV) = the same without a mask.",
    plain=f"{PLAIN}'s forward-mode derivative.",
    hypotheses=(REAL_SCORES, ALL_ALLOWED),
)


def _open(head: Head, d: Definitions) -> Head:
    return replace(head, mask=d.allTrueMask(head.queries, head.keys))


def forward(head: Head, d: Definitions) -> Iterator[Claim]:
    """The output with every pair allowed against the softmax of all scores."""
    expected = d.unmasked_attention(head.q, head.k, head.v, head.scale, head.ar)
    yield from same("O", _open(head, d).forward(d), expected)


def backward(head: Head, d: Definitions) -> Iterator[Claim]:
    """The gradients with every pair allowed against those without a mask."""
    expected = d.unmasked_backward(head.q, head.k, head.v, head.scale, head.g, head.ar)
    for name, left, right in zip(("dQ", "dK", "dV"), _open(head, d).backward(d), expected, strict=True):
        yield from same(name, left, right)


def jvp(head: Head, d: Definitions) -> Iterator[Claim]:
    """The tangent with every pair allowed against that without a mask."""
    expected = d.unmasked_jvp(head.q, head.k, head.v, head.scale, (head.dq, head.dk, head.dv), head.ar)
    yield from same("tangent of O", _open(head, d).jvp(d), expected)


SHORT = Control("mask without last key", {"allTrueMask": mask_without_last_key})
PROOFS = (
    Proof(
        FORWARD,
        forward,
        (
            *controls(
                "scaledDotProductAttention",
                wrong.attention_inverted_mask,
                wrong.attention_normalised_jointly,
                wrong.attention_scale_on_the_output,
            ),
            *controls("unmasked_attention", wrong.unmasked_without_last_key),
            SHORT,
        ),
        over="sizes",
    ),
    Proof(
        BACKWARD,
        backward,
        (
            *controls(
                "scaledDotProductAttentionBackward",
                wrong.backward_unscaled,
                wrong.backward_mean_centred,
                wrong.backward_keys_untransposed,
                wrong.backward_normalised_jointly,
            ),
            SHORT,
        ),
        symbols=("g",),
        over="sizes",
    ),
    Proof(
        JVP,
        jvp,
        (
            *controls(
                "scaledDotProductAttentionJvp",
                wrong.jvp_without_keys,
                wrong.jvp_without_values,
                wrong.jvp_scale_squared,
            ),
            SHORT,
        ),
        symbols=("u",),
        over="sizes",
    ),
)
