"""Rows whose answers are known: worked by hand, printed in the literature, or taken from a reported fault.

The judge is the derived budget; the printed digits are compared with the referee, where the format holds the inputs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardmask.adapters.registry import resolve
from hardmask.conformance.truth import Truth
from hardmask.conformance.view import View
from hardmask.spec.batch import Batch
from hardmask.spec.contracts import contract
from hardmask.spec.formats import DTYPES, FORMATS
from hardmask.spec.oracle.interval import Interval
from hardmask.spec.oracle.referee import enclose

KNOWN: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "data" / "known-values.json").read_text())["rows"]
DIGITS = Fraction(1, 10**38)

REFERENCES = [
    "numpy.softmax-where",
    pytest.param("torch.softmax-where", marks=pytest.mark.torch),
    pytest.param("jax.double-where[jit]", marks=pytest.mark.jax),
]


def in_format(text: list[str], dtype: str) -> Any:
    """Decimal strings, rounded to a format; what is too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        return np.array([float(t) for t in text], np.float64).astype(FORMATS[dtype].dtype)


def held(text: list[str], dtype: str, mask: list[bool]) -> bool:
    """Whether a format holds the allowed inputs exactly."""
    values = in_format(text, dtype).astype(np.float64).tolist()
    return all(Fraction(v) == Fraction(Decimal(t)) for t, v, m in zip(text, values, mask, strict=True) if m)


def vector_of(row: dict[str, Any]) -> list[str]:
    return row.get("tangent", ["1", "-2", "4", "-8"][: len(row["scores"])])


def batch_of(rows: list[dict[str, Any]], dtype: str) -> Batch:
    """Rows of one length."""
    n = len(rows[0]["scores"])
    shape = len(rows), n
    vectors = np.array([in_format(vector_of(r), dtype) for r in rows]).reshape(shape)
    return Batch(
        key="known",
        dtype=dtype,
        scores=np.array([in_format(r["scores"], dtype) for r in rows]).reshape(shape),
        mask=np.array([r["mask"] for r in rows], bool).reshape(shape),
        cotangents=vectors,
        tangents=vectors,
        family=np.arange(len(rows)),
        families=tuple(r["id"] for r in rows),
    )


def viewed(target: str, batch: Batch) -> View:
    (subject,) = resolve([target])
    return View(subject, contract(subject.contract), Truth(batch), frozenset())


def passes(view: View) -> None:
    """Weights, VJP, JVP and the flag of every row, judged by the budgets; blocked keys and empty rows have budget 0."""
    batch = view.batch
    assert batch.real.all()
    judged = [view.compared, view.derivative_compared("vjp", "cotangents"), view.derivative_compared("jvp", "tangents")]
    for comparison in judged:
        bad = [batch.families[r] for r in np.flatnonzero(comparison.bad.any(axis=1))]
        assert not bad, (view.subject.id, batch.dtype, bad)
    valid = getattr(view.forward, "valid", None)
    assert (valid is not None) == (view.contract.kind == "zero+valid")
    if valid is not None:
        assert (valid == ~batch.empty).all()


def padded(row: dict[str, Any], n: int) -> dict[str, Any]:
    """The row with blocked NaN scores behind it, as many as make ``n`` keys."""
    more = n - len(row["scores"])
    grown = {"scores": [*row["scores"], *["nan"] * more], "mask": [*row["mask"], *[False] * more]}
    return {**row, **grown, "tangent": [*vector_of(row), *["7"] * more]}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("target", REFERENCES)
def test_the_double_where_subjects_know_every_answer(target: str, dtype: str) -> None:
    for n in (0, 2, 3, 4):
        rows = [r for r in KNOWN if len(r["scores"]) == n]
        assert rows
        if n in (0, 4) or not target.startswith("jax"):  # JAX compiles each length anew; padded rows spare it two
            passes(viewed(target, batch_of(rows, dtype)))
    passes(viewed(target, batch_of([padded(r, 4) for r in KNOWN], dtype)))


def near(true: Interval, digits: str) -> bool:
    printed = Fraction(Decimal(digits))
    return true.lo - DIGITS <= printed <= true.hi + DIGITS and true.width < DIGITS


@pytest.mark.parametrize("row", KNOWN, ids=lambda r: r["id"])
def test_the_referee_prints_the_same_forty_digits(row: dict[str, Any]) -> None:
    mask = row["mask"]
    assert row["valid"] == any(mask)
    compared = 0
    for dtype in DTYPES:
        scores = in_format(row["scores"], dtype).astype(np.float64).tolist()
        vector = in_format(vector_of(row), dtype).astype(np.float64).tolist()
        true = enclose(scores, mask, bits=256)
        exact = Truth(batch_of([row], dtype)).weights.weights
        for i, interval in enumerate(true):
            # The fast engine's enclosure meets the referee's, whatever the format made of the inputs.
            value, error = (Fraction(float(x)) for x in (exact.value[0, i], exact.error[0, i]))
            value += Fraction(float(exact.low[0, i]))
            assert interval.lo - error <= value <= interval.hi + error
        if not held(row["scores"], dtype, mask):
            continue
        compared += 1
        for interval, digits in zip(true, row["weights"], strict=True):
            assert near(interval, digits)
        if "derivative" in row:
            for interval, digits in zip(enclose(scores, mask, vector, bits=256), row["derivative"], strict=True):
                assert near(interval, digits)
        if "output" in row:
            total = sum((w.lo * int(v) for w, v in zip(true, row["values"], strict=True)), Fraction(0))
            assert abs(total - Fraction(Decimal(row["output"]))) < 100 * DIGITS
    assert compared or row["id"] == "quarter", "no format holds these inputs, so the digits were never compared"


def test_log_3_is_no_float() -> None:
    """The row ``quarter`` needs ``log 3``: the nearest float64 gives weights within one unit of (1/4, 3/4)."""
    (row,) = (r for r in KNOWN if r["id"] == "quarter")
    assert not any(held(row["scores"], dtype, row["mask"]) for dtype in DTYPES)
    true = enclose(in_format(row["scores"], "float64").tolist(), row["mask"])
    for interval, digits in zip(true, row["weights"], strict=True):
        assert abs(interval.lo - Fraction(Decimal(digits))) < Fraction(1, 2**53)


@dataclass(frozen=True)
class Reported:
    """Rows on which somebody reported a fault, with the arithmetic of the right answer; each has three keys."""

    reference: str
    scores: tuple[tuple[float, ...], ...]
    mask: tuple[tuple[bool, ...], ...]
    cotangents: tuple[tuple[float, ...], ...]
    tangents: tuple[tuple[float, ...], ...]
    vjp: tuple[tuple[str, ...], ...]
    jvp: tuple[tuple[str, ...], ...]

    def batch(self, dtype: str) -> Batch:
        form = FORMATS[dtype].dtype
        scores, g, u = (np.array(x, form) for x in (self.scores, self.cotangents, self.tangents))
        return Batch("reported", dtype, scores, np.array(self.mask), g, u, np.arange(len(scores)), ("a", "b"))


# Row b: w = (1, e, 0) / (1 + e), w0 w1 = e / (1 + e)^2 = 0.19661193324148185…, and J v = w0 w1 (v0 - v1) (1, -1, 0).
# Row a is empty: 0 there, and nothing of it in row b. Zeroing the NaN after the softmax repairs the forward only: the
# VJP multiplies a zero cotangent by the NaN that was saved. Reported with two keys; the third is blocked padding.
ZEROED_NAN = Reported(
    reference="Xilinx/brevitas#1591, lucidrains/nGPT-pytorch#11",
    scores=((0.3, 0.7, 0.0), (0.0, 1.0, 0.0)),
    mask=((False, False, False), (True, True, False)),
    cotangents=((1.0, 2.0, 0.0), (1.0, 2.0, 0.0)),
    tangents=((1.0, 2.0, 0.0), (1.0, 3.0, 0.0)),
    vjp=(("0", "0", "0"), ("-0.19661193324148185", "0.19661193324148185", "0")),
    jvp=(("0", "0", "0"), ("-0.3932238664829637", "0.3932238664829637", "0")),
)
# w = (1/2, 1/2, 0): the gradient of w0 is (w0 - w0^2, -w0 w1, 0). exp(100) overflows float16, and exp(100 - 1) float32,
# in the branch that is not taken; a gradient through that branch is 0 times infinity.
LARGE_BLOCKED = Reported(
    reference="jax-ml/jax#17117",
    scores=((1.0, 1.0, 100.0), (1.0, 1.0, 100.0)),
    mask=((True, True, False), (True, True, False)),
    cotangents=((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
    tangents=((1.0, 0.0, 0.0), (0.0, 1.0, 5.0)),
    vjp=(("0.25", "-0.25", "0"), ("-0.25", "0.25", "0")),
    jvp=(("0.25", "-0.25", "0"), ("-0.25", "0.25", "0")),
)
JUDGED = [*REFERENCES, pytest.param("jax.softmax-where[jit]", marks=pytest.mark.jax)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", [ZEROED_NAN, LARGE_BLOCKED], ids=lambda c: c.reference)
@pytest.mark.parametrize("target", JUDGED)
def test_reported_faults_are_absent(target: str, case: Reported, dtype: str) -> None:
    view = viewed(target, case.batch(dtype))
    passes(view)
    # Only blocked scores are inexact in some format, so the printed derivatives hold in all of them.
    for side, printed in (("cotangents", case.vjp), ("tangents", case.jvp)):
        true = view.truth.derivative(side).value  # type: ignore[arg-type]  # the literals are lost in the tuple
        for r, digits in enumerate(printed):
            for i, text in enumerate(digits):
                assert abs(Fraction(float(true[r, i])) - Fraction(Decimal(text))) <= Fraction(1, 10**15)


@pytest.mark.torch
def test_the_reported_fault_is_seen_where_it_is() -> None:
    """The specimen with the fault: its weights and its JVP are right, and its VJP is NaN on the empty row alone."""
    view = viewed("torch.where-after-additive-inf", ZEROED_NAN.batch("float32"))
    assert not view.compared.bad.any()
    assert not view.derivative_compared("jvp", "tangents").bad.any()
    assert view.derivative_compared("vjp", "cotangents").bad.any(axis=1).tolist() == [True, False]
    pulled = view.derivative_values("vjp", "cotangents")
    assert pulled is not None
    assert np.isnan(pulled[0]).any()
