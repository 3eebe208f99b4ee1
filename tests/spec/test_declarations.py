"""The catalogue: exact names, look-up, hypotheses and fingerprints."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from hardmask.spec import catalogue
from hardmask.spec.declaration import Declaration
from hardmask.spec.hypotheses import ONE_ALLOWED, REAL_SCORES

NAMES = [
    "Proofs.Autograd.HardMaskedSoftmax.numerator",
    "Proofs.Autograd.HardMaskedSoftmax.denominator",
    "Proofs.Autograd.HardMaskedSoftmax.weights",
    "Proofs.Autograd.HardMaskedSoftmax.getScalar_hardMaskedSoftmaxVecSpec",
    "Proofs.Autograd.HardMaskedSoftmax.spec_eq_weights",
    "Proofs.Autograd.HardMaskedSoftmax.derivative",
    "Proofs.Autograd.HardMaskedSoftmax.derivative_apply",
    "Proofs.Autograd.HardMaskedSoftmax.denominator_pos",
    "Proofs.Autograd.HardMaskedSoftmax.hasFDerivAt_weights",
    "Proofs.Autograd.HardMaskedSoftmax.hasFDerivAt_spec",
    "Proofs.Autograd.HardMaskedSoftmax.backward_eq_derivative",
    "Proofs.Autograd.HardMaskedSoftmax.inner_derivative",
    "Proofs.Autograd.HardMaskedSoftmax.backward_eq_adjoint_fderiv",
    "NN.Proofs.Models.Attention.hardMaskedSoftmaxVecSpec_blocked_eq_zero",
    "NN.Proofs.Models.Attention.hardMaskedSoftmaxSpec_blocked_eq_zero",
    "NN.MLTheory.CROWN.Graph.DirectedBackward.hardMaskedSoftmaxVecSpec_mem_Icc",
    "NN.MLTheory.CROWN.Graph.DirectedBackward.hardMaskedSoftmaxVecSpec_eq_one",
    "NN.Proofs.Models.Attention.hardMaskedSoftmaxVecSpec_allTrue",
    "NN.Proofs.Models.Attention.hardMaskedSoftmaxSpec_allTrueMask",
    "NN.Proofs.Models.Attention.causalMask_get2",
    "NN.Proofs.Models.Attention.futureMask_get2",
    "NN.Proofs.Models.Attention.causalMask_blocks_future",
    "NN.Proofs.Models.Attention.causalMask_allows_past",
    "NN.Proofs.Models.Attention.futureMask_marks_future",
    "NN.Proofs.Models.Attention.futureMask_rejects_past",
    "NN.Proofs.Models.Attention.hardMaskedSoftmaxSpec_causal_future_zero",
    "extension:row-sum",
    "extension:shift-invariance",
    "extension:score-non-interference",
    "extension:blocked-gradient-zero",
    "extension:empty-row",
    "extension:truncation",
    "extension:permutation-equivariance",
    "extension:batch-invariance",
    "extension:second-derivative",
    "Spec.scaledDotProductAttention",
    "Spec.scaledDotProductAttentionBackward",
    "Spec.scaledDotProductAttentionJvp",
    "NN.Proofs.Models.Attention.scaledDotProductAttention_allTrueMask",
    "NN.Proofs.Models.Attention.scaledDotProductAttentionBackward_allTrueMask",
    "NN.Proofs.Models.Attention.scaledDotProductAttentionJvp_allTrueMask",
    "Proofs.Autograd.HardMaskedAttention.unstack_hardMaskedSoftmaxSpec",
    "Proofs.Autograd.HardMaskedAttention.unstack_softmaxBackwardFromWeightsSpec",
    "Proofs.Autograd.HardMaskedAttention.dot_backward_comm",
    "Proofs.Autograd.HardMaskedAttention.jvp_backward_pairing",
    "extension:attention-differentiability",
    "extension:attention-non-interference",
    "extension:attention-gradient-non-interference",
    "extension:attention-blocked-gradient-zero",
    "extension:attention-empty-row",
    "extension:path-agreement",
    "extension:attention-batch-invariance",
    "extension:attention-prefix-invariance",
    "extension:attention-padding-invariance",
]
MODULES = {
    "NN.Proofs.Autograd.FDeriv.HardMaskedSoftmax": 13,
    "NN.Proofs.Models.Attention.CausalMask": 9,
    "NN.MLTheory.CROWN.Proofs.DirectedIBPSoftmax": 2,
    "NN.Proofs.Models.Attention.HardMask": 5,
    "NN.Spec.Layers.Attention": 3,
    "NN.Proofs.Autograd.FDeriv.HardMaskedAttention": 4,
    None: 18,
}


def test_names_are_exactly_the_lean_names() -> None:
    assert [d.name for d in catalogue.declarations().values()] == NAMES


def test_each_lean_module_has_its_declarations() -> None:
    modules = [d.module for d in catalogue.declarations().values()]
    assert {module: modules.count(module) for module in set(modules)} == MODULES


@pytest.mark.parametrize("key", catalogue.KEYS)
def test_a_declaration_says_what_it_is(key: str) -> None:
    d = catalogue.declarations()[key]
    assert d.key == key
    assert key.replace("_", "-") == d.name[len("extension:") :] if d.kind == "extension" else d.name.endswith("." + key)
    assert d.statement.endswith(".")
    assert d.plain.endswith(".")
    assert bool(d.derivation) == (d.kind == "extension") == d.name.startswith("extension:")
    assert len(d.fingerprint) == 64


def test_extensions_are_never_called_theorems() -> None:
    kinds = {d.kind for d in catalogue.declarations().values() if d.name.startswith("extension:")}
    assert kinds == {"extension"}


def test_the_catalogue_loads_no_proof_engine() -> None:
    code = (
        "import sys; from hardmask.spec.catalogue import declarations, proofs;"
        "import hardmask.conformance.prove_report;"
        "[d.fingerprint for d in declarations().values()]; proofs();"
        "print([m for m in ('sympy', 'mpmath', 'torch', 'jax') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("spec_eq_weights", ["spec_eq_weights"]),
        ("Proofs.Autograd.HardMaskedSoftmax.spec_eq_weights", ["spec_eq_weights"]),
        ("extension:row-sum", ["row_sum"]),
        ("row-sum", ["row_sum"]),
        ("row_sum", ["row_sum"]),
        ("futureMask_*", ["futureMask_get2", "futureMask_marks_future", "futureMask_rejects_past"]),
        ("NN.MLTheory.*", ["hardMaskedSoftmaxVecSpec_mem_Icc", "hardMaskedSoftmaxVecSpec_eq_one"]),
    ],
)
def test_find(name: str, keys: list[str]) -> None:
    assert [d.key for d in catalogue.find(name)] == keys


def test_an_unknown_name_gets_close_matches() -> None:
    with pytest.raises(ValueError, match=r"There is no declaration 'spec_eq_weight'. Did you mean spec_eq_weights"):
        catalogue.find("spec_eq_weight")
    with pytest.raises(ValueError, match="There is no declaration 'qqqqqqqqq'") as raised:
        catalogue.find("qqqqqqqqq")
    assert str(raised.value) == (
        "There is no declaration 'qqqqqqqqq'. "
        "'hardmask prove' without a name proves them all; docs/declarations.md lists them."
    )


def test_find_all_keeps_the_order_and_counts_once() -> None:
    assert [d.key for d in catalogue.find_all(["row_sum", "weights", "extension:row-sum"])] == ["weights", "row_sum"]
    assert len(catalogue.find_all([])) == len(NAMES)


def test_the_fingerprint_changes_with_the_claim_only() -> None:
    d = catalogue.declarations()["denominator_pos"]
    assert replace(d, plain="Something else.").fingerprint == d.fingerprint
    assert replace(d, statement="D >= 0.").fingerprint != d.fingerprint
    assert replace(d, name=d.name + "'").fingerprint != d.fingerprint
    assert replace(d, hypotheses=d.hypotheses[:1]).fingerprint != d.fingerprint
    assert replace(d, hypotheses=(REAL_SCORES, ONE_ALLOWED)).fingerprint != d.fingerprint


def test_fingerprints_are_distinct() -> None:
    assert len({d.fingerprint for d in catalogue.declarations().values()}) == len(NAMES)


ROWS = {
    "full": ([True, True], [0.0, 1.0]),
    "partial": ([True, False, True], [0.0, np.nan, 1.0]),
    "single": ([False, True], [np.inf, 1.0]),
    "empty": ([False, False], [np.nan, np.inf]),
    "no keys": ([], []),
    "allowed NaN": ([True, True], [np.nan, 0.0]),
    "all allowed scores -inf": ([True, False], [-np.inf, 0.0]),
}
MEETS = {
    "spec_eq_weights": {"full", "partial", "single", "empty", "no keys"},
    "denominator_pos": {"full", "partial", "single"},
    "row_sum": {"full", "partial", "single"},
    "hardMaskedSoftmaxVecSpec_blocked_eq_zero": {"partial", "single", "empty"},
    "hardMaskedSoftmaxVecSpec_eq_one": {"single"},
    "hardMaskedSoftmaxVecSpec_allTrue": {"full", "no keys"},
    "empty_row": {"empty", "no keys"},
}


@pytest.mark.parametrize("key", MEETS)
def test_hypotheses_are_executable(key: str) -> None:
    d = catalogue.declarations()[key]
    assert {name for name, (mask, scores) in ROWS.items() if d.holds(mask, scores)} == MEETS[key]


def test_hypotheses_run_on_batches() -> None:
    mask = np.array([[True, True], [False, True], [False, False]])
    scores = np.array([[0.0, np.inf], [np.nan, 2.0], [0.0, 0.0]])
    assert catalogue.declarations()["row_sum"].holds(mask, scores).tolist() == [False, True, False]


def test_index_hypotheses_ask_for_a_pair() -> None:
    future = catalogue.declarations()["causalMask_blocks_future"]
    past = catalogue.declarations()["causalMask_allows_past"]
    assert [bool(future.holds([True] * n, [0.0] * n)) for n in range(3)] == [False, False, True]
    assert [bool(past.holds([True] * n, [0.0] * n)) for n in range(3)] == [False, True, True]


def test_a_declaration_refuses_half_a_record() -> None:
    with pytest.raises(ValueError, match="has no derivation"):
        Declaration("x", "extension:x", "extension", None, "0 = 0.", "Never.")
    with pytest.raises(ValueError, match="exactly the Lean declarations name a Lean module"):
        Declaration("x", "X.x", "theorem", None, "0 = 0.", "Never.")
