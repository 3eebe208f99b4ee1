"""NumPy: the double-``where`` reference, the unguarded fill, and SciPy's softmax on filled scores.

NumPy does not differentiate, so only the reference offers derivatives, written by hand. NumPy has no bfloat16 of its
own; the reference stores it through ``ml_dtypes`` and computes both half formats in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..spec.formats import DTYPES
from .specimens import LEAKS, WHERE_AFTER_ADDITIVE_INF, Leak, policies
from .subject import Answer, Array, Bools, Subject

NATIVE = ("float64", "float32", "float16")

NO_DERIVATIVE = "NumPy does not differentiate, and nobody has written this derivative by hand."
ANY_AXIS = ("float64", "float32")
"""NumPy adds float16 in float32 along an axis that is contiguous in memory, and in float16, one number after another,
along any other; no tier describes that."""

NO_BFLOAT16 = "NumPy has no bfloat16; the sums of ml_dtypes accumulate in bfloat16, which no tier describes."


def _wide(x: Array) -> Array:
    """The array in the format that the reference computes in: float32 for the halves."""
    return x if x.dtype in (np.float64, np.float32) else x.astype(np.float32)


def _centred(w: Array, v: Array, axis: int = -1) -> Array:
    """``w * (v - <w, v>)`` row by row: the Jacobian ``diag(w) - w w^T`` applied to ``v``."""
    result: Array = w * (v - np.sum(w * v, axis=axis, keepdims=True))
    return result


def softmax(x: Array, axis: int = -1) -> Array:
    """The shifted softmax of each row in the array's own dtype, as one writes it in NumPy; no mask.

    >>> softmax(np.zeros((1, 2)))
    array([[0.5, 0.5]])
    """
    e = np.exp(x - np.max(x, axis=axis, keepdims=True, initial=-np.inf))
    result: Array = e / np.sum(e, axis=axis, keepdims=True)
    return result


def softmax_where(scores: Array, mask: Bools, axis: int = -1) -> Answer:
    """The double-``where`` masked softmax: select a safe score, normalise, select 0.

    ``scores``: any shape, any of the four formats; ``mask``: Boolean, True = allowed, of a shape that broadcasts to
    that of the scores. Returns the weights in the shape and dtype of the scores, and ``valid``, of that shape without
    the axis, False for a row without an allowed key. A blocked score is selected away before any arithmetic, and the
    halves are rounded once, at the end.

    >>> softmax_where(np.array([[0.0, np.nan]]), np.array([[True, False]])).weights
    array([[1., 0.]])
    >>> softmax_where(np.array([[0.0, 5.0], [9.0, 5.0]]), np.array([[True], [False]]), axis=0).weights
    array([[1., 1.],
           [0., 0.]])
    """
    x = _wide(scores)
    mask = np.broadcast_to(mask, scores.shape)
    valid = np.any(mask, axis=axis, keepdims=True)
    with np.errstate(all="ignore"):
        top = np.max(np.where(mask, x, -np.inf), axis=axis, keepdims=True, initial=-np.inf)
        # At a blocked key the exponent is top - top = 0; on an empty row it is 0 - 0.
        top = np.where(valid, top, np.zeros_like(top))
        e = np.where(mask, np.exp(np.where(mask, x, top) - top), np.zeros_like(x))
        total = np.where(valid, np.sum(e, axis=axis, keepdims=True), np.ones_like(top))
        return Answer((e / total).astype(scores.dtype), np.squeeze(valid, axis))


def softmax_where_derivative(scores: Array, mask: Bools, vector: Array, axis: int = -1) -> Array:
    """The VJP of :func:`softmax_where`, which is also its JVP: ``w * (v - <w, v>)`` from the returned weights.

    Blocked entries of ``vector`` are not read; the result is exactly 0 there and on empty rows.

    >>> softmax_where_derivative(np.zeros((1, 2)), np.array([[True, True]]), np.array([[1.0, 0.0]]))
    array([[ 0.25, -0.25]])
    """
    w = _wide(softmax_where(scores, mask, axis).weights)
    v = np.where(mask, _wide(vector), np.zeros_like(w))
    with np.errstate(all="ignore"):
        return np.where(mask, _centred(w, v, axis), np.zeros_like(w)).astype(scores.dtype)


def fill_inf(scores: Array, mask: Bools, axis: int = -1) -> Array:
    """Put ``-inf`` at blocked keys and normalise: the formula that is written most often. An empty row is NaN."""
    with np.errstate(all="ignore"):
        return softmax(np.where(mask, scores, np.full_like(scores, -np.inf)), axis)


def scipy_softmax(scores: Array, mask: Bools, axis: int = -1) -> Array:
    """``scipy.special.softmax`` of the scores with ``-inf`` at blocked keys. An empty row is NaN."""
    from scipy.special import softmax as normalise

    filled = np.where(mask, scores, np.full_like(scores, -np.inf))
    if filled.shape[axis] == 0:
        return filled  # SciPy refuses an axis of length 0, and there is nothing to normalise.
    with np.errstate(all="ignore"):
        result: Array = normalise(filled, axis=axis)
    return result


def _additive_inf_weights(scores: Array, mask: Bools) -> Array:
    return softmax(scores + np.where(mask, np.zeros_like(scores), np.full_like(scores, -np.inf)))


def _additive_inf_vjp(scores: Array, mask: Bools, cotangents: Array) -> Array:
    """What reverse mode makes of ``where(mask, softmax(scores - inf), 0)``: the outer ``where`` acts first."""
    with np.errstate(all="ignore"):
        return _centred(_additive_inf_weights(scores, mask), np.where(mask, cotangents, np.zeros_like(scores)))


def _additive_inf_jvp(scores: Array, mask: Bools, tangents: Array) -> Array:
    """Forward mode of the same expression: here the outer ``where`` acts last and hides the NaN."""
    with np.errstate(all="ignore"):
        return np.where(mask, _centred(_additive_inf_weights(scores, mask), tangents), np.zeros_like(scores))


def _leak(leak: Leak) -> Subject:
    def forward(scores: Array, mask: Bools) -> Array:
        with np.errstate(all="ignore"):
            result: Array = leak.formula(np, softmax, scores, mask)
        return result

    derivable = leak is WHERE_AFTER_ADDITIVE_INF
    return _forward_only(
        f"numpy.{leak.name}",
        forward,
        role="specimen",
        contract=leak.contract,
        dtypes=tuple(d for d in leak.dtypes if d in NATIVE),
        vjp=_additive_inf_vjp if derivable else None,
        jvp=_additive_inf_jvp if derivable else None,
        reasons={**leak.unsupported, **({} if derivable else {"vjp": NO_DERIVATIVE, "jvp": NO_DERIVATIVE})},
    )


def _forward_only(
    id: str, forward: Callable[..., Array], reasons: dict[str, str] | None = None, **declared: Any
) -> Subject:
    """A subject that computes in NumPy's own dtypes, every float16 operation rounded to float16."""
    if reasons is None:
        reasons = {"vjp": NO_DERIVATIVE, "jvp": NO_DERIVATIVE}
    declared = {"contract": "nan", "dtypes": NATIVE, **declared}
    return Subject(
        id,
        forward,
        adapter="numpy",
        tier={"half": "half-ops"},
        unsupported={**reasons, "bfloat16": NO_BFLOAT16},
        **declared,
    )


def subjects() -> list[Subject]:
    """Every NumPy subject, specimens included; SciPy's only where SciPy is installed."""
    reference = Subject(
        "numpy.softmax-where",
        softmax_where,
        vjp=softmax_where_derivative,
        jvp=softmax_where_derivative,
        adapter="numpy",
        role="reference",
        dtypes=DTYPES,
        contract="zero+valid",
        promises=frozenset({"isolation", "allowed-nan-visible", "vjp-from-output"}),
        any_axis=True,
    )
    found = [reference, _forward_only("numpy.fill-inf", fill_inf, any_axis=ANY_AXIS)]
    if find_spec("scipy"):
        found.append(_forward_only("numpy.scipy-softmax", scipy_softmax, any_axis=ANY_AXIS))
    return [*found, *map(_leak, LEAKS), *policies(reference)]
