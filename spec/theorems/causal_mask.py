"""The causal mask and its complement, the future: seven small lemmas that share one shape.

They speak of pairs of indices, so a proof runs over every pair of every length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..catalogue import declare
from ..hypotheses import FUTURE, PAST, REAL_SCORES
from ..proofs.claims import Claim, Equal
from ..proofs.definitions_record import Definitions
from ..proofs.matrix import rotations
from ..proofs.proof import Control, Proof, Residual
from ..proofs.row import Row
from ..proofs.wrong import controls, mask_one_late, mask_strict_past, mask_transposed, matrix_inverted_mask

PairRule = Callable[[int, int], bool]


def entries(table: str, where: PairRule, value: PairRule) -> Residual:
    """The residual "for every pair (i, j) with ``where``, entry (i, j) of the table is ``value``"."""

    def residual(row: Row, d: Definitions) -> Iterator[Claim]:
        mask = getattr(d, table)(row.n)
        yield Equal("the table is n x n", [len(line) for line in mask], [row.n] * row.n)
        for i in range(row.n):
            for j in range(row.n):
                if where(i, j):
                    yield Equal(f"{table}[{i}, {j}]", mask[i][j], value(i, j))

    return residual


def future_zero(row: Row, d: Definitions) -> Iterator[Claim]:
    """Zero weight above the diagonal, for a matrix of scores with different rows."""
    scores, _ = rotations(row)
    spec = d.hardMaskedSoftmaxSpec(scores, d.causalMask(row.n), row.ar)
    yield Equal("there are n rows", len(spec), row.n)
    for i in range(row.n):
        for j in range(i + 1, row.n):
            yield Equal(f"causal weight [{i}, {j}] = 0", spec[i][j], row.ar.zero, relative=True)


def _lemma(
    key: str, statement: str, plain: str, table: str, where: PairRule, value: PairRule, *wrong: Callable[..., object]
) -> Proof:
    hypotheses = (FUTURE,) if key.endswith("future") else (PAST,) if key.endswith("past") else ()
    declaration = declare(key, statement=statement, plain=plain, hypotheses=hypotheses)
    return Proof(declaration, entries(table, where, value), controls(table, *wrong), over="lengths")


def _always(i: int, j: int) -> bool:
    return True


def _never(i: int, j: int) -> bool:
    return False


def _past(i: int, j: int) -> bool:
    return not i < j


def _future(i: int, j: int) -> bool:
    return i < j


PROOFS = (
    _lemma(
        "causalMask_get2",
        "causalMask(n)[i, j] is true exactly when j <= i.",
        "The causal mask is transposed, shifted by one, or inverted.",
        "causalMask",
        _always,
        _past,
        mask_strict_past,
        mask_transposed,
        mask_one_late,
    ),
    _lemma(
        "futureMask_get2",
        "futureMask(n)[i, j] is true exactly when i < j.",
        "The table of future positions is transposed, shifted by one, or inverted.",
        "futureMask",
        _always,
        _future,
        mask_strict_past,
        mask_transposed,
    ),
    _lemma(
        "causalMask_blocks_future",
        "causalMask(n)[i, j] = false.",
        "A query can see a later position.",
        "causalMask",
        _future,
        _never,
        mask_transposed,
        mask_one_late,
    ),
    _lemma(
        "causalMask_allows_past",
        "causalMask(n)[i, j] = true.",
        "A query cannot see an earlier position, or itself.",
        "causalMask",
        _past,
        _always,
        mask_strict_past,
        mask_transposed,
    ),
    _lemma(
        "futureMask_marks_future",
        "futureMask(n)[i, j] = true.",
        "A later position is not marked as future.",
        "futureMask",
        _future,
        _always,
        mask_strict_past,
    ),
    _lemma(
        "futureMask_rejects_past",
        "futureMask(n)[i, j] = false.",
        "An earlier position, or the present one, is marked as future.",
        "futureMask",
        _past,
        _never,
        mask_transposed,
        mask_strict_past,
    ),
    Proof(
        declare(
            "hardMaskedSoftmaxSpec_causal_future_zero",
            statement="hardMaskedSoftmaxSpec(S, causalMask(n))[i, j] = 0.",
            plain="Causal attention gives weight to a later position.",
            hypotheses=(REAL_SCORES, FUTURE),
        ),
        future_zero,
        (
            Control("mask transposed", {"causalMask": mask_transposed}),
            Control("mask one late", {"causalMask": mask_one_late}),
            *controls("hardMaskedSoftmaxSpec", matrix_inverted_mask),
        ),
        shifted=True,
        over="lengths",
    ),
)
