r"""Heads of attention for the symbolic leg: every entry of queries, keys, values and vectors is a symbol.

A score ``scale sum_a q_a k_a`` is a polynomial, and its exponential is transcendental over the polynomials. So each
product ``scale q_a k_a`` gets a positive symbol for its exponential; the exponential of a whole combination of such
products is the product of powers of these symbols. That is the homomorphism law, true for all real numbers, and the
only thing about ``exp`` that is used; the symbols being free, an identity in them holds for all numbers. The
derivative of a symbol along a tangent, ``D e^s = e^s D s``, comes with dual numbers. So the identities in the entries
of outputs and gradients are identities of rational functions, which :mod:`~hardmask.spec.proofs.polynomials` decides.

**Enumeration.** Every mask of every head with at most ``max_n`` pairs of a query and a key, up to three of either,
heads without queries or keys included.

**Every size.** :data:`GENERIC` heads of one query stand for all, by :mod:`~hardmask.spec.proofs.locality`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from ..arithmetic import Arithmetic
from .head import Head
from .polynomials import Element, Space, choose, space

Sizes = tuple[int, int, int, int]

LONGEST = 3
# (queries, keys, d, dv): two allowed keys beside a blocked one are all that a term can see.
GENERIC: Sizes = (1, 3, 2, 2)
# The heads of the enumeration that are neither the smallest nor small: one feature each keeps polynomials short.
_SMALL = 3


def sizes(n: int) -> Iterator[Sizes]:
    """The heads of the enumeration with ``n`` pairs of a query and a key."""
    if n == 0:
        # Without keys, nothing tells the width of the output, which is 0.
        yield from ((0, 0, 1, 0), (2, 0, 2, 0), (0, 2, 1, 2))
    for queries, keys in itertools.product(range(1, LONGEST + 1), repeat=2):
        if queries * keys == n:
            width = 2 if n < _SMALL else 1
            yield queries, keys, width, width
    if n == 2:
        yield from ((1, 2, 0, 1), (1, 2, 1, 0))


def heads(shape: Sizes, symbols: Sequence[str], shifted: bool, *, every_mask: bool = True) -> Iterator[Head]:
    """A head of each mask (or of the all-true one) and, where it matters, each choice of the subtracted maximum."""
    queries, keys = shape[:2]
    for flat in itertools.product((False, True) if every_mask else (True,), repeat=queries * keys):
        mask = [list(flat[i * keys : (i + 1) * keys]) for i in range(queries)]
        for k in range(max([1, *map(sum, mask)]) if shifted else 1):
            yield symbolic_head(mask, shape, k, tuple(symbols))


def symbolic_head(mask: Sequence[Sequence[bool]], shape: Sizes, k: int, symbols: tuple[str, ...]) -> Head:
    """The head of symbols with that mask, of which the k-th allowed score of every query is subtracted.

    ``symbols`` may hold ``"g"`` for a cotangent and ``"u"`` for tangents.
    """
    queries, keys, d, dv = shape
    numbers, exp = _numbers(shape, symbols)

    def matrix(letter: str, rows: int, columns: int) -> list[list[Element]]:
        return [[numbers.free[f"{letter}{i}{a}"] for a in range(columns)] for i in range(rows)]

    has_g, has_u = "g" in symbols, "u" in symbols
    pattern = "/".join("".join("T" if m else "F" for m in row) for row in mask)
    return Head(
        f"{queries} queries, {keys} keys, widths {d} and {dv}, mask {pattern or 'empty'}, maximum at allowed key {k}",
        mask,
        matrix("q", queries, d),
        matrix("k", keys, d),
        matrix("v", keys, dv),
        numbers.free["c"],
        Arithmetic("symbolic", exp, numbers.zero, lambda row, scores: choose(k, row, scores)),
        matrix("g", queries, dv) if has_g else (),
        matrix("x", queries, d) if has_u else (),
        matrix("y", keys, d) if has_u else (),
        matrix("z", keys, dv) if has_u else (),
        (lambda x: 2 * x, lambda x: -x),
    )


@cache
def _numbers(shape: Sizes, symbols: tuple[str, ...]) -> tuple[Space, Callable[[Any], Element]]:
    """The space of a head's symbols, and its exponential."""
    queries, keys, d, dv = shape
    letters = [("q", queries, d), ("k", keys, d), ("v", keys, dv)]
    letters += [("g", queries, dv)] if "g" in symbols else []
    letters += [("x", queries, d), ("y", keys, d), ("z", keys, dv)] if "u" in symbols else []
    free = tuple(f"{letter}{i}{a}" for letter, rows, columns in letters for i in range(rows) for a in range(columns))
    pairs = list(itertools.product(range(queries), range(keys), range(d)))
    numbers = space(tuple(f"t{i}{j}{a}" for i, j, a in pairs), ("c", *free))
    known = {
        next(iter((numbers.free["c"] * numbers.free[f"q{i}{a}"] * numbers.free[f"k{j}{a}"]).numerator)): f"t{i}{j}{a}"
        for i, j, a in pairs
    }

    @cache
    def of_terms(terms: tuple[tuple[tuple[int, ...], int], ...]) -> Element:
        above, below = numbers.constant(1), numbers.constant(1)
        for monomial, coefficient in terms:
            if monomial not in known:
                raise ArithmeticError("the exponential of something else than a difference of scaled scores")
            for _ in range(abs(int(coefficient))):
                factor = numbers.positive[known[monomial]]
                above, below = (above * factor, below) if coefficient > 0 else (above, below * factor)
        return above / below

    def exp(x: Element) -> Element:
        if x.powers:
            raise ArithmeticError(f"the exponential of {x}, which is no polynomial")
        return of_terms(tuple(sorted(x.numerator.items())))

    return numbers, exp
