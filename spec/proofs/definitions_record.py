"""The definitions as a record, so that a negative control can swap one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import definitions, hessian, masks


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


SHIPPED = Definitions()
