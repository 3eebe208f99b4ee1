"""Rows that a certificate holds in full, as arrays; what is malformed is noted instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...spec.batch import Batch, Bools, Floats
from ...spec.formats import FORMATS
from .allowed import DERIVATIVES
from .claims import RowClaim, numbers
from .ledger import Ledger

ENTRIES = ("weights", *DERIVATIVES)
"""Quantities that have a true value, entry by entry."""

QUANTITIES = (*ENTRIES, "row sum", "inner product", "difference", "valid")
NEEDED = {
    "vjp": ("cotangent",),
    "jvp": ("tangent",),
    "inner product": ("cotangent", "tangent", "other"),
    "difference": ("other",),
}
"""Quantity -> the vectors without which it cannot be recomputed."""

LONGEST = 1 << 14
"""Keys of a row that is recomputed, at most; a run has rows of some hundreds, a deep one of a thousand."""


@dataclass(frozen=True, eq=False)
class Row:
    """A claim with its numbers; vectors that the certificate does not hold are None."""

    claim: RowClaim
    scores: Floats
    mask: Bools
    cotangent: Floats | None
    tangent: Floats | None
    returned: Floats
    other: Floats | None

    @property
    def vector(self) -> Floats | None:
        """The vector of the derivative that the enclosures belong to."""
        if self.claim.witness.quantity == "inner product":
            return self.tangent
        return self.cotangent if self.cotangent is not None else self.tangent


def parsed(claim: RowClaim, ledger: Ledger) -> Row | None:
    """The numbers of a claim, None where it is malformed, which is noted, or where there is nothing to recompute."""
    w, keys = claim.witness, claim.witness.keys
    if w.returned is None and claim.verdict == "error":
        ledger.open["rows on which a call raised or returned nothing usable: that takes the framework"] += 1
        return None
    if w.quantity not in QUANTITIES or w.returned is None or w.scores is None or w.mask is None:
        ledger.wrong(claim.where, "The row is not complete: its quantity, scores, mask or returned values are missing.")
        return None
    if keys > LONGEST:
        ledger.open[f"rows of more than {LONGEST} keys"] += 1
        return None
    lists = {"scores": w.scores, "cotangent": w.cotangent, "tangent": w.tangent, "other": w.other}
    wrong = [name for name, values in lists.items() if values is not None and len(values) != keys]
    if len(w.mask) != keys or wrong or len(w.returned) != (1 if w.quantity == "valid" else keys):
        ledger.wrong(claim.where, f"The row has {keys} keys, and not all of its vectors have that length.")
        return None
    if w.index is not None and w.index >= keys:
        ledger.wrong(claim.where, f"The offending key {w.index} is none of the {keys} keys.")
        return None
    missing = [name for name in NEEDED.get(w.quantity, ()) if lists[name] is None]
    if missing:
        ledger.wrong(claim.where, f"The row lacks what its quantity needs: {', '.join(missing)}.")
        return None
    try:
        cotangent, tangent, other = (None if v is None else numbers(v) for v in (w.cotangent, w.tangent, w.other))
        row = Row(claim, numbers(w.scores), np.array(w.mask, bool), cotangent, tangent, numbers(w.returned), other)
    except (ValueError, OverflowError):
        ledger.wrong(claim.where, "A number of the row is no hexadecimal float64.")
        return None
    for name, values in (("score", row.scores), ("cotangent", cotangent), ("tangent", tangent)):
        if values is not None and not _of_format(values, claim.dtype):
            ledger.wrong(claim.where, f"A {name} of the row is no number of {claim.dtype}.")
            return None
    if not _of_format(row.returned, claim.dtype):
        ledger.wrong(claim.where, f"A returned value is no number of {claim.dtype}.")
        return None
    return row


def _of_format(values: Floats, dtype: str) -> bool:
    with np.errstate(all="ignore"):
        return bool(np.array_equal(values.astype(FORMATS[dtype].dtype).astype(np.float64), values, equal_nan=True))


def batch_of(dtype: str, rows: Sequence[Row]) -> Batch:
    """The rows as a batch; vectors are 0 at blocked keys, where no definition reads them, and where there are none."""

    def stored(vectors: Sequence[Floats | None]) -> Floats:
        filled = [np.where(r.mask, 0.0 if v is None else v, 0.0) for r, v in zip(rows, vectors, strict=True)]
        with np.errstate(all="ignore"):
            made: Floats = np.array(filled).reshape(len(rows), -1).astype(FORMATS[dtype].dtype)
        return made

    mask = np.array([r.mask for r in rows]).reshape(len(rows), -1)
    with np.errstate(all="ignore"):
        scores = np.array([r.scores for r in rows]).reshape(mask.shape).astype(FORMATS[dtype].dtype)
    cotangents, tangents = stored([r.cotangent for r in rows]), stored([r.tangent for r in rows])
    return Batch("", dtype, scores, mask, cotangents, tangents, np.zeros(len(rows), np.int64), ("",))
