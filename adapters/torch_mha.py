"""``torch.nn.MultiheadAttention`` on the CPU, with projections that change nothing.

The input projections are identities, so are the output's, and the biases are 0: the module computes attention itself.
In training mode, or where a gradient is asked for, it multiplies matrices if the weights are wanted, and calls
scaled_dot_product_attention if not. In evaluation mode, without gradients, on one and the same tensor as query, key and
value, an even number of heads goes to a kernel of its own. There queries, keys and values stand side by side in the one
tensor, and the projections pick them apart: heads are four times as wide then, so that the scale stays right when
queries are doubled, which is exact.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch.nn import MultiheadAttention
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import pad

from .attention import Attention
from .torch_calls import NO_FORWARD_MODE, Formula, Output, kernel_of, torch_attention

GROUP = "torch.multihead_attention"

LIMITS = {
    "grouped heads": "nn.MultiheadAttention has as many heads of keys as of queries.",
    "values of another width": "nn.MultiheadAttention makes queries, keys and values of one width.",
    "scale": "nn.MultiheadAttention fixes the scale to 1 / sqrt d.",
}
PADDING = {
    "mask per head": "A key_padding_mask is the same for all heads.",
    "mask per query": "A key_padding_mask is the same for all queries.",
}
NO_KEYS = {"no keys": "nn.MultiheadAttention raises: it cannot reshape keys of 0 elements."}
TOGETHER = {"no keys": "In self-attention there are as many keys as queries, and the keys added here count as blocked."}
NO_GRADIENT = "The fast path is taken only where no gradient is asked for."

HALF_OPS = {"float32": "strict", "float64": "strict", "half": "half-ops"}


def apart(*, weights: bool, padding: bool = False) -> Formula:
    """Attention by the module in training mode, on three tensors; with ``padding`` through ``key_padding_mask``."""

    def formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> Output:
        batch, heads, queries, width = q.shape
        module = _identity(heads, width, q.dtype)
        # Without the weights MATH could be chosen too; to permit FLASH alone makes PyTorch raise instead.
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):
            output, seen = module(
                *(_joined(x) for x in (q, k, v)),
                need_weights=weights,
                average_attn_weights=False,
                **_blocked(mask, (batch, heads, queries, k.shape[2]), padding),
            )
        split = _split(output, heads)
        return (split, seen) if weights else split

    return formula


def together(*, even: bool, weights: bool, padding: bool = False) -> Formula:
    """Self-attention by the module in evaluation mode; a head of zeros makes the number of heads even, or odd.

    Where there are fewer queries than keys, or the reverse, the shorter are padded with zeros, as in a batch.
    """

    def formula(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> Output:
        (batch, heads, queries, width), keys = q.shape, k.shape[2]
        more = int(even == bool(heads % 2))
        length = max(queries, keys)
        q, k, v = (pad(x, (0, 0, 0, length - x.shape[2], 0, more)) for x in (q, k, v))
        # Queries that are added see the keys that were there, so that they are not empty; added keys are blocked.
        mask = pad(mask.expand(batch, heads, queries, keys), (0, 0, 0, length - queries, 0, more), value=True)
        mask = pad(mask, (0, length - keys), value=False)
        module = _side_by_side(heads + more, width, q.dtype)
        x = torch.cat([_joined(t) for t in (q, k, v, torch.zeros_like(q))], -1)
        output, seen = module(
            x,
            x,
            x,
            need_weights=weights,
            average_attn_weights=False,
            **_blocked(mask, mask.shape, padding),
        )
        split = _split(output[..., : (heads + more) * width], heads + more)[:, :heads, :queries]
        return (split, seen[:, :heads, :queries, :keys]) if weights else split

    return formula


def _blocked(mask: torch.Tensor, shape: tuple[int, ...], padding: bool) -> dict[str, torch.Tensor]:
    """The module's own mask, where True = blocked."""
    batch, heads, queries, keys = shape
    if padding:
        return {"key_padding_mask": ~mask[:, 0, :1].all(1).expand(batch, keys)}
    return {"attn_mask": ~mask.expand(shape).reshape(batch * heads, queries, keys)}


def _joined(x: torch.Tensor) -> torch.Tensor:
    """``(B, H, L, d)`` as ``(B, L, H d)``."""
    batch, heads, length, width = x.shape
    return x.transpose(1, 2).reshape(batch, length, heads * width)


def _split(x: torch.Tensor, heads: int) -> torch.Tensor:
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)


@cache
def _identity(heads: int, width: int, dtype: torch.dtype) -> MultiheadAttention:
    module = _blank(heads, heads * width, dtype)
    one = torch.eye(heads * width, dtype=dtype)
    module.in_proj_weight.data.copy_(one.repeat(3, 1))
    module.out_proj.weight.data.copy_(one)
    return module.train()


@cache
def _side_by_side(heads: int, width: int, dtype: torch.dtype) -> MultiheadAttention:
    """The input is ``[q, k, v, 0]``, each of width ``H d``; the output is in the first ``H d`` columns."""
    size = heads * width
    module = _blank(heads, 4 * size, dtype)
    columns = torch.arange(size)
    # Head h owns the rows 4 d h to 4 d (h + 1) of a projection; the first d of them are used.
    rows = (columns // width) * 4 * width + columns % width
    for part, factor in enumerate((2.0, 1.0, 1.0)):
        module.in_proj_weight.data[part * 4 * size + rows, part * size + columns] = factor
    module.out_proj.weight.data[columns, rows] = 1.0
    return module.eval()


def _blank(heads: int, size: int, dtype: torch.dtype) -> MultiheadAttention:
    module = MultiheadAttention(size, heads, batch_first=True, dtype=dtype)
    for parameter in module.parameters():
        parameter.requires_grad_(False).zero_()
    return module


def _subject(variant: str, formula: Formula, heads: int = 2, **declared: Any) -> Attention:
    return torch_attention(
        f"torch.multihead_attention[{variant}]",
        formula,
        **{
            "convention": "blocked",
            "group": GROUP,
            "ran": kernel_of(formula, heads=heads),
            **declared,
            "limits": {**LIMITS, **declared.get("limits", {})},
        },
    )


def subjects() -> list[Attention]:
    """Every path of nn.MultiheadAttention."""
    found = []
    eval_only = {"vjp": NO_GRADIENT, "jvp": NO_GRADIENT}
    for padding in (False, True):
        by, masks = (",key-padding", PADDING) if padding else ("", {})
        found += [
            _subject(
                f"train,weights{by}",
                apart(weights=True, padding=padding),
                path="train",
                contract="nan",
                tier=HALF_OPS,
                limits=masks,
                kernel="need_weights=True: matrix products and torch.softmax.",
            ),
            _subject(
                f"train{by}",
                apart(weights=False, padding=padding),
                path="train",
                tier="fused",
                limits={**masks, **NO_KEYS},
                kernel="need_weights=False: scaled_dot_product_attention, FLASH alone being permitted.",
                unsupported={"jvp": NO_FORWARD_MODE},
            ),
            _subject(
                f"eval,even-heads,weights{by}",
                together(even=True, weights=True, padding=padding),
                path="eval",
                contract="nan",
                tier=HALF_OPS,
                limits={**masks, **TOGETHER},
                kernel="Evaluation mode, an even number of heads: _native_multi_head_attention.",
                unsupported=eval_only,
            ),
            _subject(
                f"eval,even-heads{by}",
                together(even=True, weights=False, padding=padding),
                path="eval",
                contract="nan",
                tier=HALF_OPS,
                limits={**masks, **TOGETHER},
                kernel="Evaluation mode, an even number of heads: _native_multi_head_attention.",
                unsupported=eval_only,
            ),
            _subject(
                f"eval,odd-heads{by}",
                together(even=False, weights=False, padding=padding),
                path="eval",
                tier="fused",
                limits=masks,
                kernel="Evaluation mode, an odd number of heads: scaled_dot_product_attention, which chooses FLASH.",
                unsupported=eval_only,
            ),
        ]
    return found
