"""A correct softmax is never failed under the tier and the contract that it declares, however it computes."""

from __future__ import annotations

import numpy as np
import pytest

from hardmask.adapters.subject import Answer
from hardmask.conformance.cases import Case, plan
from hardmask.conformance.mutants import Variant
from hardmask.conformance.mutants.correct import variants
from hardmask.conformance.mutants.correct_online import TILES, online
from hardmask.conformance.runner import Policy, Results, judge, merge
from hardmask.conformance.verdicts import verdict_of
from hardmask.spec.formats import DTYPES

VARIANTS = variants()
NAMES = [v.name for v in VARIANTS]


@pytest.fixture(scope="module")
def judged() -> Results:
    """All variants at smoke effort and on long rows."""
    results: Results = {}
    for dtype in DTYPES:
        for case in [*plan("smoke", 0, [dtype]), Case(dtype, "shapes", 104, 131, 0, 0)]:
            merge(results, judge(case, [v.subject for v in VARIANTS], Policy()))
    return results


def test_there_are_many_and_each_has_its_own_name_and_story() -> None:
    assert len(VARIANTS) >= 45
    assert len(set(NAMES)) == len({v.story for v in VARIANTS}) == len(VARIANTS)
    assert {v.subject.contract for v in VARIANTS} == {"zero", "zero+valid", "nan", "reject", "fallback(0)"}
    assert {t for v in VARIANTS for t in [v.subject.tier] if t} == {"exp2", "online", "lse", "mixed-2", "half-ops"}


@pytest.mark.parametrize("variant", VARIANTS, ids=NAMES)
def test_a_correct_variant_is_never_failed(variant: Variant, judged: Results) -> None:
    subject = variant.subject
    for dtype in subject.dtypes:
        tallies = judged[subject.id, dtype]
        wrong = {where: (t.diagnoses, t.errors) for where, t in tallies.items() if t.failed or t.errors}
        assert not wrong
        checked = {name for (name, _), tally in tallies.items() if tally.checked}
        assert {"spec_eq_weights", "backward_eq_derivative", "derivative_apply", "empty_row"} <= checked
        verdicts = {verdict_of(t) for (name, _), t in tallies.items() if name == "spec_eq_weights"}
        # A log-sum-exp tells nothing about the largest scores.
        assert verdicts <= {"pass", "permitted", "hypothesis-unmet", *(["vacuous"] if subject.tier == "lse" else [])}


def test_the_variants_compute_differently() -> None:
    """Each differs from every other in the bits of some answer, or in its contract, its promises or its layout."""
    batches = [Case(d, "shapes", 104, 131, 0, 0).build() for d in DTYPES]
    alike: dict[tuple[object, ...], list[str]] = {}
    for v in VARIANTS:
        s = v.subject
        bits: list[object] = [s.contract, s.promises]
        for b in batches:
            if b.dtype in s.dtypes and s.vjp is not None and s.jvp is not None:
                answer = s.forward(b.scores.copy(), b.mask.copy())
                w = answer.weights if isinstance(answer, Answer) else answer
                bits += [w.tobytes(), w.strides, s.vjp(b.scores.copy(), b.mask, b.cotangents).tobytes()]
                bits += [s.jvp(b.scores.copy(), b.mask, b.cotangents).tobytes()]
        alike.setdefault(tuple(bits), []).append(v.name)
    # These take other ways to the same bits: a maximum is exact, exp(-inf) is 0, and memory is no number.
    free = {"first-maximum", "filled", "in-place"}
    assert all(len(set(names) - free) <= 1 for names in alike.values()), alike.values()


@pytest.mark.parametrize("tile", TILES)
def test_online_softmax_over_blocked_tiles_is_the_softmax(tile: int) -> None:
    x = np.zeros((4, 160))
    mask = np.zeros((4, 160), bool)
    mask[0, 70:74] = mask[1, ::40] = mask[2] = True
    x[1, ::40] = np.log([1.0, 2.0, 3.0, 4.0])
    w = online(tile)(x, mask)
    assert w[0, 70:74].tolist() == [0.25] * 4
    assert np.allclose(w[1, ::40], [0.1, 0.2, 0.3, 0.4], rtol=1e-15)
    assert np.allclose(w[2], 1 / 160, rtol=1e-15)
    assert not w[~mask].any()
