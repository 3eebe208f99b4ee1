"""The contract between hardmask and what it judges.

A *subject* is one entry point on one execution path. It is a value: an id, what it promises, and up to three functions
over NumPy arrays of shape ``(rows, keys)``. Everything that a framework needs (conversion, its mask convention, its
autograd) happens inside those functions; hardmask only ever sees NumPy arrays and True = allowed.

An adapter of ten lines:

>>> import numpy as np
>>> from hardmask.adapters.subject import Subject
>>> def softmax(scores, mask):
...     shifted = np.where(mask, scores, -np.inf)
...     top = np.max(shifted, axis=-1, keepdims=True, initial=-np.inf)
...     e = np.where(mask, np.exp(np.where(mask, scores - np.where(np.isfinite(top), top, 0), 0)), 0)
...     total = e.sum(axis=-1, keepdims=True)
...     return np.divide(e, total, out=np.zeros_like(e), where=total > 0)
>>> mine = Subject("mine.softmax", forward=softmax, dtypes=("float32", "float64"))
>>> mine.methods
('forward',)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..spec.contracts import contract
from ..spec.formats import DTYPES, HALVES
from ..spec.rounding import TIERS, RoundingModel, customised, widens
from ..spec.rounding import model as tier_model
from .recipe import Recipe

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Role = Literal["entry-point", "reference", "specimen"]
Method = Literal["forward", "vjp", "jvp"]
Convention = Literal["allowed", "blocked", "additive"]

METHODS: tuple[Method, ...] = ("forward", "vjp", "jvp")
CONVENTIONS: tuple[Convention, ...] = ("allowed", "blocked", "additive")

_KINDS = (*DTYPES, "half")
_TIER_KEYS = frozenset(_KINDS) | {f"{method}:{kind}" for method in METHODS for kind in _KINDS}
_ARGUMENTS = {"forward": "scores, mask", "vjp": "scores, mask, cotangents", "jvp": "scores, mask, tangents"}


@dataclass(frozen=True, eq=False)
class Answer:
    """What ``forward`` returns when it has more to say than the weights.

    ``weights``: shape and dtype of the scores. ``valid``: Boolean, shape ``(rows,)``, False for a row without an
    allowed key; None when the backend offers no such flag.
    """

    weights: Array
    valid: Bools | None = None


@dataclass(frozen=True, eq=False)
class Subject:
    """One masked softmax on one execution path, with what it declares about itself.

    - ``forward(scores, mask)`` returns the weights (or an :class:`Answer`); all arrays have shape ``(rows, keys)``,
      ``keys`` may be 0, the dtype of the result is that of the scores.
    - ``vjp(scores, mask, cotangents)`` returns the pullback of the cotangents of the weights onto the scores.
    - ``jvp(scores, mask, tangents)`` returns the pushforward of the tangents of the scores.
    - ``contract``: what an empty row gives (:func:`hardmask.spec.contracts.contract`).
    - ``tier``: the declared accuracy, one name for all dtypes or a mapping. Keys, most specific first:
      ``"jvp:float16"``, ``"jvp:half"``, ``"float16"``, ``"half"``. Undeclared means ``strict`` for float64 and float32
      and ``mixed`` for the halves.
    - ``model``: fields of the tier's rounding model to change (:func:`hardmask.spec.rounding.customised`), such as
      ``{"alpha": 20.0}``: one mapping for all dtypes, or a mapping of such mappings with the keys of ``tier``. A model
      that admits more than the tier does is *custom*: what passes under it is ``permitted``, never a plain pass.
    - ``any_axis``: whether the functions take arrays of any rank, a mask that broadcasts against the scores, and the
      axis of the softmax as a keyword, ``forward(scores, mask, axis=-1)``. Results keep the shape of the scores;
      ``valid`` has that shape without the axis. Plain rows are handed over without the keyword. Where this holds in
      some dtypes only, name them.
    - ``tier_other_axis``: entries that are added to ``tier`` along any axis but the last, where another kernel runs.
    - ``role``: a ``specimen`` is a deliberate policy shipped for demonstration and runs only when it is named.
    - ``finite_scores``: why blocked scores that are not finite cannot be put to it; rows that hold one are left out.
    - ``opt_in``: why the subject runs only when an id or a glob names it, for instance because it takes long.
    - ``recipe``: how the entry point is called, as source that runs without hardmask (:mod:`hardmask.adapters.recipe`);
      ``hardmask repro`` writes it into a bug report.
    - ``convention``: what True means in the entry point's own mask, for the record; the functions translate.
    - ``unsupported``: reasons, keyed by method or dtype, for what the subject cannot do.
    - ``promises``: optional promises, of ``"isolation"``, ``"allowed-nan-visible"``, ``"vjp-from-output"`` (the
      backward pass consumes the weights that the forward returned).

    Raises ValueError for an unusable id, an unknown dtype, contract, role, tier, convention or promise, for a key of
    ``tier`` or ``unsupported`` that names nothing, for a reason without words, and for a method that cannot be called.
    """

    id: str
    forward: Callable[..., Array | Answer]
    vjp: Callable[..., Array] | None = None
    jvp: Callable[..., Array] | None = None
    adapter: str = "user"
    path: str = "eager"
    role: Role = "entry-point"
    dtypes: tuple[str, ...] = ("float32", "float64")
    contract: str = "zero"
    tier: str | Mapping[str, str] = field(default_factory=dict)
    model: Mapping[str, Any] = field(default_factory=dict)
    convention: Convention = "allowed"
    promises: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    operation: Literal["masked-softmax"] = "masked-softmax"
    any_axis: bool | tuple[str, ...] = False
    tier_other_axis: Mapping[str, str] = field(default_factory=dict)
    finite_scores: str = ""
    opt_in: str = ""
    recipe: Recipe | None = None

    def __post_init__(self) -> None:
        if not self.id or len(self.id) > 200 or any(c.isspace() or not c.isprintable() for c in self.id):
            raise ValueError(
                f"A subject needs an id without spaces or control characters, of at most 200 characters; "
                f"{self.id[:80]!r} is none. Write for instance 'mine.softmax'."
            )
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise ValueError(f"Subject '{self.id}' names the dtype '{dtype}'; hardmask judges {', '.join(DTYPES)}.")
        for dtype in () if isinstance(self.any_axis, bool) else self.any_axis:
            if dtype not in self.dtypes:
                raise ValueError(
                    f"Subject '{self.id}' takes any axis in '{dtype}', which is none of its dtypes: "
                    f"{', '.join(self.dtypes)}."
                )
        if self.role not in ("entry-point", "reference", "specimen"):
            raise ValueError(f"Subject '{self.id}' has the role '{self.role}'; use entry-point, reference or specimen.")
        unknown = self.promises - {"isolation", "allowed-nan-visible", "vjp-from-output"}
        if unknown:
            raise ValueError(f"Subject '{self.id}' promises '{min(unknown)}', which hardmask does not know.")
        if self.convention not in CONVENTIONS:
            raise ValueError(
                f"Subject '{self.id}' has the convention '{self.convention}'; use one of: {', '.join(CONVENTIONS)}."
            )
        for method in METHODS:
            call = getattr(self, method)
            if not callable(call) and (call is not None or method == "forward"):
                raise ValueError(
                    f"Subject '{self.id}' has a {method} of type {type(call).__name__}, which cannot be called. "
                    f"Give a function {method}({_ARGUMENTS[method]})."
                )
        for key in (*(() if isinstance(self.tier, str) else self.tier), *self.tier_other_axis):
            if key not in _TIER_KEYS:
                raise ValueError(
                    f"Subject '{self.id}' declares a tier for '{key}'; write a dtype or 'half', or one of them after "
                    "a method, as in 'jvp:half'."
                )
        tiers = [self.tier] if isinstance(self.tier, str) else [*self.tier.values()]
        for tier in (*tiers, *self.tier_other_axis.values()):
            if tier not in TIERS:
                raise ValueError(f"Subject '{self.id}' declares the tier '{tier}'; choose one of: {', '.join(TIERS)}.")
        for key, value in self.model.items():
            if isinstance(value, Mapping) and key not in _TIER_KEYS:
                raise ValueError(
                    f"Subject '{self.id}' changes the rounding model of '{key}'; write a dtype or 'half', or one of "
                    "them after a method, as in 'jvp:half'."
                )
        for dtype in self.dtypes:
            for method in METHODS:
                try:
                    self.rounding_for(method, dtype)
                except ValueError as problem:
                    raise ValueError(f"Subject '{self.id}' changes its rounding model in {dtype}. {problem}") from None
        for key, reason in self.unsupported.items():
            if key not in (*METHODS, *DTYPES):
                raise ValueError(
                    f"Subject '{self.id}' says why '{key}' is unsupported, which is neither a method nor a dtype; "
                    f"use {', '.join((*METHODS, *DTYPES))}."
                )
            if not isinstance(reason, str):
                raise ValueError(f"Subject '{self.id}' gives no reason in words why '{key}' is unsupported.")
        contract(self.contract)

    def takes_axis(self, dtype: str) -> bool:
        """Whether the functions take arrays of any rank and an axis in a dtype."""
        return dtype in self.dtypes and (self.any_axis if isinstance(self.any_axis, bool) else dtype in self.any_axis)

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods that the subject offers, in the order forward, vjp, jvp."""
        return tuple(m for m in METHODS if getattr(self, m) is not None)

    def along_other_axis(self) -> Subject:
        """The subject with the accuracy that it declares along any axis but the last."""
        tier = dict.fromkeys(_KINDS, self.tier) if isinstance(self.tier, str) else self.tier
        return replace(self, tier={**tier, **self.tier_other_axis}) if self.tier_other_axis else self

    def tier_for(self, method: Method, dtype: str) -> str:
        """The accuracy tier that the subject declares for one method and dtype."""
        if isinstance(self.tier, str):
            return self.tier
        found = _most_specific(self.tier, method, dtype)
        return found or ("mixed" if dtype in HALVES else "strict")

    def rounding_for(self, method: Method, dtype: str) -> RoundingModel:
        """The rounding model by which a method is judged in a dtype: that of the tier, with the declared changes."""
        tier = self.tier_for(method, dtype)
        changes = self._changes(method, dtype)
        return customised(tier, dtype, changes) if changes else tier_model(tier, dtype)

    def custom(self, method: Method, dtype: str) -> str:
        """The changes that make the rounding model admit more than the tier does, in words; empty if they do not.

        >>> Subject("x.y", forward=lambda s, m: s, model={"alpha": 20.0}).custom("forward", "float32")
        'alpha=20.0'
        """
        changes = self._changes(method, dtype)
        if not changes or not widens(self.rounding_for(method, dtype), tier_model(self.tier_for(method, dtype), dtype)):
            return ""
        return ", ".join(f"{name}={value}" for name, value in sorted(changes.items()))

    def _changes(self, method: Method, dtype: str) -> Mapping[str, Any]:
        if any(isinstance(value, Mapping) for value in self.model.values()):
            return _most_specific(self.model, method, dtype) or {}
        return self.model


def _most_specific(declared: Mapping[str, Any], method: Method, dtype: str) -> Any:
    keys = [f"{method}:{dtype}", dtype]
    if dtype in HALVES:
        keys = [f"{method}:{dtype}", f"{method}:half", dtype, "half"]
    return next((declared[key] for key in keys if key in declared), None)
