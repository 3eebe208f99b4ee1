"""Both legs of every declaration, and that they catch mistakes."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from hardmask.conformance.prove import exit_code, prove, prove_one
from hardmask.conformance.prove_report import proof_data, proof_notes, proof_table
from hardmask.spec import catalogue, definitions
from hardmask.spec.proofs import numeric, symbolic, wrong, wrong_attention, wrong_gradients
from hardmask.spec.proofs.collapse import prove_collapse
from hardmask.spec.proofs.definitions_record import SHIPPED
from hardmask.spec.proofs.proof import Control

PROOFS = catalogue.proofs()
CONTROLS = [(key, control) for key, proof in PROOFS.items() for control in proof.controls]
BROKEN: dict[str, dict[str, Any]] = {
    "spec_eq_weights": {"hardMaskedSoftmaxVecSpec": wrong.spec_unshifted_denominator},
    "backward_eq_derivative": {"softmaxBackwardFromWeightsSpec": wrong_gradients.backward_uncentred},
    "inner_derivative": {"derivative": wrong_gradients.derivative_mean_centred},
    "backward_eq_adjoint_fderiv": {"softmaxBackwardFromWeightsSpec": wrong_gradients.backward_mean_centred},
    "hasFDerivAt_weights": {"weights": wrong.weights_remasked},
    "hasFDerivAt_spec": {"derivative": wrong_gradients.derivative_uncentred},
    "empty_row": {"hardMaskedSoftmaxVecSpec": wrong.spec_uniform_when_empty},
    "score_non_interference": {"weights": wrong.weights_leaking},
    "denominator_pos": {"denominator": wrong.denominator_negated},
    "causalMask_get2": {"causalMask": wrong.mask_transposed},
    "scaledDotProductAttention": {"scaledDotProductAttention": wrong_attention.attention_leaking},
    "jvp_backward_pairing": {"scaledDotProductAttentionBackward": wrong_attention.backward_scale_squared},
    "attention_differentiability": {"scaledDotProductAttentionJvp": wrong_attention.jvp_without_values},
    "attention_empty_row": {"scaledDotProductAttention": wrong_attention.attention_mean_when_empty},
    "attention_padding_invariance": {"scaledDotProductAttentionBackward": wrong_attention.backward_mean_centred},
}


@pytest.mark.parametrize("key", PROOFS)
def test_both_legs_prove_the_shipped_definitions(key: str) -> None:
    result = prove_one(PROOFS[key], max_n=3)
    assert result.failures == ()
    assert result.verdict == "pass"
    is_table = PROOFS[key].over == "lengths" and not PROOFS[key].shifted
    assert (result.symbolic.generic == 0) == is_table
    assert result.symbolic.identities > 0
    assert result.numeric.residual < 1e-45
    assert result.numeric.width < 1e-40
    assert exit_code([result]) == 0


@pytest.mark.parametrize("key", PROOFS)
def test_every_declaration_has_controls(key: str) -> None:
    names = [control.name for control in PROOFS[key].controls]
    assert names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("key", "control"), CONTROLS, ids=[f"{key}-{c.name}" for key, c in CONTROLS])
def test_both_legs_reject_every_control(key: str, control: Control) -> None:
    assert symbolic.rejects(PROOFS[key], control)
    assert numeric.rejects(PROOFS[key], control)


@pytest.mark.parametrize("key", BROKEN)
def test_broken_definitions_fail_in_both_legs(key: str) -> None:
    result = prove_one(PROOFS[key], max_n=3, definitions=replace(SHIPPED, **BROKEN[key]))
    assert not result.symbolic.passed
    assert not result.numeric.passed
    assert result.verdict == "fail"
    assert len(result.failures) == 2
    assert exit_code([result]) == 1


def test_a_mistake_in_the_shipped_module_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    # The definitions call each other: a broken numerator breaks the weights that are proved.
    prove_collapse.cache_clear()
    monkeypatch.setattr(definitions, "numerator", wrong.numerator_leaking)
    result = prove_one(PROOFS["weights"], max_n=3)
    prove_collapse.cache_clear()
    assert result.verdict == "fail"
    assert "AttributeError in the collapse lemma" in result.failures[0]


def test_a_mistake_that_only_long_rows_show_is_found_by_the_enumeration() -> None:
    def weights_wrong_at_five(mask: Any, x: Any, ar: Any) -> list[Any]:
        w = definitions.weights(mask, x, ar)
        return [*w[:4], *(value * 2 for value in w[4:])]

    leg = symbolic.prove_symbolic(PROOFS["weights"], replace(SHIPPED, weights=weights_wrong_at_five), max_n=5)
    assert leg.generic > 0
    assert leg.failure is not None
    assert "mask FFFFT" in leg.failure


def test_a_control_that_is_no_mistake_is_a_fault_of_the_suite() -> None:
    harmless = Control("no mistake", {"weights": definitions.weights})
    result = prove_one(replace(PROOFS["weights"], controls=(harmless,)), max_n=2)
    assert result.symbolic.passed
    assert result.numeric.passed
    assert result.verdict == "error"
    assert result.suite_fault is not None
    assert "with the mistake 'no mistake'" in result.suite_fault
    assert exit_code([result]) == 3


def test_legs_that_disagree_are_a_fault_of_the_suite() -> None:
    result = prove_one(PROOFS["row_sum"], max_n=2)
    split = replace(result, numeric=replace(result.numeric, failure="off"))
    assert split.verdict == "error"
    assert split.suite_fault == ("the symbolic leg accepts 'extension:row-sum' and the numeric leg rejects it")
    assert exit_code([result, split]) == 3


def test_an_empty_leg_is_no_proof() -> None:
    result = prove_one(replace(PROOFS["row_sum"], residual=lambda row, d: ()), max_n=2)
    assert not result.symbolic.passed
    assert not result.numeric.passed


def test_enumeration_counts_masks_and_choices() -> None:
    leg = symbolic.prove_symbolic(PROOFS["spec_eq_weights"], SHIPPED, max_n=3)
    assert leg.masks == 1 + 2 + 4 + 8
    # Per length n: the empty mask once, and every other mask once per allowed key.
    assert leg.rows == sum(1 + n * 2 ** (n - 1) for n in range(4))


def test_prove_takes_names_and_reports_progress() -> None:
    seen: list[tuple[int, int, str]] = []
    results = prove(["row-sum", "denominator_pos"], max_n=2, progress=lambda *step: seen.append(step))
    assert [r.declaration.key for r in results] == ["denominator_pos", "row_sum"]
    assert [step[:2] for step in seen] == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize("max_n", [0, -1, 11])
def test_prove_refuses_an_unreasonable_length(max_n: int) -> None:
    with pytest.raises(ValueError, match=rf"max_n is {max_n}; choose 1 to 10"):
        prove(["row_sum"], max_n=max_n)


def test_prove_refuses_an_unknown_name() -> None:
    with pytest.raises(ValueError, match=r"There is no declaration 'rowsum'\. Did you mean"):
        prove(["rowsum"])


def test_json_holds_everything_and_is_plain() -> None:
    results = prove(["hasFDerivAt_spec", "row_sum"], max_n=2)
    failed = prove_one(PROOFS["spec_eq_weights"], max_n=2, definitions=replace(SHIPPED, weights=wrong.weights_leaking))
    data = json.loads(json.dumps(proof_data([*results, failed]), allow_nan=False))
    assert data["exit_code"] == 1
    first, second, third = data["declarations"]
    assert first["name"] == "Proofs.Autograd.HardMaskedSoftmax.hasFDerivAt_spec"
    assert first["numeric"]["remainder"]["rows_by_order"] == {"0": 3, "2": 4, "3": 2}
    assert second["fingerprint"] == catalogue.declarations()["row_sum"].fingerprint
    assert second["numeric"]["remainder"] is None
    assert third["verdict"] == "fail"
    assert all(c["rejected_by_symbolic"] and c["rejected_by_numeric"] for c in first["controls"])


def test_the_table_and_its_notes() -> None:
    results = prove(["hasFDerivAt_weights", "extension:row-sum"], max_n=2)
    console = Console(width=160, record=True, file=io.StringIO())
    console.print(proof_table(results))
    text = console.export_text()
    assert "hasFDerivAt_weights" in text
    assert "extension:row-sum" in text
    assert text.count("pass") == 2
    assert any("the remainder stays below r^2/8 on 9 rows" in note for note in proof_notes(results))


def test_notes_begin_with_the_failures() -> None:
    broken = replace(SHIPPED, denominator=wrong.denominator_negated)
    result = prove_one(PROOFS["denominator_pos"], max_n=2, definitions=broken)
    notes = proof_notes([result])
    assert "D > 0 is false for mask FFFT" in notes[0]
    assert "D > 0 is off by inf on row 'partial' in arbitrary precision" in notes[1]
