"""The symbolic leg: exact identities, for every n and mask at once and by enumeration.

**Every n.** :data:`FOUR` keys are enough: two keys ``i`` and ``j`` that a claim looks at, and a *rest* of two keys
``a`` and ``b``. The definitions read the rest of a row only through sums over its allowed keys ``k``: ``R = sum N_k``
and the weighted remainders ``G = sum N_k g_k``, ``U = sum N_k u_k`` (likewise for ``v``) and the pairings
``X = sum N_k g_k u_k``. Two allowed keys with free symbols take every value of ``(R, G, U, X)`` with ``R > 0``, for
instance ``N_a = G, g_a = 1, N_b = R - G, g_b = 0, u_a = X / G, u_b = (U - X) / (R - G)``. So an identity that holds
for the row ``(i, j, a, b)``, for every mask of it and every choice of the subtracted maximum (inside the rest or not),
holds for every row of any length; ``i = j`` is the case in which a claim looks at one key, a blocked rest is the case
``R = 0``. That the shipped code reads a rest through these sums alone is itself proved, by
:mod:`~hardmask.spec.proofs.collapse`.

**Heads of attention** are enumerated the same way; their symbols are those of
:mod:`~hardmask.spec.proofs.symbolic_heads`, and :mod:`~hardmask.spec.proofs.locality` makes small ones stand for all.

**Enumeration.** Besides, every mask of every length up to ``max_n`` and every index of the maximum, with one symbol per
score and per entry of each tangent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .claims import Claim, NonNegative, Unreadable
from .collapse import Collapse, prove_collapse
from .definitions_record import Definitions
from .head import Head
from .locality import prove_locality
from .polynomials import Element, Log, arithmetic, space
from .proof import Control, Proof
from .row import Row
from .symbolic_heads import GENERIC, heads, sizes

FOUR = 4
CONTROL_LENGTHS = 3
CONTROL_PAIRS = 4
TABLE_LENGTH = 24


@dataclass(frozen=True)
class SymbolicLeg:
    """What the symbolic leg found: counts of what was proved, and the first claim that is false, if any.

    ``generic`` counts identities on generic rows, ``collapse`` those of the lemma that makes them general;
    ``identities``, ``rows`` and ``masks`` count the enumeration up to ``max_n``. A table of Booleans that a length
    alone determines has no generic part; it is enumerated up to :data:`TABLE_LENGTH`.
    """

    generic: int
    collapse: int
    identities: int
    rows: int
    masks: int
    max_n: int
    failure: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every claim was proved, and there was one."""
        return self.failure is None and self.generic + self.identities > 0


def symbolic_row(mask: Sequence[bool], k: int, symbols: Sequence[str]) -> Row:
    """A row of formal logarithms ``log t_i`` with free tangents, of which the k-th allowed score is subtracted."""
    n = len(mask)
    vectors = {name: tuple(f"{name}{i}" for i in range(n)) for name in ("t", "u", "v", "g")}
    free = tuple(s for name in ("u", "v", "g") if name in symbols for s in vectors[name])
    numbers = space((*vectors["t"], *(("shift",) if "c" in symbols else ())), free)

    def vector(name: str) -> tuple[Element, ...]:
        return tuple(numbers.free[s] for s in vectors[name]) if name in symbols else ()

    return Row(
        f"mask {''.join('T' if m else 'F' for m in mask) or 'of length 0'}, maximum at allowed key {k}",
        mask,
        [Log(numbers.positive[s]) for s in vectors["t"]],
        arithmetic(numbers, k),
        vector("u"),
        vector("v"),
        vector("g"),
        Log(numbers.positive["shift"]) if "c" in symbols else None,
        (Unreadable(),),
    )


def rows(proof: Proof, n: int) -> Iterator[Row | Head]:
    """Every row of length n that the enumeration runs over: all masks, and all choices of the maximum.

    For attention, every head with n pairs of a query and a key.
    """
    if proof.attention:
        for shape in sizes(n):
            yield from heads(shape, proof.symbols, proof.shifted, every_mask=proof.over == "heads")
        return
    masks = [(True,) * n] if proof.over == "lengths" else itertools.product((False, True), repeat=n)
    for mask in masks:
        for k in range(max(1, sum(mask)) if proof.shifted else 1):
            yield symbolic_row(mask, k, proof.symbols)


def generic_rows(proof: Proof) -> Iterator[Row | Head]:
    """The rows, or heads, that stand for those of every size."""
    if proof.attention:
        return heads(GENERIC, proof.symbols, proof.shifted, every_mask=proof.over == "heads")
    return rows(proof, FOUR)


def holds(claim: Claim) -> bool:
    """Whether a claim about symbolic elements is an identity (or visibly non-negative)."""
    if isinstance(claim, NonNegative):
        if isinstance(claim.value, Element):
            return claim.value.is_non_negative(claim.strict)
        return bool(claim.value > 0 if claim.strict else claim.value >= 0)
    if isinstance(claim.left, Element) or isinstance(claim.right, Element):
        difference = claim.left - claim.right
        return bool(difference.is_zero())
    return bool(claim.left == claim.right)


def check_row(
    proof: Proof, row: Row | Head, definitions: Definitions, refuting: type[Exception] = ArithmeticError
) -> tuple[int, str | None]:
    """The number of claims proved on a row, and the first false one as a sentence.

    An exception of the type ``refuting``, raised by the definitions, is a false claim too.
    """
    count = 0
    try:
        for claim in proof.residual(row, definitions):
            if not holds(claim):
                return count, f"{claim.label} is false for {row.family}"
            count += 1
    except refuting as error:
        return count, f"{type(error).__name__} for {row.family}: {error}"
    return count, None


def prove_symbolic(proof: Proof, definitions: Definitions, *, max_n: int) -> SymbolicLeg:
    """Prove one declaration for the given definitions, stopping at the first false claim."""
    is_table = proof.over == "lengths" and not proof.shifted
    lengths = range(max(max_n, TABLE_LENGTH) + 1) if is_table else range(max_n + 1)
    lemma = _lemma(proof, is_table)(definitions)
    generic = identities = count = 0
    failure = lemma.failure
    masks: set[tuple[object, ...]] = set()
    for row in () if is_table else generic_rows(proof):
        if failure:
            break
        done, failure = check_row(proof, row, definitions, Exception)
        generic += done
    for row in itertools.chain.from_iterable(rows(proof, n) for n in lengths):
        if failure:
            break
        done, failure = check_row(proof, row, definitions, Exception)
        identities += done
        count += 1
        masks.add(row.pattern)
    return SymbolicLeg(generic, lemma.identities, identities, count, len(masks), lengths[-1], failure)


def _lemma(proof: Proof, is_table: bool) -> Callable[[Definitions], Collapse]:
    """What makes the generic rows of a proof stand for all."""
    if is_table:
        return lambda definitions: Collapse(0)
    return prove_locality if proof.attention else prove_collapse


def rejects(proof: Proof, control: Control) -> bool:
    """Whether the symbolic leg finds a false claim when the control's mistake is in place."""
    definitions = control.apply()
    lengths = (*range(1, (CONTROL_PAIRS if proof.attention else CONTROL_LENGTHS) + 1), 0)
    return any(check_row(proof, row, definitions)[1] for n in lengths for row in rows(proof, n))
