"""The catalogue: the one place that maps the frozen keys to the current Lean names.

Upstream renames things; when it does, only this table changes. Importing this module, and loading every declaration
through it, imports neither sympy nor mpmath.
"""

from __future__ import annotations

import difflib
import fnmatch
import importlib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from .declaration import Declaration, Hypothesis, Kind

if TYPE_CHECKING:
    from .proofs.proof import Proof

_SEED = ("Proofs.Autograd.HardMaskedSoftmax.", "NN.Proofs.Autograd.FDeriv.HardMaskedSoftmax")
_CAUSAL = ("NN.Proofs.Models.Attention.", "NN.Proofs.Models.Attention.CausalMask")
_RANGE = ("NN.MLTheory.CROWN.Graph.DirectedBackward.", "NN.MLTheory.CROWN.Proofs.DirectedIBPSoftmax")
_ALL_TRUE = ("NN.Proofs.Models.Attention.", "NN.Proofs.Models.Attention.HardMask")
_LAYER = ("Spec.", "NN.Spec.Layers.Attention")
_ADJOINT = ("Proofs.Autograd.HardMaskedAttention.", "NN.Proofs.Autograd.FDeriv.HardMaskedAttention")
_EXTENSION = ("extension:", None)

# key: (kind, (name prefix, Lean module), module under spec/theorems). The order is the order of every table.
_ENTRIES: dict[str, tuple[Kind, tuple[str, str | None], str]] = {
    "numerator": ("definition", _SEED, "numerator"),
    "denominator": ("definition", _SEED, "denominator"),
    "weights": ("definition", _SEED, "weights"),
    "getScalar_hardMaskedSoftmaxVecSpec": ("theorem", _SEED, "getScalar_hardMaskedSoftmaxVecSpec"),
    "spec_eq_weights": ("theorem", _SEED, "spec_eq_weights"),
    "derivative": ("definition", _SEED, "derivative"),
    "derivative_apply": ("theorem", _SEED, "derivative_apply"),
    "denominator_pos": ("theorem", _SEED, "denominator_pos"),
    "hasFDerivAt_weights": ("theorem", _SEED, "hasFDerivAt_weights"),
    "hasFDerivAt_spec": ("theorem", _SEED, "hasFDerivAt_spec"),
    "backward_eq_derivative": ("theorem", _SEED, "backward_eq_derivative"),
    "inner_derivative": ("theorem", _SEED, "inner_derivative"),
    "backward_eq_adjoint_fderiv": ("theorem", _SEED, "backward_eq_adjoint_fderiv"),
    "hardMaskedSoftmaxVecSpec_blocked_eq_zero": ("theorem", _CAUSAL, "blocked_eq_zero"),
    "hardMaskedSoftmaxSpec_blocked_eq_zero": ("theorem", _CAUSAL, "blocked_eq_zero"),
    "hardMaskedSoftmaxVecSpec_mem_Icc": ("theorem", _RANGE, "hardMaskedSoftmaxVecSpec_mem_Icc"),
    "hardMaskedSoftmaxVecSpec_eq_one": ("theorem", _RANGE, "hardMaskedSoftmaxVecSpec_eq_one"),
    "hardMaskedSoftmaxVecSpec_allTrue": ("theorem", _ALL_TRUE, "all_true"),
    "hardMaskedSoftmaxSpec_allTrueMask": ("theorem", _ALL_TRUE, "all_true"),
    "causalMask_get2": ("theorem", _CAUSAL, "causal_mask"),
    "futureMask_get2": ("theorem", _CAUSAL, "causal_mask"),
    "causalMask_blocks_future": ("theorem", _CAUSAL, "causal_mask"),
    "causalMask_allows_past": ("theorem", _CAUSAL, "causal_mask"),
    "futureMask_marks_future": ("theorem", _CAUSAL, "causal_mask"),
    "futureMask_rejects_past": ("theorem", _CAUSAL, "causal_mask"),
    "hardMaskedSoftmaxSpec_causal_future_zero": ("theorem", _CAUSAL, "causal_mask"),
    "row_sum": ("extension", _EXTENSION, "row_sum"),
    "shift_invariance": ("extension", _EXTENSION, "shift_invariance"),
    "score_non_interference": ("extension", _EXTENSION, "score_non_interference"),
    "blocked_gradient_zero": ("extension", _EXTENSION, "blocked_gradient_zero"),
    "empty_row": ("extension", _EXTENSION, "empty_row"),
    "truncation": ("extension", _EXTENSION, "truncation"),
    "permutation_equivariance": ("extension", _EXTENSION, "permutation_equivariance"),
    "batch_invariance": ("extension", _EXTENSION, "batch_invariance"),
    "second_derivative": ("extension", _EXTENSION, "second_derivative"),
    "scaledDotProductAttention": ("definition", _LAYER, "attention"),
    "scaledDotProductAttentionBackward": ("definition", _LAYER, "attention"),
    "scaledDotProductAttentionJvp": ("definition", _LAYER, "attention"),
    "scaledDotProductAttention_allTrueMask": ("theorem", _ALL_TRUE, "attention_all_true"),
    "scaledDotProductAttentionBackward_allTrueMask": ("theorem", _ALL_TRUE, "attention_all_true"),
    "scaledDotProductAttentionJvp_allTrueMask": ("theorem", _ALL_TRUE, "attention_all_true"),
    "unstack_hardMaskedSoftmaxSpec": ("theorem", _ADJOINT, "unstack"),
    "unstack_softmaxBackwardFromWeightsSpec": ("theorem", _ADJOINT, "unstack"),
    "dot_backward_comm": ("theorem", _ADJOINT, "unstack"),
    "jvp_backward_pairing": ("theorem", _ADJOINT, "attention_derivative"),
    "attention_differentiability": ("extension", _EXTENSION, "attention_derivative"),
    "attention_non_interference": ("extension", _EXTENSION, "attention_interference"),
    "attention_gradient_non_interference": ("extension", _EXTENSION, "attention_interference"),
    "attention_blocked_gradient_zero": ("extension", _EXTENSION, "attention_zero"),
    "attention_empty_row": ("extension", _EXTENSION, "attention_zero"),
    "path_agreement": ("extension", _EXTENSION, "path_agreement"),
    "attention_batch_invariance": ("extension", _EXTENSION, "attention_invariance"),
    "attention_prefix_invariance": ("extension", _EXTENSION, "attention_invariance"),
    "attention_padding_invariance": ("extension", _EXTENSION, "attention_invariance"),
}

KEYS: tuple[str, ...] = tuple(_ENTRIES)


def name_of(key: str) -> str:
    """The current full name of a key.

    >>> name_of("spec_eq_weights")
    'Proofs.Autograd.HardMaskedSoftmax.spec_eq_weights'
    >>> name_of("row_sum")
    'extension:row-sum'
    """
    kind, (prefix, _), _ = _ENTRIES[key]
    return prefix + (key.replace("_", "-") if kind == "extension" else key)


def declare(
    key: str,
    *,
    statement: str,
    plain: str,
    hypotheses: tuple[Hypothesis, ...] = (),
    derivation: str = "",
) -> Declaration:
    """Build the declaration of a key; its name, kind and Lean module come from the catalogue."""
    kind, (_, module), _ = _ENTRIES[key]
    return Declaration(key, name_of(key), kind, module, statement, plain, hypotheses, derivation)


@cache
def proofs() -> dict[str, Proof]:
    """Every key with its proof (residual and negative controls), in the order of the catalogue. No engine is loaded."""
    found: dict[str, Proof] = {}
    for home in dict.fromkeys(home for _, _, home in _ENTRIES.values()):
        module = importlib.import_module(f"{__package__}.theorems.{home}")
        found.update({proof.declaration.key: proof for proof in module.PROOFS})
    return {key: found[key] for key in _ENTRIES}


@cache
def declarations() -> dict[str, Declaration]:
    """Every key with its declaration, in the order of the catalogue.

    >>> declarations()["denominator_pos"].statement
    'D > 0.'
    """
    return {key: proof.declaration for key, proof in proofs().items()}


def find(name: str) -> list[Declaration]:
    """The declarations that a key, a full name, its last component, or a glob over any of these, names.

    Raises ValueError, with close matches, when nothing is named so.

    >>> [d.key for d in find("extension:row-sum")], [d.key for d in find("denominator*")]
    (['row_sum'], ['denominator', 'denominator_pos'])
    """
    found = [declarations()[key] for key in KEYS if any(fnmatch.fnmatchcase(s, name) for s in _spellings(key))]
    if found:
        return found
    spellings = [s for key in KEYS for s in _spellings(key)]
    close = list(dict.fromkeys(difflib.get_close_matches(name, spellings, n=3, cutoff=0.5)))
    lists = "'hardmask prove' without a name proves them all; docs/declarations.md lists them."
    hint = f"Did you mean {' or '.join(close)}?" if close else lists
    raise ValueError(f"There is no declaration '{name}'. {hint}")


def find_all(names: Iterable[str]) -> list[Declaration]:
    """The declarations that any of the names finds, each once, in catalogue order; all of them for no names.

    Raises ValueError as :func:`find` does.
    """
    wanted = {d.key for name in names for d in find(name)}
    return [d for key, d in declarations().items() if key in wanted or not wanted]


def _spellings(key: str) -> tuple[str, ...]:
    name = name_of(key)
    return (key, name, name.split(":")[-1] if name.startswith("extension:") else name.rsplit(".", 1)[-1])
