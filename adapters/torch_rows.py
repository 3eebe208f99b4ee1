"""PyTorch on the CPU, eager: the ways in which people write a masked softmax along the last axis.

Forward values of the halves are computed in float32 and rounded once by ``torch.softmax``, and so is its backward
pass; forward-mode derivatives are composed of operations that each round to the half format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ..spec.formats import DTYPES
from .specimens import leaks, policies
from .subject import Array, Bools, Subject
from .torch_arrays import to_numpy, to_torch

Formula = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def torch_subject(id: str, formula: Formula, **declared: Any) -> Subject:
    """A subject with all three methods from one function of tensors, ``formula(scores, mask) -> weights``.

    The VJP is ``torch.autograd.grad``, the JVP ``torch.func.jvp``. ``scores`` and ``mask`` (Boolean, True = allowed)
    are CPU tensors of shape ``(rows, keys)``. ``declared`` are fields of Subject; by default all four dtypes, and
    ``half-ops`` for the forward-mode derivatives of the halves.

    >>> mine = torch_subject("mine.fill", lambda s, m: torch.softmax(s.masked_fill(~m, -torch.inf), -1), contract="nan")
    >>> mine.methods
    ('forward', 'vjp', 'jvp')
    """

    def forward(scores: Array, mask: Bools) -> Array:
        with torch.no_grad():
            return to_numpy(formula(to_torch(scores), to_torch(mask)))

    def vjp(scores: Array, mask: Bools, cotangents: Array) -> Array:
        with torch.enable_grad():
            x = to_torch(scores).requires_grad_()
            weights = formula(x, to_torch(mask))
            (pulled,) = torch.autograd.grad(weights, x, to_torch(cotangents))
        return to_numpy(pulled)

    def jvp(scores: Array, mask: Bools, tangents: Array) -> Array:
        m = to_torch(mask)
        _, pushed = torch.func.jvp(lambda x: formula(x, m), (to_torch(scores),), (to_torch(tangents),))
        return to_numpy(pushed)

    declared = {"dtypes": DTYPES, "tier": {"jvp:half": "half-ops"}, **declared}
    return Subject(id, forward, vjp, jvp, **declared)


def softmax_where(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The double-``where`` form: an empty row is normalised over zeros and then selected away, so nothing is NaN."""
    zero = torch.zeros_like(scores)
    blocked = torch.where(mask.any(-1, keepdim=True), torch.full_like(scores, -torch.inf), zero)
    return torch.where(mask, torch.softmax(torch.where(mask, scores, blocked), -1), zero)


def masked_fill(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The form written most often. An empty row is NaN."""
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1)


def masked_fill_where(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """The form that TorchLean's exporter emits: fill, normalise, and select 0 at blocked keys."""
    return torch.where(mask, masked_fill(scores, mask), torch.zeros_like(scores))


def additive_inf(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Add a bias of ``-inf`` at blocked keys. An empty row is NaN, and so is a row with ``inf`` at a blocked key."""
    return torch.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf), -1)


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """``torch.masked.softmax``, whose mask also means True = allowed. An empty row is NaN."""
    return torch.masked.softmax(scores, -1, mask=mask)


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def subjects() -> list[Subject]:
    """Every PyTorch subject, specimens included."""
    from_output = frozenset({"vjp-from-output"})
    reference = torch_subject(
        "torch.softmax-where",
        softmax_where,
        adapter="torch",
        role="reference",
        promises=from_output | {"isolation", "allowed-nan-visible"},
    )
    entry_points: tuple[tuple[str, Formula, str, str], ...] = (
        ("torch.masked-fill", masked_fill, "nan", "blocked"),
        ("torch.masked-fill-where", masked_fill_where, "zero", "blocked"),
        ("torch.additive-inf", additive_inf, "nan", "additive"),
        ("torch.masked-softmax", masked_softmax, "nan", "allowed"),
    )
    return [
        reference,
        *(
            torch_subject(id, formula, adapter="torch", contract=contract, convention=convention, promises=from_output)
            for id, formula, contract, convention in entry_points
        ),
        *leaks("torch", torch_subject, torch, _softmax),
        *policies(reference),
    ]
