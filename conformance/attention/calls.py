"""Call an attention subject as if it were hostile: whatever it does, the run gets an answer or a sentence."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...adapters.attention import Attention, AttentionAnswer
from ...adapters.errors import Lost, said
from ...adapters.subject import Method
from ...spec.attention.problem import Problem
from ...spec.batch import Array, Bools, Floats
from ..calls import Fault, Nowhere, same_bits

ARGUMENTS = ("q", "k", "v", "mask")
RESULTS: dict[Method, tuple[str, ...]] = {"forward": ("output",), "vjp": ("dq", "dk", "dv"), "jvp": ("tangent",)}
"""What the arrays that a method returns are called."""


@dataclass(frozen=True, eq=False)
class AttentionReturned:
    """An accepted answer: each array in the subject's own dtype, by its name in :data:`RESULTS`, and whatever else
    ``forward`` returned."""

    raw: dict[str, Array]
    weights_raw: Array | None = None
    valid: Bools | None = None

    def values(self, name: str) -> Floats:
        """An array, exactly, in float64."""
        with np.errstate(all="ignore"):
            return self.raw[name].astype(np.float64)

    @property
    def weights(self) -> Floats | None:
        """The weights, exactly, in float64, where the entry point returns them."""
        return None if self.weights_raw is None else self.weights_raw.astype(np.float64)


def limit_of(subject: Attention, problem: Problem) -> str:
    """The first of the subject's limits that a problem is beyond, empty if it is within all.

    >>> from ..attention.plan import SMALL, AttentionCase
    >>> problem = AttentionCase("float32", SMALL, "full", "plain", 0).build()
    >>> limit_of(Attention("x.y", lambda *a: a[0], limits={"queries other than keys": "It is square."}), problem)
    'queries other than keys'
    """
    _, heads, groups, queries, keys, width, value_width = problem.sizes
    mask = problem.mask
    beyond = {
        "grouped heads": groups < heads,
        "queries other than keys": queries != keys,
        "values of another width": value_width != width,
        "scale": problem.scale != max(width, 1) ** -0.5,
        "no keys": keys == 0,
        "no queries": queries == 0,
        "mask per head": mask.shape[1] > 1 and bool((mask != mask[:, :1]).any()),
        "mask per query": mask.shape[2] > 1 and bool((mask != mask[:, :, :1]).any()),
        "head width": not subject.widths(width),
    }
    return next((limit for limit in subject.limits if beyond[limit]), "")


def takes(subject: Attention, problem: Problem) -> bool:
    """Whether the subject's encoding can express the mask of a problem."""
    if subject.encoding == "lengths":
        return problem.lengths
    if subject.encoding == "causal":
        queries, keys = problem.sizes[3:5]
        if subject.causal is None:
            return problem.causal is not None and queries == keys
        return problem.causal == subject.causal or (problem.causal is not None and queries == keys)
    return True


def call_attention(subject: Attention, method: Method, problem: Problem) -> AttentionReturned | Fault:
    """Call one method of an attention subject on a problem's own arrays, with their strides.

    A call that changes an array that it was given is at fault, and the array is put right. Never raises, except for
    KeyboardInterrupt. Warnings and prints of the subject are not shown.
    """
    function: Callable[..., Any] = getattr(subject, method)
    mask = np.ascontiguousarray(problem.full_mask) if subject.few_shapes else problem.mask
    arrays = [problem.q, problem.k, problem.v, mask]
    more: tuple[Any, ...] = ()
    if method == "vjp":
        more = (problem.cotangent,)
    elif method == "jvp":
        more = (tuple(problem.tangents),)
    given = [*arrays, *(more[0] if method == "jvp" else more)]
    names = [*ARGUMENTS, *(("cotangent",) if method == "vjp" else ("tangents",) * 3)]
    before = [a.copy() for a in given]
    where = f"{subject.id}.{method}"
    words = f"{problem.dtype} q {problem.q.shape}, k {problem.k.shape}, v {problem.v.shape}, mask {problem.mask.shape}"
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(Nowhere()):
            warnings.simplefilter("ignore")
            answer = function(*arrays, problem.scale, *more)
            found = _accept(where, words, method, answer, problem)
    except KeyboardInterrupt:
        raise
    except Lost as lost:  # no answer at all, which is no refusal
        found = Fault(lost.told(where, words))
    except BaseException as raised:  # whatever a subject raises, the run goes on
        found = Fault(f"{where} failed on {words}: it raised {said(raised)}.", True)
    for name, was, now in zip(names, before, given, strict=False):
        if not same_bits(was, now):
            np.copyto(now, was)
            return Fault(f"{where} changed the array {name} that it was given ({words}). Work on a copy.")
    return found


def _accept(where: str, words: str, method: Method, answer: Any, problem: Problem) -> AttentionReturned | Fault:
    batch, heads, groups, queries, keys, width, value_width = problem.sizes
    shapes = {
        "output": (batch, heads, queries, value_width),
        "tangent": (batch, heads, queries, value_width),
        "dq": (batch, heads, queries, width),
        "dk": (batch, groups, keys, width),
        "dv": (batch, groups, keys, value_width),
        "weights": (batch, heads, queries, keys),
    }
    weights = valid = None
    if method == "forward" and isinstance(answer, AttentionAnswer):
        answer, weights, valid = answer.output, answer.weights, answer.valid
    expected = RESULTS[method]
    parts = answer if method == "vjp" else (answer,)
    if not isinstance(parts, (tuple, list)) or len(parts) != len(expected):
        return Fault(f"{where} returned a {type(answer).__name__}; return the three arrays (dq, dk, dv).")
    named = dict(zip(expected, parts, strict=True))
    if weights is not None:
        named["weights"] = weights
    raw: dict[str, Array] = {}
    for name, part in named.items():
        if not hasattr(part, "__array__") or not hasattr(part, "shape"):
            return Fault(f"{where} returned a {type(part).__name__} as its {name}; return a NumPy array.")
        array = np.asarray(part)
        if array.shape != shapes[name]:
            return Fault(f"{where} returned a {name} of shape {array.shape} for {words}; return {shapes[name]}.")
        if array.dtype != problem.q.dtype:
            return Fault(f"{where} returned {array.dtype} as its {name} for {words}; return the dtype of q.")
        raw[name] = array
    flags: Bools | None = None
    if valid is not None:
        flags = np.asarray(valid)
        if flags.dtype != np.bool_ or flags.shape != shapes["output"][:3]:
            return Fault(
                f"{where} returned a 'valid' flag of dtype {flags.dtype} and shape {flags.shape}; "
                f"return Booleans of shape {shapes['output'][:3]}, one per query."
            )
    return AttentionReturned(raw, raw.pop("weights", None), flags)
