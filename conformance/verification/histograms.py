"""The distributions of errors in a certificate: every histogram is one, and its quantiles are those of its bins."""

from __future__ import annotations

import math
from collections import Counter

from ..document import Certificate, ErrorRecord
from ..spread import bin_of
from .claims import CLOSE
from .ledger import Ledger


def check_histograms(certificate: Certificate, ledger: Ledger) -> None:
    """Note every histogram that contradicts itself."""
    seen = set()
    for e in certificate.errors:
        where = f"errors ({e.subject} · {e.declaration} · {e.dtype})"
        name = e.subject, e.declaration, e.dtype
        ledger.expect(name not in seen, where, "It is listed twice.")
        seen.add(name)
        _histogram(e, where, ledger)
        ledger.checked["histograms: sums, edges, quantiles"] += 1
    _judged(certificate, ledger)
    digests = [(o.subject, o.dtype, o.quantity, o.family) for o in certificate.outputs]
    ledger.expect(len(set(digests)) == len(digests), "outputs", "One output is listed twice.")
    ledger.checked["digests of outputs, each listed once"] += len(digests)


def _judged(certificate: Certificate, ledger: Ledger) -> None:
    """No more errors were counted than entries were judged, nor did more rows give them."""
    entries: Counter[tuple[str, str, str]] = Counter()
    rows: Counter[tuple[str, str, str]] = Counter()
    for f in certificate.findings:
        name = f.subject, f.declaration, f.dtype
        entries[name] += f.elements
        rows[name] += f.checked
    for e in certificate.errors:
        name = e.subject, e.declaration, e.dtype
        where = f"errors ({e.subject} · {e.declaration} · {e.dtype})"
        ledger.expect(
            e.entries <= entries[name], where, f"{e.entries} errors, and {entries[name]} entries were judged."
        )
        ledger.expect(e.rows <= rows[name], where, f"{e.rows} rows, and {rows[name]} were judged.")
        ledger.expect(0.0 <= e.effective_rows <= e.rows * (1.0 + CLOSE), where, "More rows count than there are.")


def _histogram(e: ErrorRecord, where: str, ledger: Ledger) -> None:
    total = sum(e.counts.values())
    ledger.expect(
        total + e.unusable == e.entries, where, f"{total} errors and {e.unusable} others are not {e.entries}."
    )
    bins = {edge: bin_of(edge) for edge in e.counts}
    bad = [edge for edge, bounds in bins.items() if bounds is None]
    if not ledger.expect(not bad, where, f"'{bad[0] if bad else ''}' is no edge of a bin."):
        return
    filled = sorted((bounds, e.counts[edge]) for edge, bounds in bins.items() if bounds is not None and e.counts[edge])
    if not filled:
        ledger.expect(e.least is None and e.largest is None, where, "There is no error, and an extreme one.")
        return
    if e.least is None or e.largest is None:
        ledger.wrong(where, "The extreme errors are missing.")
        return
    (lowest, _), (highest, _) = filled[0], filled[-1]
    ledger.expect(_inside(e.least, lowest), where, f"The least error {e.least:.6g} is not in the lowest bin.")
    ledger.expect(_inside(e.largest, highest), where, f"The largest error {e.largest:.6g} is not in the highest bin.")
    _quantiles(e, filled, where, ledger)


def _quantiles(e: ErrorRecord, filled: list[tuple[tuple[float, float], int]], where: str, ledger: Ledger) -> None:
    """Each quantile lies in the bin that holds its rank, or in the next, where the rank is on an edge."""
    total = sum(count for _, count in filled)
    last = -math.inf
    try:
        ordered = sorted((float(share), value) for share, value in e.quantiles.items())
    except ValueError:
        ledger.wrong(where, "A quantile is of no percentage.")
        return
    for share, value in ordered:
        if not 0.0 <= share <= 100.0:
            ledger.wrong(where, f"There is no quantile of {share:g} %.")
            continue
        ledger.expect(value >= last, where, f"The quantile of {share:g} % is less than one before it.")
        last = value
        low, high = _around(filled, share / 100.0 * total)
        inside = low - CLOSE * abs(low) <= value <= high + CLOSE * abs(high)
        ledger.expect(inside, where, f"The quantile of {share:g} % is {value:.6g}, and its bin is {low:g} to {high:g}.")


def _around(filled: list[tuple[tuple[float, float], int]], rank: float) -> tuple[float, float]:
    """The bounds of the bins that hold the entries around a rank."""
    below, found = 0, []
    for bounds, count in filled:
        if below - 1.0 <= rank <= below + count + 1.0:
            found.append(bounds)
        below += count
    return found[0][0], found[-1][1]


def _inside(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] - CLOSE * abs(bounds[0]) <= value <= bounds[1] + CLOSE * abs(bounds[1])
