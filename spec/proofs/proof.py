"""What a theorem module provides: the residual, and the negative controls that both legs must reject."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..declaration import Declaration
from .claims import Claim
from .definitions_record import SHIPPED, Definitions

# Of a Row or, for a proof over heads, of a Head.
Residual = Callable[[Any, Definitions], Iterable[Claim]]
Differentiable = Literal["weights", "hardMaskedSoftmaxVecSpec", "scaledDotProductAttention"]
Symbol = Literal["u", "v", "g", "c"]


@dataclass(frozen=True)
class Control:
    """A deliberate mistake: a name, and the definition that it replaces."""

    name: str
    changes: dict[str, Callable[..., Any]]

    def apply(self, base: Definitions = SHIPPED) -> Definitions:
        """The definitions with the mistake in place."""
        return replace(base, **self.changes)


@dataclass(frozen=True)
class Proof:
    """A declaration with the claims that state it.

    - ``residual(row, definitions)`` yields the claims for one row, or for one head of attention.
    - ``symbols``: which of ``u``, ``v``, ``g``, ``c`` the residual uses; of a head, ``u`` are its three tangents.
    - ``shifted``: whether it depends on the maximum that is subtracted, so that the symbolic leg runs every choice.
    - ``over``: ``"masks"`` enumerates every mask of every length; ``"lengths"`` only the lengths, for claims about
      masks that a length alone determines; ``"heads"`` every mask of small heads of attention,
      ``"sizes"`` only their sizes.
    - ``differentiable``: the function whose remainder is measured.
    """

    declaration: Declaration
    residual: Residual
    controls: tuple[Control, ...]
    symbols: tuple[Symbol, ...] = ()
    shifted: bool = False
    over: Literal["masks", "lengths", "heads", "sizes"] = "masks"
    differentiable: Differentiable | None = None

    @property
    def attention(self) -> bool:
        """Whether the claims are about heads of attention instead of rows."""
        return self.over in ("heads", "sizes")
