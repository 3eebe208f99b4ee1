"""What the terminal shows: cells, the witness of a failure, and the summary."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject
from hardmask.conformance.cases import Case
from hardmask.conformance.certification import Report
from hardmask.conformance.finding import Finding
from hardmask.conformance.runner import CaseJudged, CaseStarted
from hardmask.conformance.terminal.matrix import cell, short_name, used
from hardmask.conformance.terminal.progress import ProgressBar
from hardmask.conformance.terminal.report import BLOCKS, print_report
from hardmask.conformance.terminal.witness import block, failures
from hardmask.spec.oracle import Audit


def finding(**fields: Any) -> Finding:
    return Finding(
        **{
            "subject": "x",
            "declaration": "extension:row-sum",
            "dtype": "float32",
            "family": "normal",
            "verdict": "pass",
            "diagnosis": "",
            "checked": 1,
            "failed": 0,
            "unmet": 0,
            "elements": 13,
            "tier": "strict",
            "ratio": 0.25,
            "error": 0.0,
            "budget": 1.0,
            "enclosure": None,
            "witness": None,
            **fields,
        }
    )


CELLS: dict[str, tuple[list[Finding], str]] = {
    "passed": ([finding(ratio=0.25), finding(ratio=0.993)], "pass .99"),
    "exact": ([finding(ratio=0.0)], "pass 0"),
    "failed": ([finding(ratio=0.2), finding(verdict="fail", ratio=3.2e7)], "FAIL >1e+06"),
    "failed in one format": (
        [finding(ratio=0.2), finding(dtype="float16", verdict="fail", ratio=1.5)],
        "FAIL f16 1.50",
    ),
    "failed with no number": ([finding(verdict="fail", ratio=None)], "FAIL"),
    "erred": ([finding(), finding(verdict="error", ratio=None)], "ERROR"),
    "permitted": ([finding(), finding(verdict="permitted")], "permitted .25"),
    "vacuous": ([finding(verdict="vacuous", ratio=0.1)], "vacuous .10"),
    "unmet beside passed": ([finding(), finding(verdict="hypothesis-unmet", checked=0, ratio=None)], "pass .25"),
    "not judged": ([finding(verdict="unsupported", checked=0, ratio=None)], "–"),
    "nothing": ([], "–"),
}


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_shows_the_verdict_and_the_budget_used(name: str) -> None:
    findings, text = CELLS[name]
    assert cell(findings).plain == text


def test_numbers_are_short() -> None:
    assert [used(x) for x in (0.0, 0.001, 0.005, 0.5, 0.9949, 0.996, 1.0, 99.0, 1e9)] == [
        "0", "<.01", "<.01", ".50", ".99", ".99", "1.00", "99.00", ">1e+06"
    ]  # fmt: skip


def test_names_are_short() -> None:
    assert short_name("NN.Proofs.Models.Attention.hardMaskedSoftmaxVecSpec_blocked_eq_zero").startswith("hardMasked")
    assert short_name("extension:empty-row") == "extension:empty-row"


def shown(report: Report, width: int = 140) -> str:
    out = io.StringIO()
    print_report(report, Console(file=out, width=width, color_system=None))
    return out.getvalue()


def uniform(scores: Any) -> Any:
    return np.full_like(scores, 1.0 / max(scores.shape[1], 1))


def test_a_leak_is_explained_in_one_block(on_empty_rows: Callable[..., Subject], judge: Callable[..., Report]) -> None:
    report = judge(on_empty_rows("x.fills", uniform))
    group = next(g for g in failures(report.certificate) if g[0].declaration == "extension:empty-row")
    text = block(group, report.certificate)
    lines = dict(line.strip().split(None, 1) for line in text.splitlines()[1:] if not line.strip().startswith("("))
    assert text.splitlines()[0].startswith("x.fills · extension:empty-row · float32 · ")
    assert lines["diagnosis"].startswith("uniform: ")
    declaration = report.certificate.declarations["extension:empty-row"]
    assert lines["theorem"] == declaration["statement"]
    assert declaration["plain"] in text
    assert set(lines["allowed"].split()) == {"no"}
    assert len(set(lines["returned"].split())) == 1
    assert set(lines["true"].split()) == {"0"}
    assert "where nothing but the exact value is allowed" in lines["error"]
    assert "failed in this family" in lines["rows"]
    assert "also on" in text
    assert "batch float32/" in text
    assert text in shown(report)


def test_an_error_of_rounding_shows_how_far_beyond_the_budget_it_is(
    changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        return softmax_where(scores, mask).weights * np.float32(1 + 2.0**-18)

    report = judge(changed("x.off", forward=forward))
    text = shown(report)
    assert "times the budget of" in text
    assert "Not certified: x.off." in text
    for group in failures(report.certificate):
        f = group[0]
        assert {g.diagnosis for g in group} == {f.diagnosis}
        assert f.witness is not None
        assert f.witness.keys == min(g.witness.keys for g in group if g.witness is not None and g.witness.keys > 1)


def test_an_adapter_that_raises_shows_its_sentence(
    changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        raise OSError("[bold]device[/bold] lost")

    text = shown(judge(changed("x.raises", forward=forward)))
    assert "x.raises.forward failed on float32 rows of shape" in text
    assert "[bold]device[/bold] lost" in text, "what a backend says is no markup"


def test_a_derivative_shows_its_vector(
    good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    report = judge(changed("x.sign", vjp=lambda s, m, v: -good.vjp(s, m, v), jvp=good.jvp))  # type: ignore[misc]
    text = shown(report)
    assert "wrong sign" in text
    assert "cotangent" in text


def test_only_a_few_blocks_are_shown_per_subject(
    good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    def forward(scores: Any, mask: Any) -> Any:
        w = softmax_where(scores, mask).weights
        row = np.arange(len(w))[:, None] % 8
        for k, wrong in enumerate((np.nan, np.inf, -w, w * 2, w + 1, w[:, ::-1], w * np.float32(1.0001), w * 0)):
            w = np.where(row == k, wrong, w)
        return w.astype(scores.dtype)

    def vjp(scores: Any, mask: Any, v: Any) -> Any:
        return v * np.where(np.arange(len(v))[:, None] % 2, np.nan, 1).astype(v.dtype)

    report = judge(changed("x.poor", forward=forward, vjp=vjp))
    text = shown(report)
    kinds = len(failures(report.certificate))
    assert kinds > BLOCKS
    assert text.count("  diagnosis  ") == BLOCKS
    assert f"{kinds - BLOCKS} more kinds of failure are in the certificate (--out FILE)." in text


def test_the_summary_names_the_seed_and_what_was_not_judged(
    changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    report = judge(changed("x.one"), seed=7)
    text = " ".join(shown(report).split())
    assert "Not judged: x.one (the subject offers no vjp; the subject offers no jvp)." in text
    assert "Seed 7, effort smoke" in text
    assert "Certified: every subject keeps what it declares." in text


def test_every_column_fits_its_subject(
    good: Subject, changed: Callable[..., Subject], judge: Callable[..., Report]
) -> None:
    """Ids with brackets are text, not markup, and many subjects make several tables."""
    report = judge(*(changed(f"x.s{i}[jit]") for i in range(7)))
    text = shown(report)
    for i in range(7):
        assert f"s{i}[jit]" in text
    assert text.count("extension:row-sum") == 2
    assert max(map(len, text.splitlines()[:30])) <= 140


def test_progress_shows_the_batch() -> None:
    out = io.StringIO()
    case = Case("float32", "shapes", 104, 13, 0, 0)
    with ProgressBar(Console(file=out, force_terminal=True, width=100)) as bar:
        bar(CaseStarted(case, 0, 2))
        bar(CaseJudged(case, 0, 2, Audit()))
        bar._progress.refresh()
    assert "float32/shapes/104x13/0" in out.getvalue()


def test_progress_is_silent_off_a_terminal() -> None:
    out = io.StringIO()
    with ProgressBar(Console(file=out, width=100)) as bar:
        bar(CaseStarted(Case("float32", "shapes", 104, 13, 0, 0), 0, 1))
    assert out.getvalue() == ""
