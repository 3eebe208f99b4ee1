"""The contract between hardmask and the attention kernels that it judges.

An attention subject is one entry point on one execution path, over NumPy arrays with four axes: ``q`` is ``(B, H, Lq,
d)``, ``k`` is ``(B, G, Lk, d)``, ``v`` is ``(B, G, Lk, dv)`` with ``G`` dividing ``H``, ``mask`` is Boolean, True =
allowed, and broadcasts to ``(B, H, Lq, Lk)``; ``scale`` is a float. Whatever form of the mask the entry point wants is
made of this one inside the subject's functions, in the ``encoding`` that it declares.

>>> import numpy as np
>>> from hardmask.adapters.attention import Attention
>>> def attend(q, k, v, mask, scale):
...     scores = np.where(mask, scale * (q @ np.swapaxes(k, -1, -2)), -np.inf)
...     top = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
...     e = np.exp(scores - np.where(np.isfinite(top), top, 0))
...     total = e.sum(axis=-1, keepdims=True)
...     return np.divide(e, total, out=np.zeros_like(e), where=total > 0) @ v
>>> mine = Attention("mine.attention", forward=attend, limits={"grouped heads": "q and k are multiplied head by head."})
>>> mine.methods
('forward',)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ..spec.attention.problem import Alignment
from ..spec.contracts import contract
from ..spec.formats import DTYPES, HALVES
from .recipe import Recipe
from .subject import CONVENTIONS, METHODS, Array, Bools, Convention, Method, Role

Encoding = Literal["boolean", "additive", "lengths", "causal", "finite"]

ENCODINGS: tuple[Encoding, ...] = ("boolean", "additive", "lengths", "causal", "finite")

LIMITS: tuple[str, ...] = (
    "grouped heads",
    "queries other than keys",
    "values of another width",
    "scale",
    "no keys",
    "no queries",
    "mask per head",
    "mask per query",
    "head width",
)
"""What a kernel may be unable to take, for the keys of ``limits``: ``G < H``; ``Lq != Lk``; ``dv != d``; a scale other
than ``1 / sqrt d``; ``Lk = 0``; ``Lq = 0``; a mask that differs between heads, or between queries; some values of
``d``."""

PROMISES = frozenset({"isolation", "allowed-nan-visible"})


@dataclass(frozen=True, eq=False)
class AttentionAnswer:
    """What ``forward`` returns when it has more to say than the output.

    ``output``: ``(B, H, Lq, dv)``. ``weights``: ``(B, H, Lq, Lk)``, where the entry point returns them. ``valid``:
    Boolean, ``(B, H, Lq)``, False for a query without an allowed key, where it offers such a flag.
    """

    output: Array
    weights: Array | None = None
    valid: Bools | None = None


@dataclass(frozen=True, eq=False)
class Attention:
    """One masked attention on one execution path, with what it declares about itself.

    - ``forward(q, k, v, mask, scale)`` returns the output, in the dtype of ``q`` (or an :class:`AttentionAnswer`).
    - ``vjp(q, k, v, mask, scale, cotangent)`` returns ``(dq, dk, dv)`` for the cotangent of the output.
    - ``jvp(q, k, v, mask, scale, tangents)``, with ``tangents = (dq, dk, dv)``, returns the tangent of the output.
    - ``encoding``: how the entry point is told the mask. ``lengths`` and ``causal`` subjects are given only problems
      whose mask is of that kind; ``finite`` ones replace or add a finite constant, and say which ``reading`` follows.
    - ``causal``: the alignment of a ``causal`` subject (and of ``is_causal`` beside another mask); None if it declares
      none, and then what it does is reported.
    - ``contract``, ``tier``, ``role``, ``convention``, ``unsupported``, ``promises``, ``opt_in``: as for
      :class:`~hardmask.adapters.subject.Subject`; tiers are those of :mod:`hardmask.spec.attention.tiers`.
    - ``limits``: what the entry point does not take, of :data:`LIMITS`, each with the reason in words; such problems
      are reported as unsupported.
    - ``widths``: for the limit ``head width``, whether a ``d`` can be taken.
    - ``group``: subjects of one group are paths of one framework that should agree with each other.
    - ``kernel``: how the path is forced, or why it cannot be, in words; ``ran``: a function without arguments that
      runs a small problem and returns the name of the kernel that computed it, as evidence.
    - ``few_shapes``: why every new shape is dear, such as a compiler that sees it anew: the subject is then judged on
      fewer shapes, and gets masks in their full shape.
    - ``recipe``: how the entry point is called, as source that runs without hardmask (:mod:`hardmask.adapters.recipe`);
      ``hardmask repro`` writes it into a bug report.
    - ``rows``: whether it is also judged as a masked softmax (:mod:`hardmask.adapters.attention_rows`); as a mapping,
      the fields of Subject that are declared for that, such as its ``tier``.

    Raises ValueError for an unusable id, an unknown dtype, contract, role, convention, encoding, limit, alignment or
    promise, for a reason without words, and for a method that cannot be called.
    """

    id: str
    forward: Callable[..., Array | AttentionAnswer]
    vjp: Callable[..., tuple[Array, Array, Array]] | None = None
    jvp: Callable[..., Array] | None = None
    adapter: str = "user"
    path: str = "eager"
    role: Role = "entry-point"
    dtypes: tuple[str, ...] = ("float32", "float64")
    contract: str = "zero"
    tier: str | Mapping[str, str] = field(default_factory=dict)
    convention: Convention = "allowed"
    encoding: Encoding = "boolean"
    causal: Alignment | None = None
    promises: frozenset[str] = frozenset()
    unsupported: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    widths: Callable[[int], bool] = lambda d: True
    group: str = ""
    kernel: str = ""
    ran: Callable[[], str] | None = None
    few_shapes: str = ""
    rows: bool | Mapping[str, Any] = False
    opt_in: str = ""
    recipe: Recipe | None = None
    operation: Literal["masked-attention"] = "masked-attention"

    def __post_init__(self) -> None:
        if not self.id or len(self.id) > 200 or any(c.isspace() or not c.isprintable() for c in self.id):
            raise ValueError(
                f"An attention subject needs an id without spaces or control characters, of at most 200 characters; "
                f"{self.id[:80]!r} is none. Write for instance 'mine.attention'."
            )
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise ValueError(f"Subject '{self.id}' names the dtype '{dtype}'; hardmask judges {', '.join(DTYPES)}.")
        self._one_of("role", self.role, ("entry-point", "reference", "specimen"))
        self._one_of("convention", self.convention, CONVENTIONS)
        self._one_of("encoding", self.encoding, ENCODINGS)
        self._one_of("causal alignment", self.causal, (None, "top-left", "bottom-right"))
        for promise in self.promises:
            self._one_of("promise", promise, tuple(sorted(PROMISES)))
        for limit in self.limits:
            self._one_of("limit", limit, LIMITS)
        for key in self.unsupported:
            self._one_of("unsupported method or dtype", key, (*METHODS, *DTYPES))
        for what, reasons in (("limits", self.limits), ("unsupported", self.unsupported)):
            for key, reason in reasons.items():
                if not isinstance(reason, str) or not reason.strip():
                    raise ValueError(f"Subject '{self.id}' gives no reason in words for '{key}' in its {what}.")
        for method in METHODS:
            call = getattr(self, method)
            if not callable(call) and (call is not None or method == "forward"):
                raise ValueError(
                    f"Subject '{self.id}' has a {method} of type {type(call).__name__}, which cannot be called."
                )
        contract(self.contract)

    def _one_of(self, what: str, value: Any, offered: tuple[Any, ...]) -> None:
        if value not in offered:
            names = ", ".join(str(o) for o in offered if o is not None)
            raise ValueError(f"Subject '{self.id}' has the {what} '{value}'; use one of: {names}.")

    @property
    def methods(self) -> tuple[Method, ...]:
        """The methods that the subject offers, in the order forward, vjp, jvp."""
        return tuple(m for m in METHODS if getattr(self, m) is not None)

    def tier_for(self, method: Method, dtype: str) -> str:
        """The accuracy tier that the subject declares for one method and dtype."""
        if isinstance(self.tier, str):
            return self.tier
        keys = [f"{method}:{dtype}", dtype]
        if dtype in HALVES:
            keys = [f"{method}:{dtype}", f"{method}:half", dtype, "half"]
        default = "mixed" if dtype in HALVES else "strict"
        return next((self.tier[key] for key in keys if key in self.tier), default)
