"""Faults of real entry points that show on long rows only, and so in a deep run."""

from __future__ import annotations

import pytest

from hardmask.adapters.registry import resolve
from hardmask.conformance.cases import Case
from hardmask.conformance.runner import Policy, judge


@pytest.mark.jax
def test_jax_loses_the_centring_in_float16_where_the_square_of_the_sum_overflows() -> None:
    """256 equal scores give exponentials that sum to 256, and 256² = 65536 is beyond float16.

    JAX differentiates the division through the square of the sum. Beyond 65504 its reciprocal is 0, and with it the
    term that centres the gradient.
    """
    (subject,) = resolve(["jax.softmax-where[jit]"])
    verdicts = {}
    for keys in (131, 1031):
        case = Case("float16", "full", 240, keys, 0, seed=0)
        tallies = judge(case, [subject], Policy())[subject.id, "float16"]
        verdicts[keys] = tallies["backward_eq_derivative", "full"].diagnoses
    assert verdicts[131] == {}
    assert set(verdicts[1031]) == {"centring lost"}
