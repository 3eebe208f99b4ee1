"""JUnit files: valid, complete, and red exactly where the gate is."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from lxml import etree

from hardmask.conformance.document import DeviationRecord
from hardmask.conformance.finding import combine
from hardmask.conformance.reports import Outcome, junit

SCHEMA = etree.XMLSchema(etree.parse(str(Path(__file__).parents[2] / "data" / "junit.xsd")))


def parsed(outcome: Outcome) -> etree._Element:
    root = etree.fromstring(junit(outcome))
    SCHEMA.assertValid(root)
    return root


@pytest.mark.parametrize("name", ["failing", "passing", "deviating", "hostile"])
def test_the_file_is_valid_and_red_exactly_where_the_exit_code_is_not_0(
    name: str, request: pytest.FixtureRequest
) -> None:
    outcome: Outcome = request.getfixturevalue(name)
    root = parsed(outcome)
    red = root.findall(".//failure") + root.findall(".//error")
    assert bool(red) == (outcome.exit_code != 0)
    assert len(root.findall("testsuite")) == 1 + len(outcome.certificate.subjects)
    for holder in (root, *root.findall("testsuite")):
        assert int(holder.get("tests")) == len(holder.findall(".//testcase"))
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(holder.get(attribute)) == len(holder.findall(f".//{tag}"))


def test_each_theorem_is_a_case_whose_result_is_its_verdict(failing: Outcome) -> None:
    root = parsed(failing)
    results = {"fail": "failure", "error": "error", "unsupported": "skipped", "hypothesis-unmet": "skipped"}
    for subject in failing.certificate.subjects:
        suite = root.find(f"testsuite[@name='{subject.id}']")
        expected: dict[str, list[str]] = {}
        for f in failing.certificate.findings:
            if f.subject == subject.id:
                expected.setdefault(f.declaration, []).append(f.verdict)
        cases = {case.get("name"): case for case in suite.findall("testcase")}
        assert len(cases) == len(expected)
        for declaration, verdicts in expected.items():
            case = cases[declaration if ":" in declaration else declaration.rpartition(".")[2]]
            result = results.get(combine(verdicts))  # type: ignore[arg-type]
            assert [child.tag for child in case if child.tag != "system-out"] == ([result] if result else [])


def test_a_failure_shows_its_row_its_ids_and_how_to_run_it_again(failing: Outcome) -> None:
    suite = parsed(failing).find("testsuite[@name='numpy.replace-min']")
    case = suite.find("testcase[@name='extension:empty-row']")
    told = case.find("failure")
    assert told.get("type") == "uniform"
    assert "uniform" in told.get("message")
    bad = [
        f.id
        for f in failing.certificate.findings
        if (f.subject, f.declaration, f.verdict) == ("numpy.replace-min", "extension:empty-row", "fail")
    ]
    for part in ("returned", "true", "theorem", bad[0]):
        assert part in told.text
    assert any(f"hardmask replay certificate.json {i}" in told.text for i in bad)


def test_what_was_not_judged_is_skipped_or_remarked_on_with_its_reason(failing: Outcome) -> None:
    suite = parsed(failing).find("testsuite[@name='numpy.fill-inf']")
    skipped = suite.find("testcase[@name='inner_derivative']/skipped")
    assert skipped.get("type") == "hardmask.unsupported"
    assert "NumPy does not differentiate" in skipped.get("message")
    out = suite.find("testcase[@name='getScalar_hardMaskedSoftmaxVecSpec']/system-out").text
    assert "not judged in bfloat16: NumPy has no bfloat16" in out
    values = {p.get("name"): p.get("value") for p in suite.findall("properties/property")}
    mine = [f for f in failing.certificate.findings if f.subject == "numpy.fill-inf"]
    assert sum(int(value) for name, value in values.items() if name.startswith("findings: ")) == len(mine)


def test_a_known_deviation_is_skipped_and_says_until_when(deviating: Outcome) -> None:
    skipped = parsed(deviating).findall(".//skipped[@type='hardmask.deviation']")
    assert skipped
    assert {s.get("message") for s in skipped} == {
        "known deviation: fixed upstream https://example.org/1?a=b&c=d (expires 2027-01-31)"
    }


@pytest.mark.parametrize("status", ["expired", "unmatched", "fixed"])
def test_a_deviation_that_fails_the_gate_is_a_case_of_its_own(deviating: Outcome, status: str) -> None:
    stale = msgspec.structs.replace(deviating.certificate.deviations[0], status=status)
    assert isinstance(stale, DeviationRecord)
    certificate = msgspec.structs.replace(deviating.certificate, deviations=[stale])
    root = parsed(Outcome(certificate, 1, "A recorded deviation does not hold."))
    told = root.find("testsuite[@name='hardmask']").findall("testcase/failure")
    assert [t.get("type") for t in told] == ["exit-code-1", status]
    assert "expires 2027-01-31" in told[1].text


def test_a_budget_that_says_nothing_in_one_dtype_is_a_failure(passing: Outcome) -> None:
    findings = [
        msgspec.structs.replace(f, verdict="vacuous") if f.declaration == "extension:row-sum" and f.checked else f
        for f in passing.certificate.findings
    ]
    certificate = msgspec.structs.replace(passing.certificate, findings=findings)
    told = parsed(Outcome(certificate, 1, "Not certified.")).find(".//testcase[@name='extension:row-sum']/failure")
    assert told.text == "The budget says nothing about it in float32."
