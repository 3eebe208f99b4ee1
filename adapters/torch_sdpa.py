"""``torch.nn.functional.scaled_dot_product_attention`` on the CPU, kernel by kernel and mask by mask.

PyTorch has two implementations here. MATH is a composite of matrix products and a softmax; it computes the halves in
float32 and rounds once. FLASH goes over tiles with a running maximum, and rounds the numerators of the halves before
the second product. Each is forced, so that PyTorch raises where it would otherwise fall back on the other.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from .attention import Attention
from .torch_calls import NO_FORWARD_MODE, Formula, kernel_of, torch_attention

Bias = Callable[[torch.Tensor, torch.dtype], torch.Tensor]

GROUP = "torch.sdpa"

FLASH_LIMITS = {
    "values of another width": "The FLASH kernel wants values as wide as keys: forced, PyTorch raises 'No available "
    "kernel'.",
}

FORCED = (
    "Forced by torch.nn.attention.sdpa_kernel, which raises where {} cannot run. Without queries or keys no kernel "
    "runs: PyTorch answers with zeros, to which it adds 0 times the sum of all inputs."
)


def boolean(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """The call with the Boolean mask, True = allowed."""
    return scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=_grouped(q, k))


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> torch.Tensor:
    """The call with ``is_causal=True`` and no mask: query ``i`` sees key ``j`` where ``j <= i``."""
    return scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=_grouped(q, k))


def biased(
    bias: Bias, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float
) -> torch.Tensor:
    """The call with a mask in floating point, which is added to the scores."""
    return scaled_dot_product_attention(q, k, v, bias(mask, q.dtype), scale=scale, enable_gqa=_grouped(q, k))


def forced(backend: SDPBackend, call: Formula) -> Formula:
    """The call with one kernel alone permitted. The kernel is a choice of the forward pass; the backward pass follows.

    >>> q = torch.zeros(1, 1, 1, 2)
    >>> forced(SDPBackend.MATH, boolean)(q, q, q, torch.ones(1, 1, 1, 1, dtype=torch.bool), 1.0).tolist()
    [[[[0.0, 0.0]]]]
    """

    def run(*arguments: Any) -> Any:
        with sdpa_kernel([backend]):
            return call(*arguments)

    return run


def filled(constant: float) -> Bias:
    """A bias of 0 where the mask allows and ``constant`` where it blocks; NaN stands for the format's lowest number.

    >>> filled(-1e4)(torch.tensor([True, False]), torch.float32).tolist()
    [0.0, -10000.0]
    """

    def bias(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        value = torch.finfo(dtype).min if constant != constant else constant
        return torch.zeros(mask.shape, dtype=dtype).masked_fill(~mask, value)

    return bias


def zero_one(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """1 where the mask allows, 0 where it blocks: a Boolean mask in floating point, which PyTorch takes for a bias."""
    return mask.to(dtype)


def _grouped(q: torch.Tensor, k: torch.Tensor) -> bool:
    return q.shape[1] != k.shape[1]


_ALONE = {
    "math": (SDPBackend.MATH, {"float32": "strict", "float64": "strict", "half": "mixed"}, {}, {}),
    "flash": (SDPBackend.FLASH_ATTENTION, "fused", FLASH_LIMITS, {"jvp": NO_FORWARD_MODE}),
}
"""Kernel -> how it is forced, its tiers, its limits, and what it does not offer."""


_ROWS: dict[str, Any] = {
    "math": True,
    "flash": {
        "tier": {"float64": "lse", "float32": "lse", "half": "half-ops"},
        "model": {"vjp:half": {"argument": "lse", "online": True}},
    },
}
"""Kernel -> what it declares of the softmax inside. FLASH rebuilds the weights of its backward pass from a log-sum-exp,
also those of the halves, which no tier admits beside the casts."""


def _subject(kernel: str, variant: str, call: Formula, *, grad: bool = False, **declared: Any) -> Attention:
    backend, tier, limits, unsupported = _ALONE[kernel]
    formula = forced(backend, call)
    return torch_attention(
        f"torch.sdpa[{kernel}{variant and ','}{variant}]",
        formula,
        grad=grad,
        **{
            "path": kernel,
            "tier": tier,
            "limits": limits,
            "group": GROUP,
            "kernel": FORCED.format(backend.name),
            "ran": kernel_of(formula, grad=grad),
            **declared,
            "unsupported": {**unsupported, **declared.get("unsupported", {})},
        },
    )


def subjects() -> list[Attention]:
    """Every path of scaled_dot_product_attention, specimens included."""
    additive: dict[str, Any] = {"convention": "additive", "encoding": "additive"}
    specimen: dict[str, Any] = {"convention": "additive", "encoding": "finite", "role": "specimen"}
    small = {"float16": "float16 ends at 65504, so a penalty of -1e9 cannot be written in it."}
    default = torch_attention(
        "torch.sdpa",
        boolean,
        tier="fused",
        group=GROUP,
        kernel="PyTorch chooses: FLASH where it can run, else MATH.",
        ran=kernel_of(boolean),
        unsupported={"jvp": NO_FORWARD_MODE},
    )
    found = [default]
    for kernel in _ALONE:
        found += [
            _subject(kernel, "", boolean, rows=_ROWS[kernel]),
            _subject(kernel, "grad", boolean, grad=True),
            _subject(kernel, "-inf", partial(biased, filled(-torch.inf)), **additive),
            _subject(kernel, "causal", causal, encoding="causal", causal="top-left"),
        ]
    return [
        *found,
        _subject("math", "-1e4", partial(biased, filled(-1e4)), **specimen),
        _subject("math", "-1e9", partial(biased, filled(-1e9)), **specimen, unsupported=small),
        _subject("math", "finfo.min", partial(biased, filled(float("nan"))), **specimen),
        _subject("math", "0/1", partial(biased, zero_one), **specimen),
    ]
