"""A drift of the errors is found where it is beyond chance, and not where it is not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardmask.conformance.document import ErrorRecord
from hardmask.conformance.spread import CUTS
from hardmask.conformance.upgrades import Change, compare, exit_code
from hardmask.conformance.upgrades.drift import LEVEL, drift, noise

from .handmade import VALUES, ZERO, certificate, errors, finding

Floats = Any


def binned(values: Floats, rows: int) -> ErrorRecord:
    """The record of some errors, in bins of a factor of two."""
    counts: dict[str, int] = {}
    size = np.abs(values)
    with np.errstate(divide="ignore"):
        edge = np.where(size > 0, np.sign(values) * np.exp2(np.ceil(np.log2(size))), 0.0)
    for value, count in zip(*np.unique(edge, return_counts=True), strict=True):
        counts[f"{value:g}"] = int(count)
    return errors(counts, rows=rows, entries=values.size)


def rows_of_errors(rng: np.random.Generator, rows: int, keys: int, *, bias: float = 0.0, scale: float = 1.0) -> Floats:
    """Errors of rows that share one part, that of the normalisation, and have one of their own."""
    shared = rng.normal(size=(rows, 1))
    return scale * (0.9 * shared + 0.3 * rng.normal(size=(rows, keys)) + bias)


def alarms(level: float, count: int, *, by_row: bool) -> int:
    """How often two samples of one distribution are called two distributions."""
    rng = np.random.default_rng(7)
    found = 0
    for _ in range(count):
        sides = [rows_of_errors(rng, 200, 32) for _ in range(2)]
        records = [binned(side, len(side) if by_row else side.size) for side in sides]
        made = drift(records[0], records[1], level)
        assert made is not None
        found += made.distance > made.noise
    return found


def test_samples_of_one_distribution_raise_no_alarm() -> None:
    for level in (0.5, 0.05):
        assert alarms(level, 400, by_row=True) <= level * 400
    assert alarms(0.05, 400, by_row=False) > 0.05 * 400, "entries are no independent observations"


def test_over_whole_certificates_the_rate_of_false_alarms_is_that_of_the_comparison() -> None:
    rng = np.random.default_rng(11)
    names = [f"x.{n}" for n in range(10)]
    found, runs = 0, 150
    for run in range(runs):
        sides = [
            certificate(
                [finding(name) for name in names],
                errors=[_named(binned(rows_of_errors(rng, 64, 16), 64), name) for name in names],
                seed=seed,
            )
            for seed in (run, run + 1)
        ]
        found += bool(compare(*sides).changes)
    assert found <= max(1.0, LEVEL * runs)


def _named(record: ErrorRecord, name: str) -> ErrorRecord:
    return errors(record.counts, name, rows=record.rows, entries=record.entries)


@pytest.mark.parametrize("rows", [400, 2000, 10000])
def test_a_drift_of_twice_the_noise_is_always_found(rows: int) -> None:
    rng = np.random.default_rng(rows)
    noisy = noise(rows, rows, CUTS, LEVEL)
    share = 2.0 * noisy
    assert share < 1.0
    for _ in range(20):
        old = rng.normal(size=rows) * 0.1
        new = np.where(rng.random(rows) < share, 5.0, rng.normal(size=rows) * 0.1)
        found = drift(binned(old, rows), binned(new, rows), LEVEL)
        assert found is not None
        assert found.distance > found.noise
        assert found.grown == pytest.approx(share, abs=noisy)
        assert found.shrunk < found.noise


def side(record: ErrorRecord | list[ErrorRecord], **fields: Any) -> Any:
    """A certificate of error records."""
    return certificate([finding()], errors=record if isinstance(record, list) else [record], **fields)


def change_between(old: dict[str, int], new: dict[str, int], **fields: Any) -> Change:
    """The one change between two distributions."""
    (change,) = compare(side(errors(old)), side(errors(new), **fields)).changes
    return change


def test_the_direction_of_a_drift() -> None:
    fine = {"-0.5": 2000, "0.5": 2000}
    larger = change_between(fine, {"-0.5": 500, "0.5": 500, "2": 3000})
    assert (larger.level, larger.direction, larger.after) == ("distribution", "worse", "larger")
    assert larger.drift is not None
    assert (larger.drift.grown, larger.drift.grown_beyond) == (0.75, 0.5)
    smaller = change_between(fine, {"-0.125": 2000, "0.125": 2000})
    assert (smaller.direction, smaller.after) == ("better", "smaller")
    assert exit_code(compare(side(errors(fine)), side(errors({"0.125": 2000, "-0.125": 2000}))), "bits") == 0
    biased = change_between(fine, {"-0.5": 200, "0.5": 3800})
    assert (biased.direction, biased.after) == ("changed", "elsewhere, about as large")
    assert biased.drift is not None
    assert (biased.drift.old.above, biased.drift.new.above) == (0.5, 0.95)
    both = change_between({"1": 4000}, {"0.25": 2000, "4": 2000})
    assert (both.direction, both.after) == ("changed", "larger and smaller")


def test_entries_that_are_no_number_are_larger_than_any_error() -> None:
    broken = errors({"0.5": 1000}, entries=4000, unusable=3000, rows=4000)
    (change,) = compare(side(errors({"0.5": 4000})), side(broken)).changes
    assert change.after == "larger"
    assert change.drift is not None
    assert change.drift.grown == 0.75


def test_an_outlier_on_the_very_same_rows_is_noted_and_no_regression() -> None:
    old, new = {"0.5": 4000}, {"0.5": 3999, "64": 1}
    change = change_between(old, new)
    assert (change.direction, change.kind, change.after) == ("noted", "largest error on the same rows", "grew")
    assert not compare(side(errors(old)), side(errors(new), seed=1)).changes


def test_one_cause_for_subjects_and_declarations() -> None:
    def both(counts: dict[str, int]) -> list[ErrorRecord]:
        return [errors(counts, name, declaration=d) for name in ("x.y", "x.z") for d in (ZERO, VALUES)]

    findings = [finding("x.y"), finding("x.z")]
    (change,) = compare(
        certificate(findings, errors=both({"0.5": 4000})), certificate(findings, errors=both({"2": 4000}))
    ).changes
    assert (change.count, change.of, change.subjects) == (4, 4, ["x.y", "x.z"])


def test_other_mixtures_of_rows_are_not_compared() -> None:
    comparison = compare(side(errors({"0.5": 4000})), side(errors({"2": 4000}), request={"effort": "deep"}))
    assert not comparison.changes
    assert comparison.missing == ["distribution", "bits"]
    assert comparison.compared["distribution"] == 0


def test_few_rows_show_nothing() -> None:
    assert drift(errors({"0.5": 3}), errors({"2": 3}), LEVEL).noise > 1.0  # type: ignore[union-attr]
    assert drift(errors({}), errors({"2": 3}), LEVEL) is None
    assert not compare(side(errors({"0.5": 3})), side(errors({"0.5": 2, "1": 1}), seed=1)).changes


@given(st.floats(1, 1e9), st.floats(1, 1e9), st.integers(1, 5000), st.floats(1e-12, 0.5))
def test_the_noise_follows_rows_edges_and_certainty(n: float, m: float, cuts: int, level: float) -> None:
    here = noise(n, m, cuts, level)
    assert here == pytest.approx(noise(m, n, cuts, level))
    assert here > noise(2 * n, m, cuts, level)
    assert here < noise(n, m, cuts + 1, level)
    assert here < noise(n, m, cuts, level / 2)
    # The bound itself: two sides, both tails, every edge.
    t = noise(n, n, cuts, level) / 2
    assert 4 * cuts * math.exp(-2 * n * t * t) == pytest.approx(level, rel=1e-9)
