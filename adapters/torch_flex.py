"""``flex_attention`` on the CPU, uncompiled, with a ``mask_mod`` that looks the mask up in a tensor."""

from __future__ import annotations

import torch

from .attention import Attention
from .torch_calls import torch_attention

NO_VJP = "flex_attention raises on the CPU where a gradient is asked for: it has no backward pass there."
NO_JVP = "torch.func.jvp does not pass through flex_attention: its operator cannot be traced with tangents."

TRACED = 1 << 12
"""How often flex_attention may trace itself anew, as it does for each shape. PyTorch's limit of 8 is there to notice
functions that never settle."""


def flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """The call, with the block mask that ``create_block_mask`` makes of the tensor."""
    from torch._dynamo import config as dynamo
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    (batch, heads, queries, _), keys = q.shape, k.shape[2]
    whole = mask.expand(batch, heads, queries, keys)

    def allowed(b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        return whole[b, h, i, j]

    blocks = create_block_mask(allowed, batch, heads, queries, keys, device="cpu")
    with dynamo.patch(recompile_limit=TRACED, accumulated_recompile_limit=TRACED):
        found: torch.Tensor = flex_attention(
            q, k, v, block_mask=blocks, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )
    return found


def subjects() -> list[Attention]:
    """flex_attention without a compiler around it."""
    return [
        torch_attention(
            "torch.flex_attention",
            flex,
            tier={"float32": "fused", "float64": "fused", "half": "half-ops"},
            group="torch.sdpa",
            kernel="Outside torch.compile flex_attention computes all scores in float32, or in float64; it cannot be "
            "asked, its operator being none that the dispatcher shows.",
            unsupported={"vjp": NO_VJP, "jvp": NO_JVP},
            limits={
                "no keys": "flex_attention raises: it takes the maximum over no keys.",
                "no queries": "create_block_mask raises on no queries.",
            },
            opt_in="it traces every shape anew",
        )
    ]
