"""PyTorch attention as subjects: all methods from one function of tensors, and the evidence of which kernel ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..spec.formats import DTYPES
from .attention import Attention, AttentionAnswer
from .subject import Array, Bools
from .torch_arrays import over, to_numpy

Output: TypeAlias = torch.Tensor | tuple[torch.Tensor, torch.Tensor]
Formula = Callable[..., Output]

NO_FORWARD_MODE = (
    "PyTorch has no forward-mode derivative of _scaled_dot_product_flash_attention_for_cpu: torch.func.jvp raises "
    "NotImplementedError."
)


def torch_attention(id: str, formula: Formula, *, grad: bool = False, **declared: Any) -> Attention:
    """An attention subject from ``formula(q, k, v, mask, scale) -> output``, or ``-> (output, weights)``, of tensors.

    ``q``, ``k``, ``v`` and ``mask`` (Boolean, True = allowed) are CPU tensors with four axes, over the memory of the
    arrays; ``scale`` is a float. The VJP is ``torch.autograd.grad``, the JVP ``torch.func.jvp``; a method with a reason
    in ``declared["unsupported"]`` is not offered. ``grad``: whether the forward pass records a graph, as in training;
    otherwise it runs under ``torch.no_grad``. ``declared`` are fields of Attention; by default all four dtypes.

    >>> def attend(q, k, v, mask, scale):
    ...     return torch.softmax((scale * q @ k.mT).masked_fill(~mask, -torch.inf), -1) @ v
    >>> mine = torch_attention("mine.attention", attend, contract="nan")
    >>> mine.methods
    ('forward', 'vjp', 'jvp')
    """
    unsupported: Mapping[str, str] = declared.get("unsupported", {})

    def forward(q: Array, k: Array, v: Array, mask: Bools, scale: float) -> Array | AttentionAnswer:
        with torch.set_grad_enabled(grad):
            tensors = [over(x).requires_grad_(grad) for x in (q, k, v)]
            found = formula(*tensors, over(mask), scale)
        if isinstance(found, torch.Tensor):
            return to_numpy(found)
        return AttentionAnswer(to_numpy(found[0]), to_numpy(found[1]))

    def vjp(q: Array, k: Array, v: Array, mask: Bools, scale: float, cotangent: Array) -> tuple[Array, Array, Array]:
        with torch.enable_grad():
            tensors = [over(x).requires_grad_() for x in (q, k, v)]
            pulled = torch.autograd.grad(_output(formula(*tensors, over(mask), scale)), tensors, over(cotangent))
        d_q, d_k, d_v = (to_numpy(t) for t in pulled)
        return d_q, d_k, d_v

    def jvp(q: Array, k: Array, v: Array, mask: Bools, scale: float, tangents: tuple[Array, Array, Array]) -> Array:
        m = over(mask)
        # Forward mode refuses a tensor whose elements share memory, and asks the caller for a copy.
        tensors = tuple(over(x.copy()) if 0 in x.strides else over(x) for x in (q, k, v))
        along = tuple(over(t) for t in tangents)
        _, pushed = torch.func.jvp(lambda *x: _output(formula(*x, m, scale)), tensors, along)
        return to_numpy(pushed)

    return Attention(
        id,
        forward,
        None if "vjp" in unsupported else vjp,
        None if "jvp" in unsupported else jvp,
        **{"adapter": "torch", "dtypes": DTYPES, **declared},
    )


def _output(found: Output) -> torch.Tensor:
    return found if isinstance(found, torch.Tensor) else found[0]


KERNELS = (
    "aten._native_multi_head_attention",
    "aten._scaled_dot_product_flash_attention_for_cpu",
    "aten._safe_softmax",
    "aten._softmax",
)
"""Operations that tell attention kernels apart, the most telling first. ``_safe_softmax`` is called by the composite
implementation of scaled_dot_product_attention alone, which PyTorch calls MATH."""


def kernel_of(formula: Formula, *, heads: int = 2, grad: bool = False, **sizes: int) -> Callable[[], str]:
    """A function that runs ``formula`` on a small problem and returns which of :data:`KERNELS` the dispatcher called.

    ``heads`` and ``sizes`` (``queries``, ``keys``, ``width``) are those of the problem. The answer is ``none of them``
    where no such operation was called.

    >>> kernel_of(lambda q, k, v, mask, scale: torch.softmax(q @ k.mT, -1) @ v)()
    'aten._softmax'
    """

    def ran() -> str:
        queries, keys, width = sizes.get("queries", 5), sizes.get("keys", 5), sizes.get("width", 4)
        shapes = ((1, heads, queries, width), (1, heads, keys, width), (1, heads, keys, width))
        tensors = [torch.ones(shape, requires_grad=grad) for shape in shapes]
        mask = torch.ones(1, heads, queries, keys, dtype=torch.bool)
        with torch.set_grad_enabled(grad), Calls() as calls:
            formula(*tensors, mask, width**-0.5)
        return next((k for k in KERNELS if any(k in name for name in calls.names)), "none of them")

    return ran


class Calls(TorchDispatchMode):  # type: ignore[misc]  # PyTorch's types are not read
    """Records the operations that reach the dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))
