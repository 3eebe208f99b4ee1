"""The locality lemma: a term of attention sees one query, at most two keys, one feature and one column of values.

It makes small heads stand for all. For the given definitions, as code, it proves:

- **queries**: the output, its tangent and ``dQ`` at a query are those of the query alone; ``dK`` and ``dV`` are the
  sums over the queries alone;
- **blocked keys**: deleting the blocked keys changes nothing, and their gradients are 0;
- **terms**: for one query with denominator ``D``, all its keys allowed, ``D^2`` times any entry of the output, the
  tangent, ``dQ``, ``dK`` or ``dV`` is a polynomial. Each of its monomials mentions at most two keys, at most one
  feature and at most one column outside the exponentials, counting the key, feature or column to which the entry
  belongs; and the exponentials of whole scores only. The monomials that do not mention a certain key, feature or
  column are exactly those of the head without it.

So take an identity between such entries, or their products with vectors, for a head of any size. It falls apart into
the queries. For one query, times ``D^2``, its monomials each live in a head with two allowed keys (a third may be
blocked), one feature and one column, with the same coefficient; there the identity is proved, hence it holds.

The lemma is proved on heads of two queries and three keys; that the code treats a fourth key as it does the third is
read off its loops, and what the enumeration and the samples of the numeric leg, with up to six keys, speak for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from .collapse import Collapse
from .definitions_record import Definitions
from .head import Head, Rows
from .polynomials import Element
from .symbolic_heads import heads, symbolic_head

_BOTH = ("g", "u")
_KEYS = 3


class _Refuted(ArithmeticError):
    """An identity of the lemma is false."""


@cache
def prove_locality(definitions: Definitions) -> Collapse:
    """Prove the lemma for the given definitions."""
    count = 0
    try:
        for part in (_queries(definitions), _blocked(definitions), _terms(definitions)):
            for name, holds in part:
                if not holds:
                    raise _Refuted(name)
                count += 1
    except Exception as error:  # whatever broken definitions raise, they are not what the lemma says
        return Collapse(count, f"{type(error).__name__.lstrip('_')} in the locality lemma: {error}")
    return Collapse(count)


def _entries(head: Head, d: Definitions) -> dict[str, Rows]:
    """Everything that attention returns."""
    d_q, d_k, d_v = head.backward(d)
    return {"output": head.forward(d), "tangent": head.jvp(d), "dQ": d_q, "dK": d_k, "dV": d_v}


def _equal(left: Any, right: Any) -> bool:
    return bool((left - right).is_zero())


def _queries(d: Definitions) -> Iterator[tuple[str, bool]]:
    """A head of two queries against each alone."""
    for head in heads((2, 2, 1, 1), _BOTH, True):
        whole = _entries(head, d)
        alone = [_entries(head.query(i), d) for i in range(head.queries)]
        for name, rows in whole.items():
            for i, row in enumerate(rows):
                for l, value in enumerate(row):
                    if name in ("dK", "dV"):
                        expected = sum((one[name][i][l] for one in alone), head.ar.zero)
                    else:
                        expected = alone[i][name][0][l]
                    yield f"the {name} is not made of the queries alone for {head.family}", _equal(value, expected)


def _blocked(d: Definitions) -> Iterator[tuple[str, bool]]:
    """A head of one query against the head without its blocked keys."""
    for head in heads((1, _KEYS, 1, 1), _BOTH, True):
        kept = [j for j, m in enumerate(head.mask[0]) if m]
        whole, short = _entries(head, d), _entries(head.with_keys(kept), d)
        for name, rows in whole.items():
            for j, row in enumerate(rows):
                if name in ("dK", "dV"):
                    expected = short[name][kept.index(j)] if j in kept else [head.ar.zero] * len(row)
                else:
                    # Without keys, nothing tells the width of the output, which is 0.
                    expected = short[name][j] or [head.ar.zero] * len(row)
                for value, other in zip(row, expected, strict=True):
                    yield f"the {name} changes when blocked keys go, for {head.family}", _equal(value, other)


def _terms(d: Definitions) -> Iterator[tuple[str, bool]]:
    """The monomials of one query's entries, and what remains of them when a key or a column goes."""
    for chosen in range(_KEYS):
        head = symbolic_head([[True] * _KEYS], (1, _KEYS, 2, 2), chosen, _BOTH)
        whole = _polynomials(head, d)
        for place, terms in whole.items():
            local = all(_is_local(place, term) for term in terms)
            yield f"a term of {place} sees more than two keys, a feature and a column", local
        for gone in range(_KEYS):
            kept = [j for j in range(_KEYS) if j != gone]
            short = _polynomials(head.with_keys(kept), d)
            for (name, i, l), terms in short.items():
                place = (name, kept[i] if name in ("dK", "dV") else i, l)
                remaining = {term: c for term, c in whole[place].items() if gone not in _keys(term)}
                yield f"{place} without key {gone} is not the sum of the other terms", remaining == terms
        for feature in range(2):
            short = _polynomials(_without_feature(head, feature), d)
            for (name, i, l), terms in short.items():
                place = (name, i, 1 - feature if name in ("dQ", "dK") else l)
                remaining = {
                    _without_exponentials(term, feature): c
                    for term, c in whole[place].items()
                    if feature not in _indices(term, "qkxy", -1)
                }
                yield f"{place} without feature {feature} is not the sum of the other terms", remaining == terms
        for column in range(2):
            short = _polynomials(_without_column(head, column), d)
            for (name, i, l), terms in short.items():
                place = (name, i, l if name in ("dQ", "dK") else 1 - column)
                remaining = {term: c for term, c in whole[place].items() if column not in _indices(term, "vzg", -1)}
                yield f"{place} without column {column} is not the sum of the other terms", remaining == terms


Term = tuple[tuple[str, int], ...]
Place = tuple[str, int, int]


def _polynomials(head: Head, d: Definitions) -> dict[Place, dict[Term, int]]:
    """``D^2`` times every entry, as coefficients of monomials in the names of the symbols."""
    numbers = head.q[0][0].space
    # Adding 0 scores: the denominator of this query, as the sum of the exponentials.
    total = sum((head.ar.exp(score) for score in _scores(head)), numbers.zero)
    names = [symbol.name for symbol in numbers.ring.symbols]
    found = {}
    for name, rows in _entries(head, d).items():
        for i, row in enumerate(rows):
            for l, value in enumerate(row):
                found[name, i, l] = _terms_of(value, numbers.factor(total.numerator), names)
    return found


def _terms_of(value: Element, denominator: int, names: Sequence[str]) -> dict[Term, int]:
    """The terms of ``D^2`` times a value, which must have no other denominator and no higher power of it."""
    powers = dict(value.powers)
    exponent = powers.pop(denominator, 0)
    if powers or exponent > 2:
        raise _Refuted(f"the denominator of {value} is not that of its query")
    polynomial = value.numerator
    for _ in range(2 - exponent):
        polynomial = polynomial * value.space.factors[denominator]
    return {
        tuple((name, e) for name, e in zip(names, monomial, strict=True) if e): int(c)
        for monomial, c in polynomial.iterterms()
    }


def _scores(head: Head) -> list[Element]:
    return [sum((head.scale * x * y for x, y in zip(head.q[0], key, strict=True)), head.ar.zero) for key in head.k]


def _cut(rows: Rows, gone: int) -> list[list[Any]]:
    return [[x for l, x in enumerate(row) if l != gone] for row in rows]


def _without_column(head: Head, column: int) -> Head:
    return replace(head, v=_cut(head.v, column), g=_cut(head.g, column), dv=_cut(head.dv, column))


def _without_feature(head: Head, feature: int) -> Head:
    q, k, dq, dk = (_cut(rows, feature) for rows in (head.q, head.k, head.dq, head.dk))
    return replace(head, q=q, k=k, dq=dq, dk=dk)


def _without_exponentials(term: Term, feature: int) -> Term:
    """The term without the part of its exponentials that a feature gives; whole scores are told by the other part."""
    return tuple((name, e) for name, e in term if not (name[0] == "t" and int(name[-1]) == feature))


def _indices(term: Term, letters: str, digit: int) -> set[int]:
    """An index of the symbols with these letters: the name of a symbol is a letter and digits."""
    return {int(name[digit]) for name, _ in term if name[0] in letters and re.search(r"\d", name)}


def _keys(term: Term) -> set[int]:
    return _indices(term, "t", 2) | _indices(term, "kvyz", 1)


def _is_local(place: Place, term: Term) -> bool:
    """Whether a term sees no more than it may; what an entry belongs to counts as seen."""
    name, i, l = place
    exponents = dict(term)
    features, columns = _indices(term, "qkxy", -1), _indices(term, "vzg", -1)
    whole_scores = all(exponents.get(f"t0{j}0", 0) == exponents.get(f"t0{j}1", 0) for j in range(_KEYS))
    few_keys = len(_keys(term) | ({i} if name in ("dK", "dV") else set())) <= 2
    own = features if name in ("dQ", "dK") else columns
    return whole_scores and few_keys and own <= {l} and len(features) <= 1 and len(columns) <= 1
