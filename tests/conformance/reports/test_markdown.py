"""The summary in Markdown: what it says, that it stays small, and that nothing in it becomes markup."""

from __future__ import annotations

import re

import msgspec
import pytest

from hardmask.conformance.reports import Outcome, markdown
from hardmask.conformance.reports.markdown import LIMIT, code, escaped

replace = msgspec.structs.replace


def test_it_says_the_verdict_the_counts_and_how_to_run_a_failure_again(failing: Outcome) -> None:
    page = markdown(failing)
    assert "**Not certified: numpy.replace-min.**" in page
    mine = [f.verdict for f in failing.certificate.findings if f.subject == "numpy.replace-min"]
    head, row = (next(line for line in page.splitlines() if line.startswith(s)) for s in ("| subject", "| `numpy.repl"))
    cells = dict(zip(head.split(" | "), row.split(" | "), strict=True))
    for name in ("pass", "fail", "unsupported"):
        assert cells[name] == f"{mine.count(name):,}"
    found = re.search(r"Finding `(\w{12})`. Run it again: `hardmask replay certificate.json (\w{12})`", page)
    assert found
    assert found[1] == found[2]
    assert found[1] in {f.id for f in failing.certificate.findings if f.verdict == "fail"}
    assert "NumPy has no bfloat16" in page
    for sentence in failing.certificate.not_shown:
        assert escaped(sentence) in page


def test_one_that_passes_is_short(passing: Outcome) -> None:
    page = markdown(passing)
    assert "**Certified: every subject keeps what it declares.**" in page
    assert "What fails" not in page
    assert "deviation" not in page


def test_known_deviations_have_their_reason_link_and_end(deviating: Outcome) -> None:
    page = markdown(deviating)
    assert "What fails" not in page
    assert "| known deviations |" in page
    used = deviating.certificate.deviations[0].findings
    row = f"fixed upstream ([link](<https://example.org/1?a=b&c=d>)) | 2027-01-31 | {used:,} |"
    assert row in page


def test_hostile_text_is_no_markup(hostile: Outcome) -> None:
    page = markdown(hostile)
    assert all(c.isprintable() or c == "\n" for c in page)
    page.encode()
    prose = re.sub(r"^(`{3,})text\n.*?^\1$", "", page, flags=re.M | re.S)
    prose = re.sub(r"(?<![`\\])(`+)(?!`).*?(?<!`)\1(?!`)", "", prose)
    for tag in re.findall(r"(?<!\\)<[^>]*>", prose):
        assert re.fullmatch(r"</?(details|summary|code)>", tag), tag
    assert not re.search(r"(?<!\\)\]\((?!<https?:)", prose)
    assert "javascript\\:alert" in prose
    assert not re.search(r"(?<!\\)@|(?<!\\)://|www\.", prose)
    assert re.findall(r"^#+ .*", prose, re.M) == ["## ❌ hardmask", "### What fails", "### Known deviations"]


@pytest.mark.parametrize("text", ["", "`", "a`", "``a```b", "|", "\\"])
def test_code_is_closed_by_the_fence_that_opens_it(text: str) -> None:
    shown = code(text)
    fence = re.match("`+", shown)
    assert fence
    inner = shown[len(fence[0]) : -len(fence[0])]
    assert fence[0] not in re.findall("`+", inner)
    assert inner.strip(" ") == text or not text


def test_the_page_stays_below_what_a_service_takes(failing: Outcome) -> None:
    certificate = failing.certificate
    subject = certificate.subjects[0]
    many = [replace(subject, id=f"{'x' * 1900}{i}") for i in range(5000)]
    whole = replace(certificate, subjects=many, not_shown=["n" * 1900] * 1000)
    page = markdown(Outcome(whole, 1, "Not certified."))
    assert len(page.encode()) <= LIMIT
    assert page.endswith("</details>\n")
    assert "more subjects are in the certificate" in page or "too long for this page" in page
