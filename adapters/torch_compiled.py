"""PyTorch formulas through ``torch.compile``, as its defaults compile them for the CPU.

Forward and VJP run what the compiler makes of the formula and of its backward pass; the JVP is compiled as a whole,
``torch.func.jvp`` included, since forward mode does not pass through a function that is compiled already. The compiler
must take the whole formula (``fullgraph``): what it leaves to eager mode would be judged under the wrong name.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch._dynamo import config as dynamo

from ..spec.formats import DTYPES
from .errors import TargetError, said
from .subject import Array, Bools, Subject
from .torch_arrays import over, to_numpy

Compiled = Callable[..., torch.Tensor]

OPT_IN = "compiling takes a minute or two"

COMPILATIONS = 64
"""How often one function may be compiled, for each dtype and for what the compiler sees as a new kind of shape. Its own
limit of 8 is there to notice functions that never settle."""


def compiled_subject(id: str, formula: Compiled, **declared: Any) -> Subject:
    """A subject that compiles ``formula(scores, mask) -> weights`` before each first use; ``[compile]`` ends its id.

    ``scores`` and ``mask`` (Boolean, True = allowed) are CPU tensors of shape ``(rows, keys)``. It runs only when it is
    named. A method raises TargetError, which becomes a finding, where there is no C++ compiler. ``declared`` are fields
    of Subject; by default all four dtypes, and ``half-ops`` for the forward-mode derivatives of the halves, which the
    compiler computes operation by operation as eager mode does.

    >>> mine = compiled_subject("mine.fill", lambda s, m: torch.softmax(s.masked_fill(~m, -torch.inf), -1))
    >>> mine.id, mine.methods, mine.opt_in
    ('mine.fill[compile]', ('forward', 'vjp', 'jvp'), 'compiling takes a minute or two')
    """

    def tangents_of(scores: torch.Tensor, mask: torch.Tensor, tangents: torch.Tensor) -> torch.Tensor:
        pushed: torch.Tensor = torch.func.jvp(lambda x: formula(x, mask), (scores,), (tangents,))[1]
        return pushed

    weights, push = _compiled(formula), _compiled(tangents_of)

    def forward(scores: Array, mask: Bools) -> Array:
        with torch.no_grad():
            return to_numpy(weights()(over(scores), over(mask)))

    def vjp(scores: Array, mask: Bools, cotangents: Array) -> Array:
        with torch.enable_grad():
            x = over(scores).requires_grad_()
            (pulled,) = torch.autograd.grad(weights()(x, over(mask)), x, over(cotangents))
        return to_numpy(pulled)

    def jvp(scores: Array, mask: Bools, tangents: Array) -> Array:
        return to_numpy(push()(over(scores), over(mask), over(tangents)))

    declared = {"dtypes": DTYPES, "opt_in": OPT_IN, "tier": {"jvp:half": "half-ops"}, **declared}
    return Subject(f"{id}[compile]", forward, vjp, jvp, path="compile", **declared)


def _compiled(function: Compiled) -> Callable[[], Compiled]:
    """The compiled function, made when it is first asked for: the compiler is slow to import."""

    @cache
    def make() -> Compiled:
        if problem := no_compiler():
            raise TargetError(problem)
        made: Compiled = torch.compile(function, fullgraph=True)

        def run(*tensors: torch.Tensor) -> torch.Tensor:
            with dynamo.patch(recompile_limit=COMPILATIONS):
                return made(*tensors)

        return run

    return make


@cache
def no_compiler() -> str:
    """Why nothing can be compiled here; empty where it can."""
    try:
        from torch._inductor.cpp_builder import get_cpp_compiler

        found = get_cpp_compiler()
    except Exception as e:
        return f"torch.compile finds no C++ compiler here ({said(e)}). Install g++, or name one in the variable CXX."
    if shutil.which(found) is None:
        return f"torch.compile needs the C++ compiler '{found}', which is not here. Install it, or name one in CXX."
    return ""
