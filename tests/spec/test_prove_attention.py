"""The engines under the proofs of attention: heads of symbols, the locality lemma, the remainder, the samples."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hardmask.spec import catalogue
from hardmask.spec.attention import definitions
from hardmask.spec.proofs import attention_remainder, numeric, symbolic, wrong, wrong_attention
from hardmask.spec.proofs.definitions_record import SHIPPED
from hardmask.spec.proofs.locality import prove_locality
from hardmask.spec.proofs.samples_heads import head_samples
from hardmask.spec.proofs.symbolic_heads import LONGEST, heads, sizes, symbolic_head

PAIRING = catalogue.proofs()["jvp_backward_pairing"]


def test_the_exponential_of_symbols_is_a_homomorphism() -> None:
    head = symbolic_head([[True, True]], (1, 2, 2, 1), 0, ())
    a, b = ([head.scale * x * y for x, y in zip(head.q[0], key, strict=True)] for key in head.k)
    exp = head.ar.exp
    assert (exp(a[0] + a[1]) - exp(a[0]) * exp(a[1])).is_zero()
    assert (exp(a[0] - b[0]) * exp(b[0]) - exp(a[0])).is_zero()
    assert (exp(2 * a[0]) - exp(a[0]) * exp(a[0])).is_zero()
    assert (exp(a[0] - a[0]) - 1).is_zero()
    # Exponentials of different scores are free of each other and of the polynomials.
    assert not (exp(a[0]) - exp(b[0])).is_zero()
    assert not (exp(a[0]) - 1 - a[0]).is_zero()


def test_the_exponential_of_anything_else_is_refused() -> None:
    head = symbolic_head([[True]], (1, 1, 1, 1), 0, ())
    with pytest.raises(ArithmeticError, match="something else than a difference of scaled scores"):
        head.ar.exp(head.q[0][0])
    with pytest.raises(ArithmeticError, match="which is no polynomial"):
        head.ar.exp(1 / head.ar.exp(head.scale * head.q[0][0] * head.k[0][0]))


def test_the_enumeration_has_every_mask_of_every_small_size() -> None:
    shapes = {shape[:2] for n in range(LONGEST * LONGEST + 1) for shape in sizes(n)}
    assert {(i, j) for i in range(1, LONGEST + 1) for j in range(1, LONGEST + 1)} < shapes
    assert {(0, 0), (2, 0), (0, 2)} < shapes
    masks = [head.pattern for head in heads((2, 3, 1, 1), (), False)]
    assert len(masks) == len(set(masks)) == 64
    assert any(head.empty and head.unseen for head in heads((2, 3, 1, 1), (), False))
    assert len(list(heads((2, 2, 1, 1), (), True))) > 16
    assert [head.mask for head in heads((1, 2, 1, 1), (), False, every_mask=False)] == [[[True, True]]]


def test_the_locality_lemma_holds_for_the_shipped_definitions() -> None:
    lemma = prove_locality(SHIPPED)
    assert lemma.failure is None
    assert lemma.identities > 600


def _squared(q: Any, k: Any, v: Any, mask: Any, scale: Any, ar: Any) -> Any:
    """The product of two outputs: its terms see three keys and more."""
    rows = definitions.scaledDotProductAttention(q, k, v, mask, scale, ar)
    return [[x * x * x for x in row] for row in rows]


def _mixing_columns(q: Any, k: Any, v: Any, mask: Any, scale: Any, ar: Any) -> Any:
    """Adds the first column to the others."""
    rows = definitions.scaledDotProductAttention(q, k, v, mask, scale, ar)
    return [[x + row[0] if l else x for l, x in enumerate(row)] for row in rows]


def _mixing_features(*args: Any) -> Any:
    """Adds the first feature of every gradient of a query to the others."""
    d_q, d_k, d_v = definitions.scaledDotProductAttentionBackward(*args)
    return [[x + row[0] if a else x for a, x in enumerate(row)] for row in d_q], d_k, d_v


def _tangent_of_wide_heads(*args: Any) -> Any:
    """Is off by the number of features."""
    rows = definitions.scaledDotProductAttentionJvp(*args)
    return [[x * len(query) for x in row] for query, row in zip(args[0], rows, strict=True)]


@pytest.mark.parametrize(
    ("field", "broken", "sentence"),
    [
        ("scaledDotProductAttention", _squared, "is not that of its query"),
        ("scaledDotProductAttention", _mixing_columns, "sees more than two keys, a feature and a column"),
        ("scaledDotProductAttentionBackward", _mixing_features, "sees more than two keys, a feature and a column"),
        ("scaledDotProductAttentionJvp", _tangent_of_wide_heads, "without feature 0 is not the sum of the other terms"),
        ("scaledDotProductAttention", wrong_attention.attention_normalised_jointly, "not made of the queries alone"),
        ("scaledDotProductAttention", wrong_attention.attention_leaking, "changes when blocked keys go"),
        ("scaledDotProductAttentionBackward", wrong_attention.backward_mean_centred, "changes when blocked keys go"),
        ("scaledDotProductAttentionBackward", wrong_attention.backward_keys_untransposed, "not made of the queries"),
    ],
)
def test_the_locality_lemma_fails_for_code_that_sees_more(field: str, broken: Any, sentence: str) -> None:
    lemma = prove_locality(replace(SHIPPED, **{field: broken}))
    assert lemma.failure is not None
    assert sentence in lemma.failure


def test_a_failed_lemma_fails_the_proof() -> None:
    # Both sides of an all-true proof mix columns alike: only the lemma sees that small heads no longer stand for all.
    def unmasked(q: Any, k: Any, v: Any, scale: Any, ar: Any) -> Any:
        return _mixing_columns(q, k, v, [[True] * len(k) for _ in q], scale, ar)

    changed = replace(SHIPPED, scaledDotProductAttention=_mixing_columns, unmasked_attention=unmasked)
    proof = catalogue.proofs()["scaledDotProductAttention_allTrueMask"]
    leg = symbolic.prove_symbolic(proof, changed, max_n=3)
    assert not leg.passed
    assert "locality lemma" in str(leg.failure)


@pytest.mark.parametrize(
    ("function", "mistake", "key"),
    [
        ("centred", lambda w, g, ar: g, "scaledDotProductAttentionBackward"),
        ("centred", lambda w, g, ar: g, "scaledDotProductAttentionJvp"),
        ("hardMaskedSoftmaxSpec", wrong.matrix_inverted_mask, "scaledDotProductAttention"),
        ("transpose", lambda a, columns: [[0 for _ in a] for _ in range(columns)], "jvp_backward_pairing"),
        ("hardMaskedSoftmaxVecSpec", wrong.spec_uniform_when_empty, "attention_empty_row"),
    ],
)
def test_a_mistake_inside_the_shipped_module_is_found(
    function: str, mistake: Any, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prove_locality.cache_clear()
    monkeypatch.setattr(definitions, function, mistake)
    proof = catalogue.proofs()[key]
    symbolic_leg = symbolic.prove_symbolic(proof, SHIPPED, max_n=3)
    numeric_leg = numeric.prove_numeric(proof, SHIPPED)
    prove_locality.cache_clear()
    assert not symbolic_leg.passed
    assert not numeric_leg.passed


def test_the_remainder_keeps_bound_and_order() -> None:
    found = attention_remainder.measure(SHIPPED)
    assert found.failure is None
    assert found.orders[2] > 5
    assert found.orders[0] > 3
    assert found.smallest_step < 1e-40
    assert 0.1 < found.share < 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scaledDotProductAttentionJvp": wrong_attention.jvp_scale_squared}, "exceeds its bound"),
        ({"scaledDotProductAttentionJvp": wrong_attention.jvp_values_unweighted_when_empty}, "is not exactly 0"),
        ({"scaledDotProductAttention": wrong_attention.attention_scale_on_the_output}, "exceeds its bound"),
    ],
)
def test_the_remainder_rejects_mistakes(change: dict[str, Any], sentence: str) -> None:
    found = attention_remainder.measure(replace(SHIPPED, **change))
    assert found.failure is not None
    assert sentence in found.failure


def test_samples_cover_the_adversarial_heads() -> None:
    samples = head_samples()
    shapes = {(len(s.q), len(s.k)) for s in samples}
    assert any(queries > keys > 0 for queries, keys in shapes)
    assert any(keys > queries > 0 for queries, keys in shapes)
    assert any(keys == 0 < queries for queries, keys in shapes)
    assert any(queries == 0 < keys for queries, keys in shapes)
    assert any(not any(row) and any(map(any, s.mask)) for s in samples for row in s.mask if row)
    assert any(len(s.k) > 1 and len(set(s.k)) == 1 for s in samples)
    assert samples == head_samples(numeric.SEED)
    assert samples[0].q != head_samples(1)[0].q


def test_both_legs_run_over_heads() -> None:
    for side, engine in enumerate(numeric.engines()):
        names = [head.family for head in numeric.rows(PAIRING, engine, numeric.SEED)]
        assert len(names) == len(set(names)) > 15
        assert any("random 0" in name for name in names) == (side == 0)
    assert next(symbolic.rows(PAIRING, 4)).pattern[:2] == (2, 2)
