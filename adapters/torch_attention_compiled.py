"""scaled_dot_product_attention through ``torch.compile`` and ``torch.export``.

Both are asked for code that holds for all sizes, so that few problems make them start anew. The compiler takes a scale
for a number that varies, which the call does not accept; so what is compiled has the default scale. An exported program
is made for each scale.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend
from torch.nn.functional import scaled_dot_product_attention

from .attention import Attention
from .errors import TargetError
from .torch_calls import NO_FORWARD_MODE, Formula, torch_attention
from .torch_compiled import COMPILATIONS, OPT_IN, no_compiler
from .torch_sdpa import GROUP, forced

COMPILED_JVP = "Forward mode does not pass through a compiled function."
EXPORTED_EMPTY = "An exported program with open sizes holds for sizes from 1 up."


DEFAULT_SCALE = {"scale": "The code is compiled once, with the default scale 1 / sqrt d."}


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The call with the Boolean mask and the default scale."""
    return scaled_dot_product_attention(q, k, v, mask)


def attend_grouped(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The same with fewer heads of keys. Whether there are is no question to ask in a program for all sizes."""
    return scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)


def compiled(wrapped: Callable[[Formula], Formula]) -> Formula:
    """Both calls, wrapped, and compiled as a whole when one is first needed. TargetError where there is no compiler."""

    @cache
    def make(grouped: bool) -> Callable[..., Any]:
        if problem := no_compiler():
            raise TargetError(problem)
        made: Callable[..., Any] = torch.compile(
            wrapped(attend_grouped if grouped else attend), fullgraph=True, dynamic=True
        )
        return made

    def run(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> Any:
        from torch._dynamo import config as dynamo

        with dynamo.patch(recompile_limit=COMPILATIONS, accumulated_recompile_limit=16 * COMPILATIONS):
            return make(q.shape[1] != k.shape[1])(q, k, v, mask)

    return run


class _Attend(torch.nn.Module):  # type: ignore[misc]  # PyTorch's types are not read
    def __init__(self, scale: float, grouped: bool) -> None:
        super().__init__()
        self.scale, self.grouped = scale, grouped

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v, mask, scale=self.scale, enable_gqa=self.grouped)


@cache
def _program(dtype: torch.dtype, grouped: bool, alike: bool, scale: float) -> Any:
    groups, width = 2 if grouped else 4, 8 if alike else 6
    # Sizes differ from each other, or the exporter takes those that are alike for one.
    tensors = [torch.zeros(s, dtype=dtype) for s in ((3, 4, 5, 8), (3, groups, 7, 8), (3, groups, 7, width))]
    mask = torch.ones(3, 4, 5, 7, dtype=torch.bool)
    open_ = dict.fromkeys(range(4), torch.export.Dim.DYNAMIC)
    return torch.export.export(_Attend(scale, grouped), (*tensors, mask), dynamic_shapes=(open_,) * 4).module()


def exported(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, scale: float) -> Any:
    """The call as ``torch.export`` records it, for all sizes."""
    program = _program(q.dtype, q.shape[1] != k.shape[1], q.shape[3] == v.shape[3], scale)
    return program(q, k, v, mask.expand(*q.shape[:3], k.shape[2]))


def subjects() -> list[Attention]:
    """The compiled and the exported paths; all opt in."""
    return [
        torch_attention(
            "torch.sdpa[compile]",
            compiled(lambda call: call),
            path="compile",
            tier="fused",
            group=GROUP,
            kernel="PyTorch chooses inside what it compiles; it cannot be asked which kernel the code calls.",
            unsupported={"jvp": COMPILED_JVP},
            limits=DEFAULT_SCALE,
            opt_in=OPT_IN,
        ),
        torch_attention(
            "torch.sdpa[math,compile]",
            compiled(partial(forced, SDPBackend.MATH)),
            path="compile",
            tier="fused",
            group=GROUP,
            kernel="MATH alone is permitted; the compiler fuses its parts, and it cannot be asked how.",
            unsupported={"jvp": COMPILED_JVP},
            limits=DEFAULT_SCALE,
            opt_in=OPT_IN,
        ),
        torch_attention(
            "torch.sdpa[export]",
            exported,
            path="export",
            tier="fused",
            group=GROUP,
            kernel="The program calls scaled_dot_product_attention, which chooses; it cannot be forced afterwards.",
            unsupported={"jvp": NO_FORWARD_MODE},
            limits={"no keys": EXPORTED_EMPTY, "no queries": EXPORTED_EMPTY},
            opt_in="exporting takes seconds",
        ),
    ]
