"""Call a subject as if it were hostile: whatever it does, the run gets an answer or a sentence."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..adapters.errors import Lost, said
from ..adapters.subject import Answer, Subject
from ..spec.batch import Bools, Floats
from ..spec.layout import Layout

Array = np.ndarray[Any, np.dtype[Any]]

ARGUMENTS = ("scores", "mask", "vectors")
"""What the arguments of a method are called, in their order."""


@dataclass(frozen=True, eq=False)
class Returned:
    """An accepted answer: values exact in float64, shape ``(rows, keys)``, the ``valid`` flag if there is one, and the
    values in the subject's own dtype."""

    values: Floats
    valid: Bools | None = None
    raw: Array | None = None


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


class Nowhere(io.TextIOBase):
    """A stream that forgets."""

    def write(self, text: str) -> int:
        """Accept the text."""
        return len(text)


def call(subject: Subject, method: str, *arrays: Array, layout: Layout | None = None) -> Returned | Fault:
    """Call one method on private copies of the arrays; the first array gives the shape and dtype to expect.

    The arrays have shape ``(rows, keys)``, and so has the answer; with a ``layout`` the subject gets them arranged so,
    along with the axis. There a call that changes its arguments is at fault: they may be views of larger arrays. Plain
    rows are the subject's own copies, to write over as it likes.

    Never raises, except for KeyboardInterrupt. Warnings and prints of the subject are not shown.
    """
    answer = call_raw(subject, method, *arrays, layout=layout)
    if isinstance(answer, Fault):
        return answer
    with np.errstate(all="ignore"):
        return Returned(answer.array.astype(np.float64), answer.valid, answer.array)


def call_raw(subject: Subject, method: str, *arrays: Array, layout: Layout | None = None) -> Raw | Fault:
    """:func:`call`, without the conversion of the answer."""
    function: Callable[..., Any] = getattr(subject, method)
    scores = arrays[0]
    name = f"{subject.id}.{method}"
    given = _Given(f"rows of shape {scores.shape}") if layout is None else _Given.arranged(layout)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(Nowhere()):
            warnings.simplefilter("ignore")
            mine = [a.copy() for a in arrays] if layout is None else layout.arrange(*arrays)
            before = [] if layout is None else [a.copy() for a in mine]
            answer: Any = function(*mine) if layout is None else function(*mine, axis=layout.axis)
            valid = None
            if isinstance(answer, Answer):
                answer, valid = answer.weights, answer.valid
            for what, was, now in zip(ARGUMENTS, before, mine, strict=False):
                if not same_bits(was, now):
                    return Fault(
                        f"{name} changed the {what} that it was given, {scores.dtype} {given.words}: a caller would "
                        "find its own array spoilt. Work on a copy."
                    )
            return _accept(name, answer, valid, scores, given)
    except KeyboardInterrupt:
        raise
    except Lost as lost:  # no answer at all, which is no refusal
        return Fault(lost.told(name, f"{scores.dtype} {given.words}"))
    except BaseException as problem:  # whatever a subject raises, the run goes on
        return Fault(f"{name} failed on {scores.dtype} {given.words}: it raised {said(problem)}.", True)


@dataclass(frozen=True)
class _Given:
    """What a subject was handed, in words, and the layout if there is one."""

    words: str
    layout: Layout | None = None

    @classmethod
    def arranged(cls, layout: Layout) -> _Given:
        return cls(f"scores of shape {layout.shape} along axis {layout.axis} ({layout})", layout)


def same_bits(a: Array, b: Array) -> bool:
    """Whether two arrays hold the same bits, NaN included."""
    if a.dtype != np.bool_:
        bits = np.dtype(f"u{a.dtype.itemsize}")
        a, b = a.view(bits), b.view(bits)
    return bool(np.array_equal(a, b))


def _accept(name: str, answer: Any, valid: Any, scores: Array, given: _Given) -> Raw | Fault:
    if not hasattr(answer, "__array__") or not hasattr(answer, "shape"):
        return Fault(f"{name} returned a {type(answer).__name__}; return a NumPy array with the shape of the scores.")
    array = np.asarray(answer)
    layout = given.layout
    shape, flat = (scores.shape, scores.shape[:1]) if layout is None else (layout.shape, layout.others)
    where = "" if layout is None else f" along axis {layout.axis} ({layout})"
    if array.shape != shape:
        return Fault(
            f"{name} returned shape {array.shape} for scores of shape {shape}{where}; return one value per score."
        )
    if array.dtype != scores.dtype:
        return Fault(f"{name} returned {array.dtype} for {scores.dtype} scores{where}; return the dtype of the scores.")
    flags: Bools | None = None
    if valid is not None:
        flags = np.asarray(valid)
        if flags.dtype != np.bool_ or flags.shape != flat:
            return Fault(
                f"{name} returned a 'valid' flag of dtype {flags.dtype} and shape {flags.shape}{where}; "
                f"return Booleans of shape {flat}, one per row."
            )
    if layout is not None:
        array, flags = layout.lowered(array), None if flags is None else flags.reshape(layout.rows)
    return Raw(array, flags)
