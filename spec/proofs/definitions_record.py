"""The definitions as a record, so that a negative control can swap one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import definitions, hessian, masks
from ..attention import definitions as attention
from ..attention import paths, unmasked


@dataclass(frozen=True)
class Definitions:
    """The functions that residuals speak of; the default is the code that is shipped."""

    numerator: Callable[..., Any] = definitions.numerator
    denominator: Callable[..., Any] = definitions.denominator
    weights: Callable[..., list[Any]] = definitions.weights
    hardMaskedSoftmaxVecSpec: Callable[..., list[Any]] = definitions.hardMaskedSoftmaxVecSpec
    softmaxBackwardFromWeightsSpec: Callable[..., list[Any]] = definitions.softmaxBackwardFromWeightsSpec
    derivative: Callable[..., list[Any]] = definitions.derivative
    second_derivative: Callable[..., list[Any]] = hessian.second_derivative
    hardMaskedSoftmaxSpec: Callable[..., Any] = masks.hardMaskedSoftmaxSpec
    softmaxVecSpec: Callable[..., list[Any]] = masks.softmaxVecSpec
    softmaxSpec: Callable[..., list[list[Any]]] = masks.softmaxSpec
    causalMask: Callable[..., list[list[bool]]] = masks.causalMask
    futureMask: Callable[..., list[list[bool]]] = masks.futureMask
    allTrueMask: Callable[..., list[list[bool]]] = masks.allTrueMask
    valid: Callable[..., bool] = masks.valid
    attention_weights: Callable[..., list[list[Any]]] = attention.hardMaskedSoftmaxSpec
    centred: Callable[..., list[list[Any]]] = attention.centred
    scaledDotProductAttention: Callable[..., list[list[Any]]] = attention.scaledDotProductAttention
    scaledDotProductAttentionBackward: Callable[..., Any] = attention.scaledDotProductAttentionBackward
    scaledDotProductAttentionJvp: Callable[..., list[list[Any]]] = attention.scaledDotProductAttentionJvp
    unmasked_attention: Callable[..., list[list[Any]]] = unmasked.attention
    unmasked_backward: Callable[..., Any] = unmasked.backward
    unmasked_jvp: Callable[..., list[list[Any]]] = unmasked.jvp
    attention_with_bias: Callable[..., list[list[Any]]] = paths.with_bias
    attention_with_length: Callable[..., list[list[Any]]] = paths.with_length
    attention_causal: Callable[..., list[list[Any]]] = paths.causal


SHIPPED = Definitions()
