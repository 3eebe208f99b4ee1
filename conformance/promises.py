"""Optional promises: statements about numbers that are not real, which no theorem makes.

They are always measured and reported as a fact. They fail a subject only if it declares them, or under ``--require``.
"""

from __future__ import annotations

from ..spec.catalogue import declarations
from ..spec.declaration import Declaration

ALLOWED_NAN_VISIBLE = Declaration(
    key="allowed_nan_visible",
    name="extension:allowed-nan-visible",
    kind="extension",
    module=None,
    statement="If an allowed score of a row is NaN, the returned weights of that row contain a NaN.",
    plain="A genuine NaN in an allowed place is swallowed, and the row looks healthy.",
    derivation="A promise, not a theorem: the theorems speak of real scores. It keeps an upstream fault visible.",
)

ISOLATION = Declaration(
    key="isolation",
    name="extension:isolation",
    kind="extension",
    module=None,
    statement="A NaN cotangent or tangent at a blocked key changes neither VJP nor JVP: they are those of a 0 in its "
    "place, and zero on a row without an allowed key.",
    plain="Garbage in a blocked entry of a cotangent or a tangent reaches a gradient.",
    derivation="A promise, not a theorem: blocked entries count for nothing where they are real. The formula, run in "
    "floats, multiplies a zero weight by NaN, which is NaN.",
)

ATTENTION_ISOLATION = Declaration(
    key="attention_isolation",
    name="extension:attention-isolation",
    kind="extension",
    module=None,
    statement="Output and gradients are, bit for bit, those of a zero fill, whatever stands in keys and values that no "
    "query may see (NaN, infinities, numbers whose products overflow) and in the cotangents of queries that may see "
    "nothing.",
    plain="Garbage in padding, or in a gradient that nobody asked for, reaches results that look healthy.",
    derivation="A promise, not a theorem: 0 times a real number is 0. The definitions, run in floats, multiply a zero "
    "weight by NaN, which is NaN.",
)

ATTENTION_ALLOWED_NAN_VISIBLE = Declaration(
    key="attention_allowed_nan_visible",
    name="extension:attention-allowed-nan-visible",
    kind="extension",
    module=None,
    statement="A NaN in a query, or in a key or value that a query may see, reaches the output of that query.",
    plain="A genuine NaN in an allowed place is swallowed, and the output looks healthy.",
    derivation="A promise, not a theorem: the theorems speak of real numbers. It keeps an upstream fault visible.",
)

PROMISES: dict[str, Declaration] = {
    d.key: d for d in (ISOLATION, ALLOWED_NAN_VISIBLE, ATTENTION_ISOLATION, ATTENTION_ALLOWED_NAN_VISIBLE)
}


def declared(key: str) -> Declaration:
    """The declaration or promise of a key."""
    return PROMISES.get(key) or declarations()[key]
