"""What a subject returned, as data and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..attention import AttentionAnswer
from ..subject import Answer
from .frames import Payload

FEW = 16
"""Parts of a tuple that are described; no method returns so many."""


def encoded(answer: Any, payload: Payload) -> Any:
    """The description of an answer, whose arrays are added to the payload.

    What is neither an array, nor an answer, nor a tuple or list of arrays is described by the name of its type.
    """
    if isinstance(answer, Answer):
        return {"answer": [encoded(answer.weights, payload), _flags(answer.valid, payload)]}
    if isinstance(answer, AttentionAnswer):
        weights = None if answer.weights is None else encoded(answer.weights, payload)
        return {"attention": [encoded(answer.output, payload), weights, _flags(answer.valid, payload)]}
    if isinstance(answer, (tuple, list)):
        return {"list": [_part(part, payload) for part in answer[:FEW]], "type": type(answer).__name__}
    return _part(answer, payload)


def _part(answer: Any, payload: Payload) -> dict[str, Any]:
    if not hasattr(answer, "__array__") or not hasattr(answer, "shape"):
        return {"type": type(answer).__name__}
    return {"array": payload.add(np.asarray(answer))}


def _flags(valid: Any, payload: Payload) -> Any:
    return None if valid is None else {"array": payload.add(np.asarray(valid))}
