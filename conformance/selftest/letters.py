"""One letter for each theorem, so that a kill table fits on a page."""

from __future__ import annotations

from collections.abc import Iterable

from ..promises import declared

LETTERS: dict[str, str] = {
    "getScalar_hardMaskedSoftmaxVecSpec": "W",
    "spec_eq_weights": "W",
    "hardMaskedSoftmaxVecSpec_blocked_eq_zero": "Z",
    "hardMaskedSoftmaxSpec_blocked_eq_zero": "Z",
    "hardMaskedSoftmaxVecSpec_mem_Icc": "I",
    "hardMaskedSoftmaxVecSpec_eq_one": "O",
    "hardMaskedSoftmaxVecSpec_allTrue": "T",
    "hardMaskedSoftmaxSpec_allTrueMask": "T",
    "hardMaskedSoftmaxSpec_causal_future_zero": "C",
    "denominator_pos": "R",
    "row_sum": "R",
    "shift_invariance": "S",
    "permutation_equivariance": "P",
    "batch_invariance": "B",
    "truncation": "K",
    "score_non_interference": "N",
    "empty_row": "E",
    "allowed_nan_visible": "Y",
    "backward_eq_derivative": "V",
    "derivative_apply": "J",
    "hasFDerivAt_weights": "J",
    "hasFDerivAt_spec": "J",
    "blocked_gradient_zero": "G",
    "isolation": "X",
    "inner_derivative": "D",
    "backward_eq_adjoint_fderiv": "A",
    "scaledDotProductAttention": "W",
    "scaledDotProductAttention_allTrueMask": "T",
    "scaledDotProductAttentionBackward": "V",
    "scaledDotProductAttentionBackward_allTrueMask": "T",
    "scaledDotProductAttentionJvp": "J",
    "scaledDotProductAttentionJvp_allTrueMask": "T",
    "attention_differentiability": "F",
    "jvp_backward_pairing": "A",
    "unstack_hardMaskedSoftmaxSpec": "B",
    "unstack_softmaxBackwardFromWeightsSpec": "B",
    "attention_batch_invariance": "B",
    "attention_prefix_invariance": "P",
    "attention_padding_invariance": "K",
    "attention_non_interference": "N",
    "attention_gradient_non_interference": "M",
    "attention_blocked_gradient_zero": "G",
    "attention_empty_row": "E",
    "attention_isolation": "X",
    "attention_allowed_nan_visible": "Y",
    "path_agreement": "H",
}
"""Declaration key -> letter. Declarations that one comparison decides share theirs."""

OTHER = "*"
"""The letter of a declaration that has none of its own."""


def letters(keys: Iterable[str]) -> str:
    """The letters of some declarations, in the order of :data:`LETTERS`, each once.

    >>> letters(["row_sum", "spec_eq_weights", "denominator_pos"])
    'WR'
    """
    found = {LETTERS.get(key, OTHER) for key in keys}
    return "".join(x for x in dict.fromkeys((*LETTERS.values(), OTHER)) if x in found)


def legend(keys: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Each letter with the short names of its declarations, for the declarations of ``keys``."""
    out: dict[str, list[str]] = {}
    for key in sorted(keys, key=[*LETTERS, *keys].index):
        name = declared(key).name
        out.setdefault(LETTERS.get(key, OTHER), []).append(name.removeprefix("extension:").rpartition(".")[2])
    return list(out.items())
