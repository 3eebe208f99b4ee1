"""The self-test tells when the suite has lost its power, or fails what is right."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from hardmask.adapters.numpy_rows import softmax_where, softmax_where_derivative
from hardmask.adapters.subject import Subject
from hardmask.conformance.cli import main
from hardmask.conformance.mutants import Mutant, Variant, mutants
from hardmask.conformance.selftest import SelfTest, run, selftest
from hardmask.conformance.selftest.letters import LETTERS, OTHER, legend, letters
from hardmask.conformance.selftest.report import markdown, print_selftest
from hardmask.conformance.selftest.run import KEYS
from hardmask.spec.oracle.referee import Decision


def weights(scores: Any, mask: Any) -> Any:
    """A correct masked softmax."""
    return softmax_where(scores, mask).weights


def doubled(scores: Any, mask: Any) -> Any:
    """A wrong one."""
    return weights(scores, mask) * 2


def refusing(scores: Any, mask: Any) -> Any:
    """One that gives no answer."""
    raise RuntimeError("not today")


def mutant(forward: Any, survivors: dict[str, str] | None = None, **fields: Any) -> Mutant:
    """A mutant of one's own in float32."""
    subject = Subject("mutant.mine", forward, dtypes=("float32",), **fields)
    return Mutant("mine", "L", "Is mine.", subject, survivors or {})


def variant(forward: Any, **fields: Any) -> Variant:
    """A variant of one's own in float32."""
    return Variant("mine", "Is mine.", Subject("variant.mine", forward, dtypes=("float32",), **fields))


@pytest.fixture
def at_smoke(monkeypatch: pytest.MonkeyPatch) -> Callable[..., SelfTest]:
    """A self-test of given mutants and variants in float32 on few rows, judged as strictly as one at default effort."""
    monkeypatch.setattr(run, "LISTED_AT", "smoke")

    def judge(bad: list[Mutant], good: list[Variant] | None = None, **more: Any) -> SelfTest:
        return selftest(**{"dtypes": ["float32"], "effort": "smoke", **more, "given": (bad, good or [])})

    return judge


def test_a_wrong_one_is_caught_and_the_referee_confirms_it(at_smoke: Callable[..., SelfTest]) -> None:
    result = at_smoke([mutant(doubled)])
    cell = result.mutants[0].cells["float32"]
    assert (result.exit_code, result.faults, cell.status, cell.reason) == (0, [], "caught", "")
    assert {"row_sum", "spec_eq_weights"} <= set(cell.theorems)
    assert "float32/" in cell.witness
    assert "structure" not in cell.witness


def test_a_correct_mutant_is_a_survivor_and_a_fault(at_smoke: Callable[..., SelfTest]) -> None:
    result = at_smoke([mutant(weights)])
    assert result.exit_code == 3
    assert result.mutants[0].cells["float32"].status == "survived"
    assert result.faults == ["mine in float32 survived and is not on the list of survivors."]


def test_a_listed_survivor_is_no_fault_unless_it_is_caught(at_smoke: Callable[..., SelfTest]) -> None:
    listed = {"float32": "equivalent: it is the reference"}
    result = at_smoke([mutant(weights, listed)])
    assert (result.exit_code, result.mutants[0].cells["float32"].reason) == (0, listed["float32"])
    caught = at_smoke([mutant(doubled, listed)])
    assert caught.exit_code == 3
    assert "is listed as a survivor (equivalent: it is the reference), and was caught" in caught.faults[0]


def test_a_mutant_that_only_raises_has_not_been_caught(at_smoke: Callable[..., SelfTest]) -> None:
    result = at_smoke([mutant(refusing)])
    assert result.exit_code == 3
    assert "its calls raised, which proves nothing" in result.faults[0]
    assert "not today" in result.faults[0]


def test_elsewhere_than_at_default_effort_survivors_are_remarks() -> None:
    result = selftest(dtypes=["float32"], effort="smoke", given=([mutant(weights)], []))
    assert (result.exit_code, result.faults) == (0, [])
    assert result.remarks == ["mine in float32 survived and is not on the list of survivors."]


def test_a_variant_must_pass(at_smoke: Callable[..., SelfTest]) -> None:
    good = at_smoke([], [variant(weights, vjp=softmax_where_derivative, jvp=softmax_where_derivative)])
    cell = good.variants[0].cells["float32"]
    assert (good.exit_code, cell.status, cell.tier) == (0, "passed", "strict")
    assert 0.05 < cell.share < 1.0
    wrong = at_smoke([], [variant(doubled)])
    assert wrong.exit_code == 3
    assert wrong.variants[0].cells["float32"].status == "failed"
    assert "row_sum" in wrong.variants[0].cells["float32"].theorems
    assert wrong.faults[0].startswith("The correct variant mine did not pass in float32: it failed ")
    silent = at_smoke([], [variant(refusing)])
    assert silent.exit_code == 3
    assert "not today" in silent.faults[0]


def test_a_variant_is_judged_under_the_contract_that_it_declares(at_smoke: Callable[..., SelfTest]) -> None:
    def nan_when_empty(scores: Any, mask: Any) -> Any:
        return np.where(mask.any(axis=1, keepdims=True), weights(scores, mask), np.nan).astype(scores.dtype)

    assert at_smoke([], [variant(nan_when_empty, contract="nan")]).exit_code == 0
    assert at_smoke([], [variant(nan_when_empty)]).exit_code == 3


def test_a_referee_that_disagrees_is_a_fault(
    at_smoke: Callable[..., SelfTest], monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = run.confirm

    def denying(worst: Any) -> Decision | None:
        decision = honest(worst)
        return None if decision is None else replace(decision, exceeds=False)

    monkeypatch.setattr(run, "confirm", denying)
    result = at_smoke([mutant(doubled)])
    assert result.exit_code == 3
    assert "The referee contradicts the checks about mine in float32" in result.faults[0]


def test_bad_requests_are_refused_in_words() -> None:
    for request, words in (
        ({"dtypes": ["int8"]}, "There is no dtype 'int8'"),
        ({"effort": "heroic"}, "There is no effort 'heroic'"),
        ({"seed": -1}, "-1 is negative"),
        ({"names": ["no-such"]}, "No mutant and no variant is called 'no-such'"),
    ):
        with pytest.raises(ValueError, match=words):
            selftest(**request)  # type: ignore[arg-type]


def test_every_declaration_that_a_check_serves_has_a_letter() -> None:
    assert set(LETTERS) == set(KEYS)
    assert OTHER not in LETTERS.values()
    assert letters(KEYS) == "".join(dict.fromkeys(LETTERS.values()))
    names = [name for _, group in legend(KEYS) for name in group]
    assert len(names) == len(KEYS) == len(set(names))


def test_the_command_prints_and_writes_the_table(tmp_path: Path) -> None:
    paths = {kind: tmp_path / f"table.{kind}" for kind in ("json", "markdown")}
    files = [word for kind, path in paths.items() for word in (f"--{kind}", str(path))]
    seen = CliRunner().invoke(
        main, ["selftest", "mask-inverted", "only-at-77", "--dtype", "float32", "--jobs", "1", *files]
    )
    assert seen.exit_code == 0, seen.output
    assert "1 of 2 wrong implementations were caught (2 mutants in up to 1 dtypes), 1 survived." in seen.output
    assert "survivor only-at-77 (float32): one length among many" in seen.output
    written = msgspec.json.decode(paths["json"].read_bytes(), type=SelfTest)
    raw = json.loads(paths["json"].read_text())
    assert (written.schema, raw["dtypes"], raw["seed"]) == ("hardmask-selftest/1", ["float32"], 0)
    assert {m.name: m.cells["float32"].status for m in written.mutants} == {
        "mask-inverted": "caught",
        "only-at-77": "survived",
    }
    marks = letters(written.mutants[0].cells["float32"].theorems)
    text = paths["markdown"].read_text()
    assert f"| **mask-inverted**: Reads True as blocked. | {marks} |" in text
    assert "- **only-at-77** (float32)\n  — one length among many" in text
    assert text == markdown(written)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing-like-it"], "No mutant and no variant is called 'nothing-like-it'"),
        (["--dtype", "float8"], "There is no dtype 'float8'"),
        (["--json", "/no/such/folder/file.json"], "its folder is not there"),
    ],
)
def test_the_command_refuses_with_a_sentence(words: list[str], sentence: str) -> None:
    seen = CliRunner().invoke(main, ["selftest", *words])
    assert seen.exit_code == 2
    assert sentence in seen.output
    assert "Traceback" not in seen.output


def test_worker_processes_and_this_one_agree() -> None:
    names, dtypes = ["buffer-not-cleared", "second-call", "empty-nan"], ["float32"]
    apart = selftest(names, dtypes=dtypes, effort="smoke", jobs=2)
    here = selftest(names, dtypes=dtypes, effort="smoke", jobs=1)
    assert apart.mutants == here.mutants
    assert {m.cells["float32"].status for m in apart.mutants} == {"caught"}


def test_what_is_amiss_is_printed(at_smoke: Callable[..., SelfTest]) -> None:
    import io

    from rich.console import Console

    out = io.StringIO()
    result = at_smoke([mutant(weights)], [variant(doubled)])
    print_selftest(result, Console(file=out, width=140))
    assert "survivor mine (float32): NOT LISTED" in out.getvalue()
    assert "strict FAILED" in out.getvalue()
    for fault in result.faults:
        assert fault in out.getvalue()
        assert f"**Fault:** {fault}" in markdown(result)


def test_the_mutants_list_their_survivors_for_default_effort() -> None:
    assert run.LISTED_AT == "default"
    assert sum(bool(m.survivors) for m in mutants()) < 15
