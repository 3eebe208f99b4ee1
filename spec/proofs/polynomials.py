"""Exact numbers for the symbolic leg: fractions of integer polynomials with tracked denominators.

A score is a formal logarithm ``x_i = log t_i`` of a positive symbol. Subtracting scores divides, the exponential gives
the element back, and every claim becomes an identity of rational functions in the symbols. Numerators are sympy
polynomials over the integers; a denominator is a product of known factors, each a polynomial with positive
coefficients in positive symbols alone, hence nowhere zero. So nothing is ever cancelled, no gcd is computed, and an
identity is decided by comparing two polynomials.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from sympy import ZZ
from sympy.polys.rings import PolyElement, PolyRing

from ..arithmetic import Arithmetic, Mask, Vector

Powers = tuple[tuple[int, int], ...]


class Space:
    """The polynomial ring in ``positive`` symbols (values of exponentials) and ``free`` ones, with its denominators."""

    def __init__(self, positive: tuple[str, ...], free: tuple[str, ...]) -> None:
        self.ring = PolyRing((*positive, *free) or ("unused",), ZZ)
        self.free_from = len(positive)
        self.factors: list[PolyElement] = []
        self._index: dict[PolyElement, int] = {}
        # The same few denominators meet again and again: what to do with each pair is worked out once.
        self.join = cache(self._join)
        self.multiply = cache(self._multiply)
        self.divide = cache(self._divide)
        generators = [Element(self, g, ()) for g in self.ring.gens]
        self.positive = dict(zip(positive, generators, strict=False))
        self.free = dict(zip(free, generators[len(positive) :], strict=False))
        self.zero = Element(self, self.ring.zero, ())

    def constant(self, value: int) -> Element:
        """An integer as an element."""
        return Element(self, self.ring(value), ())

    def factor(self, polynomial: PolyElement) -> int:
        """The number of a denominator factor.

        Raises ZeroDivisionError for a polynomial that is not seen to be positive wherever its symbols are.
        """
        known = self._index.get(polynomial)
        if known is not None:
            return known
        if not is_positive(polynomial, self.free_from):
            raise ZeroDivisionError(f"the denominator {polynomial} may vanish")
        self.factors.append(polynomial)
        self._index[polynomial] = len(self.factors) - 1
        return len(self.factors) - 1

    def product(self, powers: Powers) -> PolyElement | None:
        """The product of factors, or None for the empty product."""
        result: PolyElement | None = None
        for index, exponent in powers:
            for _ in range(exponent):
                result = self.factors[index] if result is None else result * self.factors[index]
        return result

    def _join(self, a: Powers, b: Powers) -> tuple[Powers, PolyElement | None, PolyElement | None]:
        """The least common denominator of two, and what each numerator has to be multiplied by."""
        of_a, of_b = dict(a), dict(b)
        common = {k: max(of_a.get(k, 0), of_b.get(k, 0)) for k in {**of_a, **of_b}}
        lift_a, lift_b = (
            self.product(_powers({k: e - own.get(k, 0) for k, e in common.items()})) for own in (of_a, of_b)
        )
        return _powers(common), lift_a, lift_b

    def _multiply(self, a: Powers, b: Powers) -> Powers:
        """The product of two denominators."""
        product = dict(a)
        for index, exponent in b:
            product[index] = product.get(index, 0) + exponent
        return _powers(product)

    def _divide(self, a: Powers, divisor: int, b: Powers) -> tuple[Powers, PolyElement | None]:
        """The denominator of ``(p / a) / (divisor / b)``, and what the numerator ``p`` has to be multiplied by."""
        below, above = dict(a), dict(b)
        for index, exponent in b:
            shared = min(exponent, below.get(index, 0))
            below[index] = below.get(index, 0) - shared
            above[index] = exponent - shared
        below[divisor] = below.get(divisor, 0) + 1
        return _powers(below), self.product(_powers(above))


def _powers(exponents: dict[int, int]) -> Powers:
    return tuple(sorted((index, exponent) for index, exponent in exponents.items() if exponent))


def is_positive(polynomial: PolyElement, free_from: int) -> bool:
    """Whether a polynomial is a non-empty sum of positive multiples of positive symbols."""
    return bool(polynomial) and all(
        coefficient > 0 and not any(monomial[free_from:]) for monomial, coefficient in polynomial.iterterms()
    )


class Element:
    """A fraction ``numerator / product of factors``; integers mix in."""

    __slots__ = ("numerator", "powers", "space")

    def __init__(self, space: Space, numerator: PolyElement, powers: Powers) -> None:
        self.space = space
        self.numerator = numerator
        self.powers = powers if numerator else ()

    def _combine(self, other: Any, sign: int) -> Any:
        if isinstance(other, int):
            other = self.space.constant(other)
        elif not isinstance(other, Element):
            return NotImplemented
        a, b = self.numerator, other.numerator
        if not b:
            return self
        if not a:
            return other if sign > 0 else -other
        powers = self.powers
        if powers != other.powers:
            powers, lift_a, lift_b = self.space.join(self.powers, other.powers)
            a = a if lift_a is None else a * lift_a
            b = b if lift_b is None else b * lift_b
        return Element(self.space, a + b if sign > 0 else a - b, powers)

    def __add__(self, other: Any) -> Any:
        return self._combine(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, -1)

    def __neg__(self) -> Element:
        return Element(self.space, -self.numerator, self.powers)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._combine(other, 1)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, int):
            return Element(self.space, self.numerator * other, self.powers)
        if not isinstance(other, Element):
            return NotImplemented
        if not self.numerator or not other.numerator:
            return self.space.zero
        powers = self.space.multiply(self.powers, other.powers)
        return Element(self.space, self.numerator * other.numerator, powers)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, int):
            other = self.space.constant(other)
        elif not isinstance(other, Element):
            return NotImplemented
        powers, lift = self.space.divide(self.powers, self.space.factor(other.numerator), other.powers)
        if not self.numerator:
            return self.space.zero
        return Element(self.space, self.numerator if lift is None else self.numerator * lift, powers)

    def __rtruediv__(self, other: int) -> Any:
        return self.space.constant(other) / self

    def is_zero(self) -> bool:
        """Whether the element is zero for all values of the symbols."""
        return not self.numerator

    def is_non_negative(self, strict: bool = False) -> bool:
        """Whether all coefficients are positive, so that the element is positive wherever the positive symbols are."""
        if not self.numerator:
            return not strict
        return is_positive(self.numerator, self.space.free_from)

    def __repr__(self) -> str:
        return f"({self.numerator}) / ({self.space.product(self.powers) or 1})"


class Log:
    """The formal logarithm of a positive element: a symbolic score."""

    __slots__ = ("element",)

    def __init__(self, element: Element) -> None:
        self.element = element

    def __add__(self, other: Any) -> Any:
        return Log(self.element * other.element) if isinstance(other, Log) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return Log(self.element / other.element) if isinstance(other, Log) else NotImplemented

    def __neg__(self) -> Log:
        return Log(1 / self.element)


def exponential(x: Log) -> Element:
    """The exponential of a symbolic score."""
    return x.element


def choose(k: int, mask: Mask, scores: Vector) -> int | None:
    """The index of the k-th allowed key (counted round), None when there is none. Scores are not read."""
    allowed = [i for i, m in enumerate(mask) if m]
    return allowed[k % len(allowed)] if allowed else None


def arithmetic(numbers: Space, k: int) -> Arithmetic:
    """Symbolic arithmetic that subtracts the score of the k-th allowed key."""
    return Arithmetic("symbolic", exponential, numbers.zero, lambda mask, scores: choose(k, mask, scores))


@cache
def space(positive: tuple[str, ...], free: tuple[str, ...]) -> Space:
    """The space of the named symbols, made once so that its denominators are shared."""
    return Space(positive, free)
