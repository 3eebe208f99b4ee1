"""Deliberate policies and faults, shipped so that a user can see what the suite says about them.

Two kinds. A *leak* is a formula that blocks in a wrong way; it is written once over the functions that NumPy, PyTorch
and JAX share (``where``, ``full_like``, ``finfo``) and the softmax of the framework. A *policy* changes what a good
subject does with an empty row; it works on NumPy arrays, around the subject's own methods. Each declares the contract
under which its fault, or its merit, shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..spec.formats import DTYPES
from .subject import Answer, Array, Bools, Subject

Formula = Callable[[Any, Callable[[Any], Any], Any, Any], Any]


@dataclass(frozen=True)
class Leak:
    """A wrong formula ``formula(xp, softmax, scores, mask) -> weights`` with what it wrongly declares.

    ``xp`` is numpy, torch or jax.numpy; ``unsupported`` gives a reason for each dtype in which it cannot be written.
    """

    name: str
    contract: str
    formula: Formula
    unsupported: Mapping[str, str] = field(default_factory=dict)

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The formats in which the formula can be written."""
        return tuple(d for d in DTYPES if d not in self.unsupported)


def _lowest(xp: Any, scores: Any) -> float:
    return float(xp.finfo(scores.dtype).min)


def _added(xp: Any, scores: Any, mask: Any, penalty: float) -> Any:
    return scores + xp.where(mask, xp.full_like(scores, 0.0), xp.full_like(scores, penalty))


def _replaced(xp: Any, scores: Any, mask: Any, fill: float) -> Any:
    return xp.where(mask, scores, xp.full_like(scores, fill))


def _where_after_additive_inf(xp: Any, softmax: Callable[[Any], Any], scores: Any, mask: Any) -> Any:
    weights = softmax(_added(xp, scores, mask, -np.inf))
    return xp.where(mask, weights, xp.full_like(scores, 0.0))


WHERE_AFTER_ADDITIVE_INF = Leak("where-after-additive-inf", "zero", _where_after_additive_inf)

LEAKS: tuple[Leak, ...] = (
    # Beside 1e9, float64 keeps nearly all of a score, float32 multiples of 64, bfloat16 nothing.
    Leak(
        "additive-1e9",
        "zero",
        lambda xp, softmax, s, m: softmax(_added(xp, s, m, -1e9)),
        {"float16": "float16 ends at 65504, so a penalty of -1e9 cannot be written in it."},
    ),
    Leak("additive-min", "zero", lambda xp, softmax, s, m: softmax(_added(xp, s, m, _lowest(xp, s)))),
    Leak("replace-min", "zero", lambda xp, softmax, s, m: softmax(_replaced(xp, s, m, _lowest(xp, s)))),
    Leak("unguarded-inf", "zero", lambda xp, softmax, s, m: softmax(_replaced(xp, s, m, -np.inf))),
    WHERE_AFTER_ADDITIVE_INF,
)


def _plain(answer: Array | Answer) -> Array:
    return answer.weights if isinstance(answer, Answer) else answer


def empty_rows(mask: Bools) -> Bools:
    """Which rows allow no key, shape ``(rows,)``."""
    result: Bools = ~np.any(mask, axis=-1)
    return result


def _called(base: Subject, method: str, args: tuple[Array, ...]) -> Array:
    result: Array = _plain(getattr(base, method)(*args))
    return result


def _around(base: Subject, name: str, contract: str, call: Callable[..., Array | Answer]) -> Subject:
    """A specimen whose methods are ``call(method, scores, mask[, vector])``, for the methods that ``base`` has."""

    def method(which: str) -> Callable[..., Any] | None:
        if getattr(base, which) is None:
            return None
        return lambda *args: call(which, *args)

    return replace(
        base,
        id=base.id.replace(base.id.partition(".")[2].partition("[")[0], name),
        role="specimen",
        contract=contract,
        forward=lambda *args: call("forward", *args),
        vjp=method("vjp"),
        jvp=method("jvp"),
        promises=frozenset(),
        any_axis=False,
        tier_other_axis={},
    )


def leaks(adapter: str, build: Callable[..., Subject], xp: Any, softmax: Callable[[Any], Any]) -> list[Subject]:
    """Every leak on one framework.

    ``build(id, formula, **declared)`` makes a subject of a function of the framework's arrays; ``xp`` and ``softmax``
    are what the formulas are written over.
    """

    def formula(leak: Leak) -> Callable[[Any, Any], Any]:
        return lambda scores, mask: leak.formula(xp, softmax, scores, mask)

    return [
        build(
            f"{adapter}.{leak.name}",
            formula(leak),
            adapter=adapter,
            role="specimen",
            contract=leak.contract,
            dtypes=leak.dtypes,
            unsupported=leak.unsupported,
        )
        for leak in LEAKS
    ]


def policies(base: Subject) -> list[Subject]:
    """Four specimens made of one good subject, whose id has the form ``adapter.name`` or ``adapter.name[path]``.

    ``zero-with-flag`` keeps the contract ``zero+valid``; ``zero-without-flag`` declares it and returns no flag;
    ``reject`` raises on an empty row; ``fallback`` puts the weight of an empty row on key 0.
    """

    def with_flag(which: str, scores: Array, mask: Bools, *rest: Array) -> Array | Answer:
        result = _called(base, which, (scores, mask, *rest))
        return Answer(result, ~empty_rows(mask)) if which == "forward" else result

    def without_flag(which: str, *args: Array) -> Array:
        return _called(base, which, args)

    def reject(which: str, scores: Array, mask: Bools, *rest: Array) -> Array:
        empty = empty_rows(mask)
        if empty.any():
            raise ValueError(f"Row {empty.argmax()} allows no key, and this function refuses such rows. Drop the row.")
        return _called(base, which, (scores, mask, *rest))

    def fall_back(which: str, scores: Array, mask: Bools, *rest: Array) -> Array | Answer:
        empty = empty_rows(mask)
        mask, scores = mask.copy(), scores.copy()
        mask[empty, :1] = True
        scores[empty, :1] = 0  # Whatever stands there was blocked: it may be NaN.
        result = _called(base, which, (scores, mask, *rest))
        if which == "forward":
            return Answer(result, ~empty)
        result = result.copy()
        result[empty] = 0
        return result

    return [
        _around(base, "zero-with-flag", "zero+valid", with_flag),
        _around(base, "zero-without-flag", "zero+valid", without_flag),
        _around(base, "reject", "reject", reject),
        _around(base, "fallback", "fallback(0)", fall_back),
    ]
