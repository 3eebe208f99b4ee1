"""The tables of docs/reading-a-report.md against the code, docs/declarations.md against the catalogue."""

from __future__ import annotations

import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import click
import msgspec
import numpy as np
import pytest

from hardmask.adapters import resolve
from hardmask.adapters.subject import Role, Subject
from hardmask.conformance import checks, diagnosis
from hardmask.conformance.attention import diagnosis as of_attention
from hardmask.conformance.attention.checks import pairing
from hardmask.conformance.attention.checks import relations as parts
from hardmask.conformance.cases.build import FORWARD_ONLY, SEARCHED, SHORT
from hardmask.conformance.cases.plan import EFFORTS, OTHER_LENGTHS, OTHER_ROWS, SIZES, TILED, TILED_ROWS, plan
from hardmask.conformance.cases.scores import SHAPES
from hardmask.conformance.cases.vectors import KINDS
from hardmask.conformance.certification import REQUIREMENTS, Request
from hardmask.conformance.certification import certify as run_certify
from hardmask.conformance.checks import SERVED_BY, adjoint, derivative, empty_row, facts, forward, relations
from hardmask.conformance.cli import main
from hardmask.conformance.commands.certify import certify
from hardmask.conformance.document import (
    Certificate,
    DeviationRecord,
    ErrorRecord,
    Measured,
    OutputRecord,
    SubjectRecord,
    SweepRecord,
)
from hardmask.conformance.finding import SEVERITY, AttentionWitness, Finding, Verdict, Witness
from hardmask.conformance.promises import PROMISES
from hardmask.conformance.runner import judge
from hardmask.conformance.terminal.report import BLOCKS
from hardmask.conformance.terminal.witness import HINTS
from hardmask.spec.catalogue import declarations
from hardmask.spec.contracts import CONTRACTS
from hardmask.spec.formats import DTYPES, FORMATS
from hardmask.spec.rounding import TIERS, model

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reading-a-report.md").read_text()
BUDGETS = (DOCS / "budgets.md").read_text()

Rows = list[list[str]]


def table(first: str, page: str = PAGE, *, number: int = 0) -> Rows:
    """The rows of a table whose heading begins with a word, without the heading."""
    found = re.findall(rf"^\| {re.escape(first)} \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.M)
    return [[cell.strip() for cell in line.strip("| \n").split(" | ")] for line in found[number].splitlines()]


def names(rows: Rows) -> list[str]:
    """What the first cells name in code type."""
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


def test_the_verdicts_stand_in_the_order_of_severity() -> None:
    assert tuple(names(table("verdict"))) == SEVERITY
    assert set(SEVERITY) == set(get_args(Verdict))
    assert "one of seven verdicts" in PAGE
    architecture = " ".join((DOCS.parent / "ARCHITECTURE.md").read_text().split())
    assert ", ".join(f"`{v}`" for v in SEVERITY) in architecture


def test_the_contracts_say_what_the_code_judges() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table("contract")}
    assert rows == {c.name: [c.weights, c.derivatives, c.valid, c.others] for c in CONTRACTS.values()}


def test_the_tutorial_names_every_contract() -> None:
    rows = table("contract", (DOCS / "tutorial-empty-row.md").read_text())
    assert names(rows)[0] == Subject("a", lambda s, m: s).contract == "zero"
    kinds = [row[0].strip("`").partition("(")[0] for row in rows]
    assert kinds == [c.kind for c in CONTRACTS.values()]


def test_roles_and_tiers_are_those_of_the_code() -> None:
    assert tuple(names(table("role"))) == get_args(Role)
    for page in (PAGE, BUDGETS):
        assert tuple(names(table("tier", page))) == TIERS
    plain = Subject("a", lambda s, m: s, dtypes=DTYPES)
    meanings = {row[0].strip("`"): row[1] for row in table("tier")}
    for dtype in DTYPES:
        assert dtype in meanings[plain.tier_for("forward", dtype)].partition("The default for")[2]


def test_the_rounding_model_of_the_budgets_page_is_that_of_strict() -> None:
    rows = {row[0]: row[2] if len(row) > 2 else "" for row in table("symbol", BUDGETS)}
    for dtype, power in (("float32", "2⁻²⁴"), ("float64", "2⁻⁵³")):
        strict = model("strict", dtype)
        assert f"{power} for {dtype}" in rows["u"]
        assert strict.u == FORMATS[dtype].u == 2.0 ** -int("".join(str("⁰¹²³⁴⁵⁶⁷⁸⁹".index(c)) for c in power[2:]))
        assert rows["σ(x)"] == "0"
        assert not strict.storage_error(np.array([0.0, 0.3, 1.0])).any()
        assert rows["α"].startswith(f"{strict.alpha:g} ")
        assert rows["divisions"] == str(strict.divisions)
        assert (rows["flush"] == "yes") == strict.flush
    limit = int(re.search(r"less than (\d+) budgets", PAGE).group(1))  # type: ignore[union-attr]
    assert limit == diagnosis.ROUNDING


def test_the_diagnoses_are_words_of_the_code() -> None:
    modules = (diagnosis, adjoint, derivative, empty_row, facts, forward, relations, of_attention, pairing, parts)
    source = "\n".join(inspect.getsource(m) for m in modules) + inspect.getsource(inspect.getmodule(judge))  # type: ignore[arg-type]
    described = names(table("diagnosis"))
    assert len(described) > 20
    for name in described:
        pattern = re.sub("VJP|JVP", r"(?:VJP|JVP|\\{mode\\.upper\\(\\)\\}|\\{name\\})", re.escape(name))
        assert re.search(f'"{pattern}"', source), f"No check gives the diagnosis '{name}'."
    # And the other way round: every fixed name that the diagnosis of a row may give is described.
    given = re.findall(r'_name\(\s*names,[^"]*?f?"([^"{]+)"\)', inspect.getsource(diagnosis))
    assert len(given) > 10
    assert (set(given) | set(HINTS)) - {"empty row"} <= set(described)


def test_the_efforts_are_those_of_the_plan() -> None:
    rows = table("effort")
    assert tuple(names(rows)) == EFFORTS == tuple(SIZES)
    for name, row in zip(EFFORTS, rows, strict=True):
        size = SIZES[name]
        lengths = ", ".join(map(str, size.long)) or "none"
        assert row[1:] == [str(size.rows), lengths, str(size.rounds)]
        short = {c.keys for c in plan(name, 0, ["float32"]) if c.layout is None and c.kind != "lengths"} - set(
            size.long
        )
        assert short == ({0, 1, SHORT, TILED} if size.long else {0, 1, SHORT})
    assert f"length 0, 1 and {SHORT}" in PAGE
    assert f"{TILED_ROWS} rows of length {TILED}" in PAGE
    further = ", ".join(map(str, OTHER_LENGTHS[:-1])) + f" and {OTHER_LENGTHS[-1]}"
    assert f"{OTHER_ROWS} rows of each of the lengths {further}" in PAGE


def test_every_family_is_described() -> None:
    described = names(table("scores")) + names(table("family"))
    assert len(set(described)) == len(described)
    batches = [case.build() for case in plan("default", 0, ["float32"]) if case.layout is None]
    assert set(described) == {family for batch in batches for family in batch.families} | {SEARCHED}
    assert set(names(table("scores"))) == set(SHAPES)
    assert len(KINDS) == len(set(KINDS)) + 3  # Gaussian and unit vectors come up more often than the others
    (told,) = re.findall(r"The vectors of the derivatives are (.*?), in turn\.", PAGE, re.S)
    assert len(re.split(r",\s|\sand\s", told)) == len(set(KINDS))
    (weights_only,) = re.findall(r"Of the long rows,\s(.*?) judge the weights only", PAGE)
    assert tuple(re.findall(r"`(\w+)`", weights_only)) == FORWARD_ONLY


def test_every_promise_is_described_and_no_other_is_known() -> None:
    described = names(table("promise"))
    assert Subject("a", lambda s, m: s, promises=frozenset(described)).promises == set(described)
    required = set(described) - {"vjp-from-output"}
    known = {key.removeprefix("attention_").replace("_", "-") for key in PROMISES}
    assert required == set(REQUIREMENTS) - {"zero", "complete"} == known


def test_a_subject_may_raise_on_rows_that_no_theorem_speaks_of_and_nowhere_else() -> None:
    (good,) = resolve(["numpy.softmax-where"])

    def careful(scores: Any, mask: Any) -> Any:
        if not np.isfinite(scores[mask].astype(float)).all():
            raise FloatingPointError("not a number")
        return good.forward(scores, mask)

    def picky(scores: Any, mask: Any) -> Any:
        if (scores[mask] == 0.0).any():
            raise FloatingPointError("a zero")
        return good.forward(scores, mask)

    subjects = [Subject(f"a.{f.__name__}", f, contract="zero+valid") for f in (careful, picky)]
    report = run_certify(Request(("x",), effort="smoke", dtypes=("float32",)), subjects=subjects)
    assert [s.verdict for s in report.certificate.subjects] == ["pass", "error"]
    facts = [f for f in report.certificate.findings if f.subject == "a.careful" and "not a number" in f.diagnosis]
    assert facts
    assert {f.verdict for f in facts} == {"hypothesis-unmet"}


def test_what_a_subject_prints_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def loud(scores: Any, mask: Any) -> Any:
        print("LOUD")
        return np.zeros_like(scores)

    run_certify(Request(("x",), effort="smoke", dtypes=("float32",)), subjects=[Subject("a.loud", loud)])
    assert capsys.readouterr().out == ""


def test_the_options_and_their_defaults() -> None:
    rows = {row[0].strip("`"): row[1:] for row in table("option")}
    options = {p.opts[0]: p for p in certify.params if isinstance(p, click.Option)}
    assert rows.keys() == options.keys()
    for flag, (default, _) in rows.items():
        actual = options[flag].default
        if default.startswith("`"):
            assert default == f"`{actual}`", flag
        else:
            assert options[flag].multiple or actual in (None, False) or "UNSET" in repr(actual), (flag, actual)
    assert tuple(re.findall(r"`([a-z-]+)`", rows["--require"][1])) == REQUIREMENTS


def test_the_exit_codes_are_those_of_the_help() -> None:
    codes = [row[0] for row in table("code")]
    assert codes == ["0", "1", "2", "3"]
    text = " ".join((main.help or "").split())
    assert [f"{code} " in text.partition("Exit codes:")[2] for code in codes] == [True] * 4


@pytest.mark.parametrize(
    ("heading", "number", "record"),
    [
        ("key", 0, Certificate),
        ("field", 0, SubjectRecord),
        ("field", 1, Finding),
        ("field", 2, ErrorRecord),
        ("field", 3, OutputRecord),
        ("field", 4, DeviationRecord),
        ("field", 5, Measured),
        ("field", 6, Witness),
        ("field", 7, AttentionWitness),
        ("field", 8, SweepRecord),
    ],
)
def test_the_fields_of_the_certificate(heading: str, number: int, record: type[msgspec.Struct]) -> None:
    assert sorted(names(table(heading, number=number))) == sorted(f.name for f in msgspec.structs.fields(record))


def test_the_request_in_the_certificate() -> None:
    report = run_certify(Request(("numpy.fill-inf",), effort="smoke", dtypes=("float32",)))
    (text,) = re.findall(r"^\| `request` \| (.*) \|$", PAGE, re.M)
    assert re.findall(r"`(\w+)`", text) == list(report.certificate.request)


def test_the_number_of_blocks() -> None:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    assert f"At most {words[BLOCKS]} blocks" in PAGE


def generator() -> ModuleType:
    """The script that writes docs/declarations.md."""
    spec = importlib.util.spec_from_file_location("hardmask_docs_declarations", DOCS / "generate_declarations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_of_declarations_is_fresh() -> None:
    fresh = generator().page()
    assert (DOCS / "declarations.md").read_text() == fresh, "Run: python docs/generate_declarations.py"
    for d in (*declarations().values(), *PROMISES.values()):
        assert fresh.count(f"`{d.name}`") == 1
        assert d.fingerprint in fresh
        assert d.statement in fresh


def test_every_check_of_the_reference_has_a_module() -> None:
    page = generator()
    for key in declarations().keys() | PROMISES.keys():
        text = page.check(key)
        assert (key in SERVED_BY) == ("conformance/checks/" in text), text
    assert set(page.CHECKS) == {inspect.getmodule(check) for check in checks.CHECKS}
