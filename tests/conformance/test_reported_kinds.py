"""For each kind of fault that users report, a subject that has it is failed, and the finding names what is violated.

Real entry points of PyTorch and JAX where they have the fault today, judged by the contract ``zero``; specimens and
mutants elsewhere.
"""

from __future__ import annotations

import pytest

from hardmask.adapters import Subject, resolve
from hardmask.conformance.certification import Request, certify
from hardmask.conformance.mutants import mutants

KINDS = [
    # A: an empty row is not finite.
    ("A", "torch.masked-fill", "extension:empty-row", {"NaN"}),
    ("A", "jax.fill-inf[jit]", "extension:empty-row", {"NaN"}),
    ("A", "numpy.scipy-softmax", "extension:empty-row", {"NaN"}),
    # B: an empty row is finite and not zero.
    ("B", "torch.replace-min", "extension:empty-row", {"uniform"}),
    ("B", "jax.replace-min[jit]", "extension:empty-row", {"uniform"}),
    ("B", "mutant.empty-first-key", "extension:empty-row", {"one key"}),
    # C: an empty row poisons derivatives.
    ("C", "torch.where-after-additive-inf", "backward_eq_derivative", {"clean forward, NaN VJP"}),
    # D: a finite sentinel instead of exclusion.
    ("D", "torch.additive-1e9", "hardMaskedSoftmaxVecSpec_blocked_eq_zero", {"raw softmax", "leak", "uniform"}),
    ("D", "mutant.additive-1e4", "hardMaskedSoftmaxVecSpec_blocked_eq_zero", {"raw softmax", "leak", "uniform"}),
    # E: a blocked score reaches an allowed result.
    ("E", "torch.additive-inf", "extension:score-non-interference", {"NaN"}),
    ("E", "mutant.max-over-blocked", "extension:score-non-interference", {"NaN", "not normalised", "wrong weights"}),
    # K: the derivative is wrong although the forward pass is right.
    ("K", "mutant.vjp-uncentred", "backward_eq_derivative", {"centring lost"}),
    # L: normalisation and shift invariance.
    ("L", "mutant.last-key-not-summed", "extension:row-sum", {"not normalised", "NaN", "infinity"}),
    ("L", "mutant.no-shift", "extension:shift-invariance", {"NaN", "answers differ"}),
]


def subject(id: str) -> Subject:
    found = {m.subject.id: m.subject for m in mutants()}
    if id in found:
        return found[id]
    (one,) = resolve([id])
    return one


@pytest.mark.parametrize(
    ("kind", "id", "declaration", "diagnoses"), KINDS, ids=lambda x: x if isinstance(x, str) else ""
)
def test_the_finding_names_what_is_violated(kind: str, id: str, declaration: str, diagnoses: set[str]) -> None:
    judged = subject(id)
    effort = "default" if "shift" in declaration else "smoke"  # shifted copies are long rows
    request = Request(("x",), contract="zero", dtypes=("float32",), effort=effort)
    report = certify(request, subjects=[judged], minimise=False)
    assert report.exit_code == 1
    failed = [f for f in report.certificate.findings if f.verdict == "fail" and f.declaration.endswith(declaration)]
    assert failed, {(f.declaration, f.diagnosis) for f in report.certificate.findings if f.verdict == "fail"}
    assert {f.diagnosis for f in failed} & diagnoses, {f.diagnosis for f in failed}


def test_every_kind_is_there() -> None:
    assert {kind for kind, *_ in KINDS} == set("ABCDEKL")
