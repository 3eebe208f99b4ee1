"""One row as a residual sees it, in whatever kind of number the engine uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..arithmetic import Arithmetic


@dataclass(frozen=True, eq=False)
class Row:
    """A mask and scores, with two tangents ``u`` and ``v``, a cotangent ``g`` and a shift ``c``.

    All vectors have length ``n``. ``poisons`` are things to write into blocked scores: other values, NaN and
    infinities, or values that raise when they are read.
    """

    family: str
    mask: Sequence[bool]
    x: Sequence[Any]
    ar: Arithmetic
    u: Sequence[Any] = ()
    v: Sequence[Any] = ()
    g: Sequence[Any] = ()
    c: Any = None
    poisons: Sequence[Any] = ()

    @property
    def n(self) -> int:
        """The number of keys."""
        return len(self.mask)

    @property
    def pattern(self) -> tuple[bool, ...]:
        """What tells this row's mask from others."""
        return tuple(self.mask)

    @property
    def allowed(self) -> list[int]:
        """The indices of the allowed keys."""
        return [i for i, m in enumerate(self.mask) if m]

    def total(self, values: Sequence[Any]) -> Any:
        """The sum of the values."""
        result = self.ar.zero
        for value in values:
            result = result + value
        return result

    def inner(self, a: Sequence[Any], b: Sequence[Any]) -> Any:
        """The inner product of two vectors."""
        return self.total([p * q for p, q in zip(a, b, strict=True)])

    def poisoned(self, poison: Any) -> list[Any]:
        """The scores with every blocked one replaced."""
        return [x if m else poison for x, m in zip(self.x, self.mask, strict=True)]
