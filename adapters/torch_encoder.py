"""The attention inside ``nn.TransformerEncoderLayer``: in training, on the fast path of evaluation, and nested.

A layer adds the attention to its input and normalises the sum twice; its feed-forward part is set to 0 here. Every
token of the input holds a key and a value, zeros where the result is to appear, a 0 and a constant ``C`` beside them.
What comes out is, token by token, one affine function of all these numbers, so that ``C`` and 0 tell which, and the
result follows: ``C (y - y_0) / (y_C - y_0)``. An exact 0 stays one. Two layer norms cost digits; ``fused`` admits them
in float32.

A query stands in the token of a key that it may see, one sequence for each query: the encoder drops padded tokens where
it nests. A query that may see nothing stands in the first token, beside zeros, since what is blocked there is the
layer norms' business otherwise; where the encoder drops that token, its output of zeros is taken for a result of 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from .attention import Attention
from .subject import Array, Bools
from .torch_arrays import over, to_numpy
from .torch_calls import Calls

GROUP = "torch.transformer_encoder_layer"

LIMITS = {
    "grouped heads": "The layer has as many heads of keys as of queries.",
    "values of another width": "The layer makes queries, keys and values of one width.",
    "scale": "The layer fixes its scale; only 1 / sqrt d is written into its projection of the queries.",
    "no keys": "The layer takes no sequence of length 0.",
    "no queries": "Every query is a sequence of its own, and the layer takes no empty batch.",
    "mask per head": "A src_key_padding_mask is the same for all heads.",
    "mask per query": "A src_key_padding_mask is the same for all queries.",
    "head width": "Wide heads make the layer large; up to 16 are tried.",
}
NO_DERIVATIVE = "The derivative of the attention cannot be told from that of the two layer norms."
OTHERS = dict.fromkeys(
    ("float64", "float16", "bfloat16"),
    "The result is read through two layer norms, which cost more digits than a tier of this format admits.",
)


def _width(heads: int, d: int) -> int:
    """Width of a head: a power of 4, so that the layer's own scale is a power of 2, with room for five parts."""
    return next(4**n for n in range(1, 12) if 4**n >= 5 * d and heads * 4**n >= 5 * heads * d + 2)


@lru_cache(maxsize=64)
def _encoder(heads: int, d: int, nested: bool) -> torch.nn.TransformerEncoder:
    """An encoder of one layer. Of every token: keys, values, queries, result (``heads d`` each), then 0 and C."""
    width = _width(heads, d)
    size, part = heads * width, heads * d
    layer = torch.nn.TransformerEncoderLayer(size, heads, 8, dropout=0.0, batch_first=True)
    attention: Any = layer.self_attn
    with torch.no_grad():
        for parameter in (*attention.parameters(), *layer.linear1.parameters(), *layer.linear2.parameters()):
            parameter.zero_()
        factor = d**-0.5 * width**0.5
        for head in range(heads):
            for i in range(d):
                into, of = head * width + i, head * d + i
                attention.in_proj_weight[into, 2 * part + of] = factor
                attention.in_proj_weight[size + into, of] = 1.0
                attention.in_proj_weight[2 * size + into, part + of] = 1.0
                attention.out_proj.weight[3 * part + of, into] = 1.0
    return torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=nested)


def _forward(training: bool, nested: bool) -> Callable[..., Array]:
    def forward(q: Array, k: Array, v: Array, mask: Bools, scale: float) -> Array:
        batch, heads, queries, d = q.shape
        keys, part = k.shape[2], heads * d
        size = heads * _width(heads, d)
        allowed = np.broadcast_to(mask, (batch, heads, queries, keys))[:, 0, 0]
        spot = allowed.argmax(axis=1)
        largest = float(np.abs(v[np.broadcast_to(allowed[:, None, :, None], v.shape)]).max(initial=1.0))
        constant = 2.0 ** np.ceil(np.log2(largest))
        x = np.zeros((batch, queries, keys, size), q.dtype)
        x[..., :part] = _tokens(k)[:, None]
        x[..., part : 2 * part] = _tokens(v)[:, None]
        entry = np.arange(batch)[:, None], np.arange(queries)[None], spot[:, None]
        x[~allowed.any(axis=1), :, 0] = 0.0
        x[(*entry, slice(2 * part, 3 * part))] = _tokens(q)
        x[..., 4 * part + 1] = constant
        blocked = np.repeat(~allowed[:, None], queries, axis=1).reshape(batch * queries, keys)
        encoder = _encoder(heads, d, nested).train(training)
        with torch.set_grad_enabled(training):
            y = to_numpy(encoder(over(x.reshape(batch * queries, keys, size)), src_key_padding_mask=over(blocked)))
        y = y.reshape(batch, queries, -1, size)[entry]
        zero, one = y[..., 4 * part, None], y[..., 4 * part + 1, None]
        dropped = np.all(y == 0.0, axis=-1, keepdims=True)
        moved = y[..., 3 * part : 4 * part] - zero
        result = np.where(dropped, 0, moved / np.where(dropped, 1, one - zero) * constant).astype(q.dtype)
        return np.ascontiguousarray(result.reshape(batch, queries, heads, d).swapaxes(1, 2))

    return forward


def _tokens(array: Array) -> Array:
    """``(B, H, L, d)`` as tokens, ``(B, L, H d)``."""
    batch, heads, length, d = array.shape
    tokens: Array = array.swapaxes(1, 2).reshape(batch, length, heads * d)
    return tokens


def _ran(forward: Callable[..., Array]) -> Callable[[], str]:
    def ran() -> str:
        a = np.ones((2, 2, 2, 4), np.float32)
        mask = np.array([[True, False], [True, True]])[:, None, None]
        with Calls() as calls:
            forward(a, a, a, mask, 0.5)
        names = " ".join(calls.names)
        kind = "the fast path" if "_transformer_encoder_layer_fwd" in names else "the ordinary path"
        return f"{kind}, {'nested' if '_nested_tensor_from_mask' in names else 'padded'}"

    return ran


def subjects() -> list[Attention]:
    """The layer in training, in evaluation, and in evaluation on nested tensors."""
    found = []
    for path, training, nested in (("train", True, False), ("eval", False, False), ("eval,nested", False, True)):
        forward = _forward(training, nested)
        found.append(
            Attention(
                f"torch.transformer_encoder_layer[{path}]",
                forward,
                adapter="torch",
                path=path,
                dtypes=("float32",),
                tier="fused",
                convention="blocked",
                unsupported={"vjp": NO_DERIVATIVE, "jvp": NO_DERIVATIVE, **OTHERS},
                limits=LIMITS,
                widths=lambda d: 0 < d <= 16,
                group=GROUP,
                kernel="By train() and eval() and enable_nested_tensor; the layer itself chooses its fast path.",
                ran=_ran(forward),
            )
        )
    return found
