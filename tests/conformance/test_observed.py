"""What a certificate says about outputs and errors: digests of bits, and histograms of errors in ULPs."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject
from hardmask.conformance.certificate import fields
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.document import Certificate, ErrorRecord
from hardmask.conformance.pool import PoolByDtype
from hardmask.conformance.spread import EDGES, LARGEST, Entries, Spread, quantiles
from hardmask.spec.formats import DTYPES, FORMATS
from hardmask.spec.oracle.exact import Exact


def run(subjects: list[Subject] | None = None, target: str = "numpy.softmax-where", **request: Any) -> Certificate:
    """The certificate of a quick run."""
    asked = {"effort": "smoke", "dtypes": ("float32",), **request}
    return certify(Request((target,), **asked), subjects=subjects, minimise=False).certificate


def lasting(certificate: Certificate) -> dict[str, Any]:
    """Everything but the times."""
    return {name: value for name, value in fields(certificate).items() if name != "times"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_ulp_is_the_distance_of_neighbours_at_the_true_value(dtype: str) -> None:
    form = FORMATS[dtype]
    rng = np.random.default_rng(5)
    values = np.concatenate([np.exp2(rng.uniform(form.emin - 3, 0, 40)), [1.0, 0.5, form.lam, form.eta, 0.0]])
    true = np.array([float(x) for x in values.astype(form.dtype)])[None]
    # The next number of the dtype above each; one step is one ULP, counted from the true value.
    above = np.nextafter(true.astype(form.dtype), form.dtype.type(2)).astype(np.float64)
    made = Spread.over(Entries.of(above - true, true, true >= 0.0, dtype), np.array([0]))
    assert (made.least, made.largest, made.by_edge) == (1.0, 1.0, {"1": true.size})


def test_errors_are_signed_fractional_and_right() -> None:
    rng = np.random.default_rng(6)
    true, low = rng.uniform(0.1, 1.0, (30, 20)), rng.uniform(-1, 1, (30, 20)) * 2.0**-56
    returned = true.astype(np.float32).astype(float)
    where = rng.random((30, 20)) < 0.7
    returned[3, 4], where[3, 4] = np.nan, True
    signed = Exact(true, low, 0 * low).signed(returned)
    whole = Spread.over(Entries.of(signed, true, where, "float32"), np.arange(30))
    counts: Counter[int] = Counter()
    exact = []
    for r, c in zip(*np.nonzero(where), strict=True):
        if np.isnan(returned[r, c]):
            continue
        error = Fraction(returned[r, c]) - Fraction(true[r, c]) - Fraction(low[r, c])
        exact.append(error / Fraction(float(np.spacing(np.float32(2.0 ** np.floor(np.log2(true[r, c])))))))
        place = next(i for i, edge in enumerate(EDGES) if abs(exact[-1]) <= edge)
        counts[place if error > 0 else -place] += 1
    assert whole.counts == counts
    assert whole.unusable == 1
    assert whole.entries == where.sum()
    assert (whole.least, whole.largest) == pytest.approx((float(min(exact)), float(max(exact))), rel=1e-6)
    assert whole.largest <= 0.5 + 1e-9, "one rounding is at most half a ULP"
    assert whole.squares == int((where.sum(axis=1) ** 2).sum())
    again = Spread()
    for rows in (np.arange(10, 30), np.arange(10)):
        again.merge(Spread.over(Entries.of(signed, true, where, "float32"), rows))
    assert again == whole


def test_the_bins_mirror_and_the_quantiles_lie_in_them() -> None:
    assert list(Spread(counts={1: 1, 0: 1, -1: 1, len(EDGES) - 1: 1}).by_edge) == ["-0.0625", "0", "0.0625", "inf"]
    sample = np.random.default_rng(1).uniform(-4, 4, (1, 4001))
    errors = Spread.over(Entries.of(sample * 2.0**-23, np.ones_like(sample), sample < 5, "float32"), np.array([0]))
    for percentage, value in errors.quantiles.items():
        assert value == pytest.approx(np.percentile(sample, float(percentage)), abs=0.05)
    assert Spread(unusable=3).quantiles == {}


def test_errors_beyond_all_bins_stay_finite() -> None:
    huge = np.array([[1e300, -1e300]])
    made = Spread.over(Entries.of(huge, np.zeros((1, 2)), huge != 0.0, "float64"), np.array([0]))
    assert made.by_edge == {"-inf": 1, "inf": 1}
    assert all(np.isfinite(x) for x in (made.least, made.largest, *made.quantiles.values()))


def test_the_records_of_a_run() -> None:
    certificate = run()
    assert certificate.errors
    for record in certificate.errors:
        _consistent(record)
    found = {(f.declaration, f.dtype, f.family): f for f in certificate.findings}
    for output in certificate.outputs:
        for name in output.declarations:
            assert (name, output.dtype, output.family) in found, "an output decides what is not judged"
    served = {name for output in certificate.outputs for name in output.declarations}
    assert {f.declaration for f in certificate.findings if f.checked and "/" not in f.family} - served <= {
        "extension:adjointness",
        "extension:shift-invariance",
        "extension:permutation-equivariance",
        "extension:truncation",
        "extension:score-non-interference",
        "Proofs.Autograd.HardMaskedSoftmax.backward_eq_adjoint_fderiv",
        "Proofs.Autograd.HardMaskedSoftmax.inner_derivative",
    }


def _consistent(record: ErrorRecord) -> None:
    assert sum(record.counts.values()) + record.unusable == record.entries
    assert 0 < record.effective_rows <= record.rows <= record.entries
    assert record.least is not None
    assert record.largest is not None
    outermost = [float(edge) for edge in record.counts]
    assert min(outermost) <= record.least <= record.largest <= max(outermost)
    ordered = [record.quantiles[name] for name in sorted(record.quantiles, key=float)]
    assert ordered == sorted(ordered)


def test_errors_of_attention_are_recorded() -> None:
    certificate = run(target="numpy.attention", dtypes=("float32", "float16"))
    for record in certificate.errors:
        _consistent(record)
    assert {o.quantity for o in certificate.outputs} == {"output", "weights", "dq", "dk", "dv", "tangent"}
    names = {e.declaration.rpartition(".")[2] for e in certificate.errors}
    assert {"scaledDotProductAttention", "scaledDotProductAttentionBackward"} <= names


@pytest.mark.parametrize("target", ["numpy.softmax-where", "numpy.attention"])
def test_two_runs_are_identical_but_for_their_times(target: str) -> None:
    dtypes = ("float32", "bfloat16")
    alone, again = (run(target=target, dtypes=dtypes) for _ in range(2))
    assert lasting(alone) == lasting(again)
    with PoolByDtype(2) as pool:
        asked = Request((target,), effort="smoke", dtypes=dtypes)
        together = certify(asked, executor=pool, minimise=False).certificate
    assert lasting(together) == lasting(alone)


def test_one_bit_of_one_output_is_another_digest() -> None:
    class Flipped:
        """Flips the last bit of one weight of one call."""

        def __init__(self, at: int | None) -> None:
            self.at, self.calls = at, 0

        def __call__(self, scores: Any, mask: Any) -> Any:
            weights = softmax_where(scores, mask).weights
            self.calls += 1
            if self.calls == self.at:
                weights.view(np.uint32)[np.unravel_index(np.argmax(weights), weights.shape)] ^= 1
            return weights

    whole, flipped = (run([Subject("mine.softmax", Flipped(at), dtypes=("float32",))]) for at in (None, 3))
    assert [s.verdict for s in flipped.subjects] == ["pass"]
    changed = [
        (a.family, b.declarations) for a, b in zip(whole.outputs, flipped.outputs, strict=True) if a.sha256 != b.sha256
    ]
    assert len(changed) == 1
    ((family, declarations),) = changed
    assert family
    assert "Proofs.Autograd.HardMaskedSoftmax.spec_eq_weights" in declarations


def test_halves_are_measured_in_their_own_ulps() -> None:
    def rounded(scores: Any, mask: Any) -> Any:
        return softmax_where(scores.astype(np.float32), mask).weights.astype(scores.dtype)

    certificate = run([Subject("mine.softmax", rounded, dtypes=("bfloat16",))], dtypes=("bfloat16",))
    assert np.dtype(ml_dtypes.bfloat16).itemsize == 2
    for record in certificate.errors:
        assert record.largest is not None
        assert record.largest < 0.51, "computed in float32, one rounding to bfloat16"


def test_quantiles_of_enormous_errors_are_numbers() -> None:
    """The outermost bin is as wide as the largest error; a true value of 5e-324 makes errors of 1e308 ULPs."""
    last = len(EDGES) - 1
    found = quantiles({-last: 40, 0: 5, last: 60}, -LARGEST, LARGEST)
    assert all(-LARGEST <= value <= LARGEST for value in found.values())
    assert list(found.values()) == sorted(found.values())
