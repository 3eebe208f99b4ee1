"""Call a subject as if it were hostile: whatever it does, the run gets an answer or a sentence."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..adapters.errors import said
from ..adapters.subject import Answer, Subject
from ..spec.batch import Bools, Floats

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, eq=False)
class Returned:
    """An accepted answer: values exact in float64, shape ``(rows, keys)``, and the ``valid`` flag if there is one."""

    values: Floats
    valid: Bools | None = None


@dataclass(frozen=True, eq=False)
class Raw:
    """An accepted answer in the subject's own dtype, shape ``(rows, keys)``."""

    array: Array
    valid: Bools | None = None


@dataclass(frozen=True)
class Fault:
    """An answer that could not be accepted. ``raised``: the call itself raised, rather than returning something odd."""

    sentence: str
    raised: bool = False


class _Nowhere(io.TextIOBase):
    """A stream that forgets."""

    def write(self, text: str) -> int:
        """Accept the text."""
        return len(text)


def call(subject: Subject, method: str, *arrays: Array) -> Returned | Fault:
    """Call one method on private copies of the arrays; the first array gives the shape and dtype to expect.

    Never raises, except for KeyboardInterrupt. Warnings and prints of the subject are not shown.
    """
    answer = call_raw(subject, method, *arrays)
    if isinstance(answer, Fault):
        return answer
    with np.errstate(all="ignore"):
        return Returned(answer.array.astype(np.float64), answer.valid)


def call_raw(subject: Subject, method: str, *arrays: Array) -> Raw | Fault:
    """:func:`call`, without the conversion of the answer."""
    function: Callable[..., Any] = getattr(subject, method)
    scores = arrays[0]
    name = f"{subject.id}.{method}"
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(_Nowhere()):
            warnings.simplefilter("ignore")
            answer: Any = function(*(a.copy() for a in arrays))
            valid = None
            if isinstance(answer, Answer):
                answer, valid = answer.weights, answer.valid
            return _accept(name, answer, valid, scores)
    except KeyboardInterrupt:
        raise
    except BaseException as problem:  # whatever a subject raises, the run goes on
        return Fault(f"{name} failed on {scores.dtype} rows of shape {scores.shape}: it raised {said(problem)}.", True)


def _accept(name: str, answer: Any, valid: Any, scores: Array) -> Raw | Fault:
    if not hasattr(answer, "__array__") or not hasattr(answer, "shape"):
        return Fault(f"{name} returned a {type(answer).__name__}; return a NumPy array with the shape of the scores.")
    array = np.asarray(answer)
    if array.shape != scores.shape:
        return Fault(
            f"{name} returned shape {array.shape} for scores of shape {scores.shape}; return one value per score."
        )
    if array.dtype != scores.dtype:
        return Fault(f"{name} returned {array.dtype} for {scores.dtype} scores; return the dtype of the scores.")
    flags: Bools | None = None
    if valid is not None:
        flags = np.asarray(valid)
        if flags.dtype != np.bool_ or flags.shape != scores.shape[:1]:
            return Fault(
                f"{name} returned a 'valid' flag of dtype {flags.dtype} and shape {flags.shape}; "
                f"return Booleans of shape {scores.shape[:1]}, one per row."
            )
    return Raw(array, flags)
