"""Dual numbers: the derivative of the code that is shipped, by forward-mode differentiation.

``value + tangent * e`` with ``e * e = 0``, over any kind of number; nest them for second derivatives. The rules are the
chain rule for ``+ - * /`` and ``exp``, so the derivative is that of the code, the subtracted maximum included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..arithmetic import Arithmetic


class Dual:
    """A number and its derivative. Plain numbers mix in as constants; comparison looks at the value alone."""

    __slots__ = ("tangent", "value")

    def __init__(self, value: Any, tangent: Any) -> None:
        self.value = value
        self.tangent = tangent

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.tangent + other.tangent)
        return Dual(self.value + other, self.tangent)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.tangent)

    def __sub__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value - other.value, self.tangent - other.tangent)
        return Dual(self.value - other, self.tangent)

    def __rsub__(self, other: Any) -> Dual:
        return Dual(other - self.value, -self.tangent)

    def __mul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.tangent * other.value + self.value * other.tangent)
        return Dual(self.value * other, self.tangent * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            quotient = self.value / other.value
            return Dual(quotient, (self.tangent - quotient * other.tangent) / other.value)
        return Dual(self.value / other, self.tangent / other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.value > (other.value if isinstance(other, Dual) else other))


def dual_arithmetic(ar: Arithmetic) -> Arithmetic:
    """The arithmetic of dual numbers over ``ar``."""

    def exp(x: Dual) -> Dual:
        e = ar.exp(x.value)
        return Dual(e, e * x.tangent)

    return Arithmetic(f"dual {ar.name}", exp, Dual(ar.zero, ar.zero), ar.maximum)


def along(
    function: Callable[[Sequence[Any], Arithmetic], Sequence[Any]],
    x: Sequence[Any],
    direction: Sequence[Any],
    ar: Arithmetic,
) -> list[Any]:
    """The derivative of ``function`` at ``x`` along ``direction``; ``function`` takes a vector and an arithmetic.

    >>> import math
    >>> along(lambda y, ar: [ar.exp(y[0]) * y[1]], [0.0, 3.0], [1.0, 1.0], Arithmetic("float", math.exp, 0.0))
    [4.0]
    """
    lifted = [Dual(value, tangent) for value, tangent in zip(x, direction, strict=True)]
    return [out.tangent for out in function(lifted, dual_arithmetic(ar))]
