"""The rows that a check judges are rows that meet the hypotheses of the declaration it serves."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.adapters.registry import resolve
from hardmask.conformance.cases import plan
from hardmask.conformance.checks import CHECKS
from hardmask.conformance.promises import PROMISES
from hardmask.conformance.truth import Truth
from hardmask.conformance.view import View
from hardmask.spec.catalogue import declarations
from hardmask.spec.contracts import contract

EXACTLY = (
    "spec_eq_weights",
    "denominator_pos",
    "hardMaskedSoftmaxVecSpec_eq_one",
    "hardMaskedSoftmaxVecSpec_allTrue",
    "hardMaskedSoftmaxVecSpec_blocked_eq_zero",
    "backward_eq_derivative",
)
"""Declarations that are judged on every row that meets their hypotheses, wherever it comes from."""


@pytest.mark.parametrize("case", plan("smoke", 3, ["float32"]), ids=lambda c: c.key)
def test_judged_rows_meet_the_hypotheses(case) -> None:
    (subject,) = resolve(["numpy.softmax-where"])
    view = View(subject, contract("zero+valid"), Truth(case.build()), frozenset())
    batch = view.batch
    judged: dict[str, np.ndarray] = {}
    for check in CHECKS:
        for outcome in check(view):
            for key in outcome.declarations:
                judged[key] = judged.get(key, np.zeros(batch.shape[0], bool)) | outcome.applies
    for key, rows in judged.items():
        if key in PROMISES or key == "empty_row":
            continue  # promises speak of numbers that are not real; the valid flag is asked of every row
        met = declarations()[key].holds(batch.mask, batch.scores64)
        assert not (rows & ~met).any(), f"{key} was judged on a row that does not meet its hypotheses"
        if key in EXACTLY and batch.shape[1]:
            assert (rows == (met & batch.real)).all(), f"{key} was not judged on a row that meets its hypotheses"
