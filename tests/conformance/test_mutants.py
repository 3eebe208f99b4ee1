"""The shipped mutants: well named, really wrong, and each with a story of its own."""

from __future__ import annotations

import re

import numpy as np
import pytest

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Answer, Subject
from hardmask.conformance.cases import plan
from hardmask.conformance.mutants import KINDS, Mutant, Variant, mutants, variants
from hardmask.conformance.mutants.kit import over_all, rows_of, weights_of
from hardmask.spec.formats import DTYPES, FORMATS

MUTANTS = mutants()
FORWARD = [m for m in MUTANTS if m.subject.vjp is None and m.subject.jvp is None]
STATEFUL = ("buffer-not-cleared", "second-call", "cached-by-scores")
DECLARED = ("reject-missing", "valid-missing", "nan-swallowed")
"""Wrong by what they declare, or on rows that are not real."""


def test_there_are_enough_of_them_and_every_name_is_used_once() -> None:
    names = [x.name for x in (*MUTANTS, *variants())]
    assert len(names) == len(set(names))
    assert len(MUTANTS) >= 100
    assert len({m.story for m in MUTANTS}) == len(MUTANTS)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in names)


def test_every_kind_of_fault_that_a_masked_softmax_can_have_is_there() -> None:
    kinds = {m.kind for m in MUTANTS}
    assert kinds >= set("ABDEFGHILOP") | {"numeric"}
    assert kinds <= set(KINDS)


def test_stories_are_sentences_and_reasons_are_not() -> None:
    for m in MUTANTS:
        assert m.story[0].isupper()
        assert m.story.endswith(".")
        for reason in m.survivors.values():
            assert reason[0].islower()
            assert not reason.endswith(".")


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_kit_itself_is_right(dtype: str) -> None:
    """What every mutant is made of agrees with the reference to the bit, so that the fault is the mutant's own."""
    batch = next(c for c in plan("smoke", 0, [dtype]) if c.kind == "mixture").build()
    with np.errstate(all="ignore"):
        mine = rows_of(weights_of)(batch.scores, batch.mask)
    np.testing.assert_array_equal(mine, softmax_where(batch.scores, batch.mask).weights)
    rows = batch.scores[:4] * 0
    np.testing.assert_array_equal(over_all(rows.astype(np.float32)), np.full(rows.shape, 1 / 16, np.float32))


@pytest.mark.parametrize("mutant", FORWARD, ids=lambda m: m.name)
def test_each_is_wrong_somewhere_in_float64(mutant: Mutant) -> None:
    """Away from the reference by far more than two correct ones are from each other, on rows that are real."""
    if mutant.name in (*STATEFUL, *DECLARED) or "float64" not in mutant.subject.dtypes or mutant.subject.any_axis:
        pytest.skip("wrong by what it keeps, by what it declares, or only in other formats or layouts")
    furthest = 0.0
    rng = np.random.default_rng(0)
    batches = [c.build() for c in plan("smoke", 0, ["float64"]) if c.kind in ("shapes", "poison", "mixture", "empty")]
    rows = [(b.scores, b.mask) for b in batches]
    rows += [(rng.standard_normal((9, n)), rng.random((9, n)) < 0.9) for n in (2, 7, 64, 77, 128, 131, 257)]
    rows += [(np.zeros((2, 131)), np.ones((2, 131), bool))]
    for scores, mask in rows:
        with np.errstate(all="ignore"):
            answer = mutant.subject.forward(scores.copy(), mask.copy())
            expected = softmax_where(scores, mask)
        if isinstance(answer, Answer):
            assert answer.valid is not None
            furthest = max(furthest, float((answer.valid != expected.valid).any()))
            answer = answer.weights
        distance = np.abs(answer - expected.weights) / np.where(expected.weights > 1e-100, expected.weights, 1.0)
        furthest = max(furthest, float(np.nan_to_num(distance, nan=1.0).max(initial=0.0)))
    if mutant.name == "valid-from-weights":
        assert furthest == 0.0, "it is wrong only where an allowed score is NaN"
        scores = np.array([[np.nan, 0.0]])
        seen = mutant.subject.forward(scores, np.array([[True, True]]))
        assert isinstance(seen, Answer)
        assert seen.valid is not None
        assert not seen.valid[0]
    else:
        assert furthest > 2000 * FORMATS["float64"].u


def test_those_that_keep_a_state_are_right_at_first_and_wrong_later() -> None:
    scores, mask = np.zeros((2, 3)), np.array([[True, True, False], [True, False, False]])
    right = softmax_where(scores, mask).weights
    for name in STATEFUL:
        forward = next(m for m in mutants() if m.name == name).subject.forward
        np.testing.assert_array_equal(forward(scores, mask), right)
        other = ~mask if name == "cached-by-scores" else mask
        later = forward(scores, other)
        assert not np.array_equal(np.asarray(later), softmax_where(scores, other).weights)


def test_records_refuse_what_does_not_fit() -> None:
    def subject(id: str) -> Subject:
        return Subject(id, lambda scores, mask: scores, dtypes=("float32",))

    with pytest.raises(ValueError, match="has the kind 'Z'"):
        Mutant("some", "Z", "Wrong.", subject("mutant.some"))
    with pytest.raises(ValueError, match=r"call it 'mutant\.some'"):
        Mutant("some", "A", "Wrong.", subject("mutant.other"))
    with pytest.raises(ValueError, match="survives in float16, which its subject does not offer"):
        Mutant("some", "A", "Wrong.", subject("mutant.some"), {"float16": "equivalent"})
    with pytest.raises(ValueError, match=r"call it 'variant\.some'"):
        Variant("some", "Right.", subject("mutant.some"))
