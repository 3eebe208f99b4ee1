"""What changed between two certificates is found, grouped by cause, and weighed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardmask.conformance.document import Certificate, Measured, SweepRecord
from hardmask.conformance.finding import SEVERITY, Deviation, Finding
from hardmask.conformance.upgrades import Change, IncomparableError, compare, exit_code
from hardmask.conformance.upgrades.flips import QUALITY
from hardmask.conformance.upgrades.record import LEVELS

from .handmade import VALUES, ZERO, certificate, finding, output, subject


def only(old: Certificate, new: Certificate) -> Change:
    """The one change there is."""
    (change,) = compare(old, new).changes
    return change


def of(a: Any, b: Any) -> Change:
    """The one change between two lists of findings."""
    return only(certificate(a), certificate(b))


def test_a_certificate_is_identical_to_itself_and_to_one_made_at_another_time() -> None:
    one = certificate([finding()])
    other = certificate([finding()], times={"started": 7.0, "seconds": 2.0})
    assert one.times != other.times
    for new in (one, other):
        comparison = compare(one, new)
        assert comparison.identical
        assert comparison.paired
        assert not comparison.changes
        assert comparison.compared == {"verdict": 1, "distribution": 0, "bits": 0}
        assert exit_code(comparison, "bits") == 0


@pytest.mark.parametrize("before", QUALITY)
@pytest.mark.parametrize("after", SEVERITY)
def test_every_flip_of_a_verdict(before: Any, after: Any) -> None:
    old, new = certificate([finding(verdict=before)]), certificate([finding(verdict=after)])
    if before == after:
        assert not compare(old, new).changes
        return
    change = only(old, new)
    assert (change.level, change.count) == ("verdict", 1)
    if after in QUALITY:
        assert change.kind == "verdict"
        assert change.direction == ("worse" if QUALITY[after] > QUALITY[before] else "better")
    else:
        assert (change.kind, change.direction) == ("coverage", "worse")
    assert exit_code(compare(old, new), "verdict") == (change.direction == "worse")
    # And back: what was not judged and is judged now is only worse where it fails.
    back = only(new, old)
    assert back.direction == (
        {"worse": "better", "better": "worse"}[change.direction]
        if after in QUALITY
        else "worse"
        if before in ("fail", "error", "vacuous")
        else "better"
    )


def test_one_cause_is_one_entry() -> None:
    names = ["jax.a", "jax.b", "jax.c", "torch.a"]
    places = [
        (n, d, t, f) for n in names for d in (ZERO, VALUES) for t in ("float32", "float16") for f in ("ties", "empty")
    ]
    old = certificate([finding(*place) for place in places])
    new = certificate([finding(*place, verdict="fail", diagnosis="NaN", failed=n) for n, place in enumerate(places, 1)])
    by_jax, by_torch = compare(old, new).changes
    assert (by_jax.adapter, by_torch.adapter) == ("jax", "torch")
    assert by_jax.subjects == names[:3]
    assert by_jax.declarations == [ZERO, VALUES]
    assert by_jax.count == 3 * 2 * 2 * 2 == len(by_jax.places)
    assert (by_jax.before, by_jax.after) == ("pass", "fail: NaN")
    assert by_jax.example is not None
    assert by_jax.example.witness is not None
    assert by_jax.example.place.id in {f.id for f in new.findings}


def test_causes_that_share_no_declaration_are_two_entries() -> None:
    old = [finding("jax.a", ZERO), finding("jax.b", VALUES)]
    new = [
        finding("jax.a", ZERO, verdict="fail", diagnosis="NaN"),
        finding("jax.b", VALUES, verdict="fail", diagnosis="NaN"),
    ]
    assert len(compare(certificate(old), certificate(new)).changes) == 2
    bridge = [finding("jax.c", ZERO), finding("jax.c", VALUES)]
    failed = [finding("jax.c", d, verdict="fail", diagnosis="NaN") for d in (ZERO, VALUES)]
    change = of([*old, *bridge], [*new, *failed])
    assert change.subjects == ["jax.a", "jax.b", "jax.c"]


def test_the_most_serious_comes_first() -> None:
    def side(new: bool) -> Certificate:
        return certificate(
            [
                finding(family="ties", verdict="fail" if new else "pass"),
                finding(family="empty", verdict="pass" if new else "fail"),
                finding(family="lone", verdict="error" if new else "pass", diagnosis="it crashed" if new else ""),
                finding(family="far", verdict="fail", diagnosis="NaN" if new else "uniform"),
            ],
            outputs=[output(new)],
        )

    changes = compare(side(False), side(True)).changes
    assert [(c.level, c.direction, c.after) for c in changes] == [
        ("verdict", "worse", "error: it crashed"),
        ("verdict", "worse", "fail"),
        ("verdict", "better", "pass"),
        ("policy", "changed", "NaN"),
        ("bits", "changed", "other bits"),
    ]


def test_a_subject_that_is_gone_is_one_entry_and_a_new_one_is_noted() -> None:
    mine = [finding("x.y", d) for d in (ZERO, VALUES)]
    further = [finding("x.z", d, verdict="fail") for d in (ZERO, VALUES)]
    gone = of([*mine, *further], mine)
    assert (gone.kind, gone.direction, gone.subjects, gone.count) == ("subject", "worse", ["x.z"], 1)
    come = of(mine, [*mine, *further])
    assert (come.kind, come.direction, come.after) == ("subject", "noted", "fail")
    # Where the new run was not asked for it, it is not gone.
    asked = compare(certificate([*mine, *further]), certificate(mine, request={"targets": ["x.y"]}))
    assert [c.direction for c in asked.changes] == ["noted"]
    assert exit_code(asked, "bits") == 0


def test_a_dtype_that_is_gone_says_why() -> None:
    old = [finding(), finding(dtype="float16"), finding(dtype="float16", family="empty")]
    why = "needs a processor with AMX"
    change = of(old, [finding(), finding(dtype="float16", family="(not run)", verdict="unsupported", diagnosis=why)])
    assert (change.kind, change.direction, change.count, change.dtypes) == ("coverage", "worse", 2, ["float16"])
    assert change.after == f"not judged: {why}"


def test_fewer_rows_and_more_failures_on_the_same_rows_count() -> None:
    fewer = of([finding()], [finding(checked=60)])
    assert (fewer.kind, fewer.direction, fewer.after) == ("coverage", "worse", "fewer rows judged")
    assert not compare(certificate([finding()]), certificate([finding(checked=60)], seed=1)).changes
    more = of([finding(verdict="fail", failed=5)], [finding(verdict="fail", failed=6)])
    assert (more.kind, more.direction, more.after) == ("failures", "worse", "on more rows")


def test_known_deviations_are_no_regression() -> None:
    known = Deviation(reason="reported upstream", link="https://example.org/1", expires="2099-01-01")
    old, new = certificate([finding()]), certificate([finding(verdict="fail", deviation=known)])
    change = only(old, new)
    assert change.known
    assert change.deviation == known
    assert not change.regression
    assert exit_code(compare(old, new), "bits") == 0


def test_what_rows_that_no_theorem_speaks_of_give_is_a_policy() -> None:
    def fact(text: str) -> Finding:
        return finding(family="all -inf", verdict="hypothesis-unmet", diagnosis=text, unmet=8)

    change = of([fact("zero")], [fact("NaN in the whole row")])
    assert (change.level, change.direction, change.kind) == ("policy", "changed", "fact")
    assert (change.before, change.after) == ("zero", "NaN in the whole row")
    assert exit_code(compare(certificate([fact("zero")]), certificate([fact("finite")])), "verdict") == 0
    assert exit_code(compare(certificate([fact("zero")]), certificate([fact("finite")])), "policy") == 1
    # The order of the batches is no policy.
    assert not compare(certificate([fact("a; b")]), certificate([fact("b; a; a")])).changes
    assert (of([fact("a; b")], [fact("b; c")]).before, of([fact("a; b")], [fact("b; c")]).after) == ("a", "c")


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        ("NaN key reaches output", "NaN key isolated", "better"),
        ("NaN key isolated", "NaN key reaches output, dq", "worse"),
        ("NaN key reaches output", "NaN key reaches output, dq", "worse"),
        ("NaN key reaches dq, dk", "NaN key reaches dk", "better"),
        ("NaN key reaches dq", "NaN key reaches dk", "changed"),
        ("NaN swallowed", "NaN visible", "better"),
        ("NaN visible", "NaN swallowed", "worse"),
        ("zero", "finite", "changed"),
        ("", "NaN key isolated", "better"),
    ],
)
def test_isolation_is_better_than_none(before: str, after: str, direction: str) -> None:
    a, b = (finding(verdict="hypothesis-unmet", diagnosis=text) for text in (before, after))
    assert of([a], [b]).direction == direction


def test_facts_are_compared_place_by_place() -> None:
    old = "NaN key isolated; inf key reaches output; overflowing key reaches output"
    new = "NaN key isolated; inf key isolated; overflowing key isolated"
    other = "inf key reaches output; NaN value reaches dq"
    a = [finding(family=f, verdict="hypothesis-unmet", diagnosis=t) for f, t in (("ties", old), ("far", other))]
    b = [
        finding(family="ties", verdict="hypothesis-unmet", diagnosis=new),
        finding(family="far", verdict="hypothesis-unmet", diagnosis="inf key isolated; NaN value reaches dq"),
    ]
    changes = compare(certificate(a), certificate(b)).changes
    assert [(c.before, c.after, c.count) for c in changes] == [
        ("inf key reaches output", "inf key isolated", 2),
        ("overflowing key reaches output", "overflowing key isolated", 1),
    ]


def test_agreement_in_bits_is_about_bits() -> None:
    change = of([finding()], [finding(diagnosis="bits differ, within the budget")])
    assert (change.level, change.before) == ("bits", "none")


def test_another_message_of_the_same_error_is_noted() -> None:
    a, b = "x.y raised ValueError: no", "x.y raised TypeError: no"
    assert of([finding(verdict="error", diagnosis=a)], [finding(verdict="error", diagnosis=b)]).direction == "noted"
    rows = [f"x.y.forward raised for {t} rows of shape ({n}, 2)" for t, n in (("float16", 3), ("float32", 4))]
    new = [finding(verdict="error", diagnosis=text, family=str(n)) for n, text in enumerate(rows)]
    change = of([finding(family=str(n)) for n in range(2)], new)
    assert change.count == 2, "the shape in the message makes no other cause"


@pytest.mark.parametrize(
    ("field", "before", "after", "direction"),
    [
        ("ran", "flash", "math", "changed"),
        ("ran", "flash", "could not be seen: no", "noted"),
        ("contract", "zero", "nan", "changed"),
        ("declared_contract", "zero", "nan", "changed"),
        ("tier", {"forward:float32": "strict"}, {"forward:float32": "lse"}, "changed"),
        ("methods", ["forward", "vjp"], ["forward"], "changed"),
        ("unsupported", {}, {"jvp": "no forward mode"}, "changed"),
        ("convention", "allowed", "blocked", "changed"),
        ("kernel", "forced", "not forced", "noted"),
    ],
)
def test_what_a_subject_is_and_what_ran(field: str, before: Any, after: Any, direction: str) -> None:
    a, b = (certificate([finding()], subjects=[subject(**{field: value})]) for value in (before, after))
    change = only(a, b)
    assert (change.level, change.direction) == ("policy", direction)
    assert change.before != change.after


@pytest.mark.parametrize(
    ("before", "after", "direction"),
    [
        ("strict", "lse", "worse"),
        ("lse", "exp2", "better"),
        ("strict", "", "worse"),
        ("", "lse", "better"),
        ("mixed-2", "exp2", "changed"),
        ("half-ops", "an unknown tier", "changed"),
    ],
)
def test_the_strongest_tier_that_holds(before: str, after: str, direction: str) -> None:
    def side(strongest: str) -> Certificate:
        record = Measured(subject="x.y", declaration=VALUES, dtype="float32", declared="strict", strongest=strongest)
        return certificate([finding()], measured=[record])

    change = only(side(before), side(after))
    assert (change.level, change.kind, change.direction) == ("policy", "strongest tier that holds", direction)


def test_bits_name_subject_theorem_and_family() -> None:
    families = ("ties", "lone", "far")
    old = [output(family=family) for family in families]
    new = [output(family=family, changed=family == "lone") for family in families]
    found = [finding(family=family) for family in families]
    change = only(certificate(found, outputs=old), certificate(found, outputs=new))
    assert (change.level, change.count, change.of) == ("bits", 1, 3)
    assert (change.subjects, change.declarations, change.families) == (["x.y"], [VALUES], ["lone"])
    assert change.note == "the verdicts on them are as they were"
    assert change.places[0].id == found[1].id
    comparison = compare(certificate(found, outputs=old), certificate(found, outputs=new))
    assert [exit_code(comparison, level) for level in LEVELS] == [0, 0, 0, 1]


def test_bits_are_compared_on_the_very_same_rows_only() -> None:
    old, new = certificate([finding()], outputs=[output()]), certificate([finding()], outputs=[output(True)], seed=1)
    comparison = compare(old, new)
    assert not comparison.changes
    assert comparison.missing == ["bits"]
    assert comparison.not_compared == ["Bits: the seeds differ (0, 1)."]
    assert exit_code(comparison, "distribution") == 0
    assert exit_code(comparison, "bits") == 2


def test_other_rules_leave_verdicts_alone() -> None:
    old, new = [finding()], [finding(verdict="fail")]
    comparison = compare(certificate(old), certificate(new, request={"contract": "nan"}, outputs=[output()]))
    assert not comparison.changes
    assert comparison.missing == ["verdict", "policy"]
    assert "contract: none → nan" in comparison.not_compared[0]
    assert exit_code(comparison, "verdict") == 2


def test_another_effort_compares_what_both_have() -> None:
    old = [finding(), finding(family="far")]
    comparison = compare(certificate(old), certificate([finding()], request={"effort": "default"}))
    assert [c.direction for c in comparison.changes] == ["noted"]
    assert comparison.missing == ["distribution", "bits"]
    # All of a declaration gone is no matter of rows.
    gone = compare(certificate([*old, finding(declaration=ZERO)]), certificate(old, seed=3))
    assert [(c.kind, c.direction) for c in gone.changes] == [("coverage", "worse")]


def test_another_version_and_another_statement_come_first() -> None:
    old, new = certificate([finding()]), certificate([finding(verdict="fail")], fingerprint="two", hardmask="0.2.0")
    comparison = compare(old, new)
    assert comparison.suite[0] == "hardmask 0.1.0 made the old certificate, 0.2.0 the new one"
    assert [VALUES in line or ZERO in line for line in comparison.suite[1:]] == [True, True]
    assert not comparison.changes, "a verdict on another statement is another verdict"
    assert comparison.missing == ["distribution", "bits"]


def test_a_dtype_that_one_run_was_not_asked_for_is_not_lost() -> None:
    old = [finding(), finding(dtype="float16")]
    comparison = compare(certificate(old), certificate([finding()], request={"dtypes": ["float32"]}))
    assert not comparison.changes
    assert comparison.not_compared == ["float16: asked for by the old run only."]


def test_the_environment_is_compared_however_it_is_nested() -> None:
    old = {"python": "3.11.7", "builds": {"x": {"blas": "a", "threads": 1}}, "settings": {"A": "1"}}
    new = {"python": "3.11.7", "builds": {"x": {"blas": "b", "threads": 1}}, "features": ["avx2", "fma"]}
    comparison = compare(certificate([finding()], environment=old), certificate([finding()], environment=new))
    assert {(d.what, d.old, d.new) for d in comparison.differences} == {
        ("builds.x.blas", "a", "b"),
        ("settings.A", "1", ""),
        ("features", "", "avx2, fma"),
    }


def test_sweeps_over_the_same_rows_leave_nothing_to_chance() -> None:
    def sweep(share: float, far: int, sha256: str = "c" * 64) -> Certificate:
        record = SweepRecord(
            subject="x.y",
            dtype="float16",
            kind="pairs",
            method="forward",
            enumerated="all pairs",
            sample="all",
            first_scores=3,
            sampled=3,
            of=3,
            sha256=sha256,
            rows=9,
            outputs=18,
            complete=True,
            note="",
            tier="mixed",
            violations=0,
            permitted=0,
            judged=0,
            not_correctly_rounded=[1, 1],
            share_not_correctly_rounded=share,
            largest_code_distance=[far, 1],
            witness=None,
        )
        return certificate([finding()], sweeps=[record])

    assert only(sweep(0.1, 1), sweep(0.1 + 1e-9, 1)).direction == "worse"
    assert only(sweep(0.1, 1), sweep(0.05, 1)).direction == "better"
    assert only(sweep(0.1, 1), sweep(0.05, 2)).direction == "changed"
    assert not compare(sweep(0.1, 1), sweep(0.1, 1)).changes
    assert not compare(sweep(0.1, 1), sweep(0.2, 1, "d" * 64)).changes, "other rows were enumerated"


def test_what_cannot_be_compared_is_refused_with_a_sentence() -> None:
    whole = certificate([finding()])
    for old, new, why in (
        (whole, certificate([finding()], complete=False), "The new certificate is incomplete"),
        (certificate([finding()], complete=False), whole, "The old certificate is incomplete"),
        (whole, certificate([finding("other.y")]), "no subject in common"),
        (whole, certificate([finding()], request={"dtypes": ["float64"]}), "no dtype in common"),
    ):
        with pytest.raises(IncomparableError, match=why):
            compare(old, new)


KEYS = st.tuples(
    st.sampled_from(["x.a", "x.b", "y.a"]),
    st.sampled_from([ZERO, VALUES]),
    st.sampled_from(["float32", "float16"]),
    st.sampled_from(["ties", "empty", "(not run)"]),
)
SIDES = st.dictionaries(KEYS, st.tuples(st.sampled_from(SEVERITY), st.sampled_from(["", "NaN", "zero"])), min_size=1)


def test_an_error_that_is_gone_is_no_coverage_lost() -> None:
    def failed(name: str, family: str) -> Finding:
        text = f"{name}.forward raised ValueError: no for float32 q of shape (2, 3)"
        return finding(name, family=family, verdict="error", diagnosis=text, checked=0)

    old = [failed(name, family) for name in ("x.y", "x.z") for family in ("ties", "padding")]
    new = [finding(name, family="ties") for name in ("x.y", "x.z")]
    better, noted = compare(certificate(old), certificate(new)).changes
    assert (better.direction, better.subjects, better.families) == ("better", ["x.y", "x.z"], ["ties"])
    assert (noted.kind, noted.direction, noted.before, noted.families) == ("coverage", "noted", "error", ["padding"])
    # The other way round it is an error of each.
    (worse,) = compare(certificate(new), certificate(old)).changes[:1]
    assert (worse.direction, worse.count) == ("worse", 2)


@settings(max_examples=300, deadline=None)
@given(SIDES, SIDES)
def test_no_flip_is_lost_and_none_is_made_up(before: Any, after: Any) -> None:
    def side(chosen: Any) -> Certificate:
        names = [subject(name) for name in ("x.a", "x.b", "y.a")]
        return certificate(
            [finding(*key, verdict=verdict, diagnosis=text) for key, (verdict, text) in chosen.items()], subjects=names
        )

    changes = compare(side(before), side(after)).changes
    flipped = {p.id for c in changes if c.kind == "verdict" and c.before != "not judged" for p in c.places}
    expected = {
        finding(*key).id
        for key in before.keys() & after.keys()
        if before[key][0] != after[key][0] and {before[key][0], after[key][0]} <= QUALITY.keys()
    }
    assert flipped == expected
    lost = {p.id for c in changes if c.kind == "coverage" and c.before != "not judged" for p in c.places}
    assert lost == {
        finding(*key).id
        for key, (verdict, _) in before.items()
        if verdict in QUALITY and (key not in after or after[key][0] not in QUALITY)
    }
    worse = any(c.regression and c.level == "verdict" for c in changes)
    assert exit_code(compare(side(before), side(after)), "verdict") == worse
    assert all(c.count == len(c.places) == sum(1 for p in c.places if p.subject in c.subjects) for c in changes)
