"""Drift of the errors beyond what sampling explains: a two-sample test on binned errors, with a derived threshold.

The rows of a run are drawn independently, family by family; the errors inside one row share their normalisation and may
depend on each other in any way. So the independent observations are rows, not entries. For one edge ``x``, the share of
entries with an error up to ``x`` is a weighted mean of what the rows contribute, each between 0 and 1. By Hoeffding's
inequality it lies further than ``t`` from its expectation with a probability of at most ``2 exp(-2 n t²)``, where ``n``
is the effective number of rows, ``1 / Σ w²`` for rows of weight ``w``. Neither the distribution of the errors, nor that
of the rows, which is another one in every family, enters.

Over all ``c`` edges, for the signed errors and for their sizes, and over both samples, the union bound gives: two
samples of one distribution are further apart than ``t(n) + t(m)`` with a probability of at most ``α``, where ``t(n) =
sqrt(ln(4 c / α) / (2 n))``. For entries that are independent and alike, the inequality of Dvoretzky, Kiefer and
Wolfowitz with Massart's constant would save the ``c``, about a sixth of the threshold; for rows that are neither it
does not hold as it stands. Bonferroni divides the level of a whole comparison by the number of records compared. The
bound does not need the two samples to be independent of each other, so it also holds where both runs judged the same
rows: then it is wider than it would have to be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..document import ErrorRecord
from ..spread import CUTS
from .record import Drift, Spread

LEVEL = 1e-3
"""The probability that a comparison reports a drift between runs that draw from the same distributions, at most."""


@dataclass(frozen=True)
class Cut:
    """The largest difference of two shares over some edges, and the edge where it is."""

    size: float = 0.0
    edge: float = 0.0


def edges(record: ErrorRecord) -> list[tuple[float, int]]:
    """The bins in the order of the numbers in them, each by its key.

    Raises ValueError for a key that is no number.
    """
    return sorted((float(edge), count) for edge, count in record.counts.items())


def noise(old: float, new: float, cuts: int, level: float) -> float:
    """What the shares of two samples of one distribution differ by at most, at any of some edges, but for a probability
    of ``level``; ``old`` and ``new`` are the effective numbers of rows.

    >>> round(noise(2000, 2000, 100, 1e-6), 3)
    0.141
    """
    if old <= 0 or new <= 0:
        return math.inf
    log = math.log(4.0 * cuts / level)
    return math.sqrt(log / (2.0 * old)) + math.sqrt(log / (2.0 * new))


def drift(old: ErrorRecord, new: ErrorRecord, level: float) -> Drift | None:
    """What the two samples say about the distributions; None where one of them holds nothing.

    ``level`` is that of this one test. Entries that were no finite number count as larger than any error.
    """
    if not old.entries or not new.entries or not old.rows or not new.rows:
        return None
    shares = _shares(old), _shares(new)
    points = sorted(shares[0].keys() | shares[1].keys())
    signed, grown, shrunk = Cut(), Cut(), Cut()
    at = [0.0, 0.0]
    for edge in points:
        at = [total + share.get(edge, 0.0) for total, share in zip(at, shares, strict=True)]
        signed = max(signed, Cut(abs(at[1] - at[0]), edge), key=lambda cut: cut.size)
    sizes = sorted({abs(edge) for edge in points}, reverse=True)
    beyond = [0.0, 0.0]
    for larger, size in zip(sizes, [*sizes[1:], -1.0], strict=True):
        beyond = [
            total + sum(share.get(edge, 0.0) for edge in {larger, -larger})
            for total, share in zip(beyond, shares, strict=True)
        ]
        if size < 0.0:
            break  # beyond no size at all: the whole
        more = beyond[1] - beyond[0]
        grown = max(grown, Cut(more, size), key=lambda cut: cut.size)
        shrunk = max(shrunk, Cut(-more, size), key=lambda cut: cut.size)
    return Drift(
        distance=max(signed.size, grown.size, shrunk.size),
        noise=noise(old.effective_rows, new.effective_rows, CUTS, level),
        level=level,
        grown=grown.size,
        grown_beyond=grown.edge,
        shrunk=shrunk.size,
        shrunk_beyond=shrunk.edge,
        old=_spread(old),
        new=_spread(new),
    )


def _shares(record: ErrorRecord) -> dict[float, float]:
    shares = {edge: count / record.entries for edge, count in edges(record)}
    shares[math.inf] = shares.get(math.inf, 0.0) + record.unusable / record.entries
    return shares


def _spread(record: ErrorRecord) -> Spread:
    binned = edges(record)
    return Spread(
        entries=record.entries,
        rows=record.rows,
        unusable=record.unusable,
        least=record.least,
        largest=record.largest,
        above=sum(count for edge, count in binned if edge > 0.0) / record.entries,
        below=sum(count for edge, count in binned if edge < 0.0) / record.entries,
        quantiles=record.quantiles,
    )
