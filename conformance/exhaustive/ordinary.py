"""The ordinary check, on the rows that the tables leave open: the same oracle, budgets and referee as in every run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...spec.batch import Array, Batch, Bools
from ...spec.contracts import Contract
from ...spec.rounding import RoundingModel
from ..contracted import keep_weights
from ..judgement import by_referee, compare
from ..truth import Truth


@dataclass(frozen=True, eq=False)
class Open:
    """Rows to be decided: scores, mask and answer of shape ``(R, n)``, the answer in the subject's dtype."""

    scores: Array
    mask: Bools
    returned: Array

    @staticmethod
    def joined(parts: list[Open]) -> Open:
        """Several lists as one, in their order."""
        return Open(*(np.concatenate([getattr(p, n) for p in parts]) for n in ("scores", "mask", "returned")))


def batch_of(rows: Open, dtype: str, cotangent: tuple[float, ...] | None, key: str, family: str) -> Batch:
    """The rows as a batch, all of one family."""
    zeros = np.zeros_like(rows.scores)
    vector = zeros if cotangent is None else np.broadcast_to(np.array(cotangent, zeros.dtype), zeros.shape).copy()
    return Batch(
        key=key,
        dtype=dtype,
        scores=rows.scores,
        mask=rows.mask,
        cotangents=vector,
        tangents=zeros,
        family=np.zeros(len(zeros), np.int64),
        families=(family,),
        forward_only=cotangent is None,
    )


def violating(
    rows: Open, dtype: str, rounding: RoundingModel, contract: Contract, cotangent: tuple[float, ...] | None
) -> Bools:
    """Which rows the ordinary check fails: of the weights, or of the VJP where there is a cotangent."""
    with np.errstate(invalid="ignore"):
        return _violating(rows, dtype, rounding, contract, cotangent)


def _violating(
    rows: Open, dtype: str, rounding: RoundingModel, contract: Contract, cotangent: tuple[float, ...] | None
) -> Bools:
    returned = rows.returned.astype(np.float64)
    truth = Truth(batch_of(rows, dtype, cotangent, "open", "open"))
    if cotangent is None:
        judged = compare(truth.weights.weights, returned, truth.budget(rounding).error, by_referee(truth))
    else:
        budget = truth.derivative_budget(rounding, "cotangents").vjp
        judged = compare(truth.derivative("cotangents"), returned, budget, by_referee(truth, "cotangents"))
    bad: Bools = np.any(judged.bad, axis=1)
    empty = truth.batch.empty
    if empty.any():
        bad = np.where(empty, ~keep_weights(contract, returned).kept, bad)
    return bad
