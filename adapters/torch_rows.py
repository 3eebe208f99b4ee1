"""PyTorch on the CPU, eager: the ways in which people write a masked softmax.

Forward values of the halves are computed in float32 and rounded once by ``torch.softmax``, and so is its backward
pass; forward-mode derivatives are composed of operations that each round to the half format. Along any axis but the
last another kernel runs, which rounds the numerators of the halves too.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ..spec.formats import DTYPES
from .specimens import leaks, policies
from .subject import Array, Bools, Subject
from .torch_arrays import over, to_numpy
from .torch_compiled import compiled_subject

Formula = Callable[..., torch.Tensor]

OTHER_AXIS = {"forward:half": "mixed-2", "vjp:half": "mixed-2"}
"""The accuracy of ``torch.softmax`` along any axis but the last."""


def torch_subject(id: str, formula: Formula, **declared: Any) -> Subject:
    """A subject with all three methods from one function of tensors, ``formula(scores, mask) -> weights``.

    The VJP is ``torch.autograd.grad``, the JVP ``torch.func.jvp``. ``scores`` and ``mask`` (Boolean, True = allowed)
    are CPU tensors of shape ``(rows, keys)``, over the memory of the arrays. ``declared`` are fields of Subject; by
    default all four dtypes, and ``half-ops`` for the forward-mode derivatives of the halves. With ``any_axis=True`` the
    formula is called with the axis too, ``formula(scores, mask, dim=axis)``, and the tensors have any rank and strides.

    >>> mine = torch_subject("mine.fill", lambda s, m: torch.softmax(s.masked_fill(~m, -torch.inf), -1), contract="nan")
    >>> mine.methods
    ('forward', 'vjp', 'jvp')
    """

    def along(axis: int) -> Formula:
        return partial(formula, dim=axis) if declared.get("any_axis") else formula

    def forward(scores: Array, mask: Bools, axis: int = -1) -> Array:
        with torch.no_grad():
            return to_numpy(along(axis)(over(scores), over(mask)))

    def vjp(scores: Array, mask: Bools, cotangents: Array, axis: int = -1) -> Array:
        with torch.enable_grad():
            x = over(scores).requires_grad_()
            weights = along(axis)(x, over(mask))
            (pulled,) = torch.autograd.grad(weights, x, over(cotangents))
        return to_numpy(pulled)

    def jvp(scores: Array, mask: Bools, tangents: Array, axis: int = -1) -> Array:
        m, weights = over(mask), along(axis)
        # Forward mode refuses a tensor whose elements share memory, and asks the caller for a copy.
        x = over(scores.copy()) if 0 in scores.strides else over(scores)
        _, pushed = torch.func.jvp(lambda x: weights(x, m), (x,), (over(tangents),))
        return to_numpy(pushed)

    declared = {"dtypes": DTYPES, "tier": {"jvp:half": "half-ops"}, **declared}
    return Subject(id, forward, vjp, jvp, **declared)


def softmax_where(scores: torch.Tensor, mask: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The double-``where`` form: an empty row is normalised over zeros and then selected away, so nothing is NaN."""
    zero = torch.zeros_like(scores)
    blocked = torch.where(mask.expand_as(scores).any(dim, keepdim=True), torch.full_like(scores, -torch.inf), zero)
    return torch.where(mask, torch.softmax(torch.where(mask, scores, blocked), dim), zero)


def masked_fill(scores: torch.Tensor, mask: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The form written most often. An empty row is NaN."""
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), dim)


def masked_fill_where(scores: torch.Tensor, mask: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """The form that TorchLean's exporter emits: fill, normalise, and select 0 at blocked keys."""
    return torch.where(mask, masked_fill(scores, mask, dim), torch.zeros_like(scores))


def additive_inf(scores: torch.Tensor, mask: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Add a bias of ``-inf`` at blocked keys. An empty row is NaN, and so is a row with ``inf`` at a blocked key."""
    return torch.softmax(scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf), dim)


def masked_softmax(scores: torch.Tensor, mask: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """``torch.masked.softmax``, whose mask also means True = allowed. An empty row is NaN."""
    return torch.masked.softmax(scores, dim, mask=mask)


def along_first(formula: Formula) -> Formula:
    """The formula along the first axis: rows become columns at the edge, contiguous as a user would hold them."""
    return lambda scores, mask: formula(scores.t().contiguous(), mask.t().contiguous(), dim=0).t()


def _softmax(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, -1)


def subjects() -> list[Subject]:
    """Every PyTorch subject, specimens included."""
    from_output = frozenset({"vjp-from-output"})
    any_axis: dict[str, Any] = {"any_axis": True, "tier_other_axis": OTHER_AXIS}
    other_axis: dict[str, Any] = {"path": "dim=0", "tier": {"jvp:half": "half-ops", **OTHER_AXIS}}
    reference = torch_subject(
        "torch.softmax-where",
        softmax_where,
        adapter="torch",
        role="reference",
        promises=from_output | {"isolation", "allowed-nan-visible"},
        **any_axis,
    )
    entry_points: tuple[tuple[str, Formula, str, str], ...] = (
        ("torch.masked-fill", masked_fill, "nan", "blocked"),
        ("torch.masked-fill-where", masked_fill_where, "zero", "blocked"),
        ("torch.additive-inf", additive_inf, "nan", "additive"),
        ("torch.masked-softmax", masked_softmax, "nan", "allowed"),
    )
    alike = (("torch.softmax-where", softmax_where, "zero", "allowed"), entry_points[0])
    return [
        reference,
        *(
            torch_subject(
                id, formula, adapter="torch", contract=contract, convention=convention, promises=from_output, **any_axis
            )
            for id, formula, contract, convention in entry_points
        ),
        *(
            torch_subject(
                f"{id}[dim=0]",
                along_first(formula),
                adapter="torch",
                contract=contract,
                convention=convention,
                promises=from_output,
                **other_axis,
            )
            for id, formula, contract, convention in alike
        ),
        *(
            compiled_subject(id, formula, adapter="torch", contract=contract, convention=convention)
            for id, formula, contract, convention in alike
        ),
        *leaks("torch", torch_subject, torch, _softmax),
        *policies(reference),
    ]
