"""One head of attention as a residual sees it, in whatever kind of number the engine uses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..arithmetic import Arithmetic
from .claims import Claim, Equal
from .definitions_record import Definitions
from .dual import Dual, dual_arithmetic

Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Head:
    """Queries ``q`` ``(Lq, d)``, keys ``k`` ``(Lk, d)``, values ``v`` ``(Lk, dv)``, a mask ``(Lq, Lk)`` and a scale.

    With the cotangent ``g`` ``(Lq, dv)`` of the output and tangents ``dq``, ``dk``, ``dv`` of ``q``, ``k``, ``v``.
    ``others`` make another number of one, to be written where nothing should be read.
    """

    family: str
    mask: Sequence[Sequence[bool]]
    q: Rows
    k: Rows
    v: Rows
    scale: Any
    ar: Arithmetic
    g: Rows = ()
    dq: Rows = ()
    dk: Rows = ()
    dv: Rows = ()
    others: Sequence[Callable[[Any], Any]] = ()

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.q)

    @property
    def keys(self) -> int:
        """The number of keys."""
        return len(self.k)

    @property
    def width(self) -> int:
        """The width of the output; 0 without keys, for then no value tells it."""
        return len(self.v[0]) if self.v else 0

    @property
    def pattern(self) -> tuple[Any, ...]:
        """What tells this head's mask from others."""
        return (self.queries, self.keys, *(m for row in self.mask for m in row))

    @property
    def empty(self) -> list[int]:
        """The queries without an allowed key."""
        return [i for i, row in enumerate(self.mask) if not any(row)]

    @property
    def unseen(self) -> list[int]:
        """The keys that no query may see."""
        return [j for j in range(self.keys) if not any(row[j] for row in self.mask)]

    def forward(self, d: Definitions) -> Rows:
        """The output."""
        return d.scaledDotProductAttention(self.q, self.k, self.v, self.mask, self.scale, self.ar)

    def backward(self, d: Definitions) -> tuple[Rows, Rows, Rows]:
        """The gradients of queries, keys and values."""
        gradients: tuple[Rows, Rows, Rows] = d.scaledDotProductAttentionBackward(
            self.q, self.k, self.v, self.mask, self.scale, self.g, self.ar
        )
        return gradients

    def jvp(self, d: Definitions) -> Rows:
        """The tangent of the output."""
        tangents = (self.dq, self.dk, self.dv)
        return d.scaledDotProductAttentionJvp(self.q, self.k, self.v, self.mask, self.scale, tangents, self.ar)

    def slope(self, function: Callable[[Head], Rows]) -> list[list[Any]]:
        """The derivative of a function of the head along its tangents, by forward-mode differentiation of the code."""

        def lifted(values: Rows, tangents: Rows) -> list[list[Dual]]:
            return [[Dual(x, t) for x, t in zip(*rows, strict=True)] for rows in zip(values, tangents, strict=True)]

        moving = replace(
            self,
            q=lifted(self.q, self.dq),
            k=lifted(self.k, self.dk),
            v=lifted(self.v, self.dv),
            scale=Dual(self.scale, self.ar.zero),
            ar=dual_arithmetic(self.ar),
        )
        return [[x.tangent for x in row] for row in function(moving)]

    def query(self, i: int) -> Head:
        """Query ``i`` alone."""
        one = slice(i, i + 1)
        return replace(self, mask=self.mask[one], q=self.q[one], g=self.g[one], dq=self.dq[one])

    def only(self, i: int) -> Head:
        """The head with a cotangent that is 0 at every other query."""
        zero = self.ar.zero
        return replace(self, g=[row if r == i else [zero for _ in row] for r, row in enumerate(self.g)])

    def with_keys(self, kept: Sequence[int]) -> Head:
        """The head with these keys alone."""

        def chosen(rows: Rows) -> list[Sequence[Any]]:
            return [rows[j] for j in kept] if rows else []

        mask = [[row[j] for j in kept] for row in self.mask]
        return replace(self, mask=mask, k=chosen(self.k), v=chosen(self.v), dk=chosen(self.dk), dv=chosen(self.dv))

    def rewritten(self, j: int, other: Callable[[Any], Any]) -> Head:
        """The head with another key and another value at ``j``."""
        return replace(
            self,
            k=[[other(x) for x in row] if r == j else row for r, row in enumerate(self.k)],
            v=[[other(x) for x in row] if r == j else row for r, row in enumerate(self.v)],
        )


def frobenius(a: Rows, b: Rows, ar: Arithmetic) -> Any:
    """The sum of the products of the entries."""
    total = ar.zero
    for left, right in zip(a, b, strict=True):
        for x, y in zip(left, right, strict=True):
            total = total + x * y
    return total


def same(what: str, left: Rows, right: Rows, *, relative: bool = False) -> Iterator[Claim]:
    """The claims that two matrices have one shape and the same entries."""
    yield Equal(f"{what} has its shape", [len(row) for row in left], [len(row) for row in right])
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        for j, (x, y) in enumerate(zip(a, b, strict=True)):
            yield Equal(f"{what}[{i}, {j}]", x, y, relative)


def zero(what: str, row: Sequence[Any], ar: Arithmetic) -> Iterator[Claim]:
    """The claims that every entry of a row is exactly 0."""
    for l, x in enumerate(row):
        yield Equal(f"{what}[{l}] = 0", x, ar.zero, relative=True)
