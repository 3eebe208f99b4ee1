"""Call an attention subject as if it were hostile: an answer of the right shapes, or a sentence."""

from __future__ import annotations

import warnings
from contextlib import redirect_stdout
from typing import Any

import numpy as np

from ...adapters.attention import Attention, AttentionAnswer
from ...adapters.errors import said
from ...spec.attention.problem import Problem
from ...spec.batch import Array
from ..calls import Fault, _Nowhere


def ask(subject: Attention, method: str, problem: Problem) -> dict[str, Array] | Fault:
    """Call one method on private copies; the answer by quantity.

    ``forward`` gives ``output``, and ``weights`` and ``valid`` where the subject returns them; ``vjp`` gives ``dq``,
    ``dk`` and ``dv``; ``jvp`` gives ``jvp``. Never raises, except for KeyboardInterrupt.
    """
    name = f"{subject.id}.{method}"
    q, k, v = (a.copy() for a in (problem.q, problem.k, problem.v))
    arguments: list[Any] = [q, k, v, problem.mask.copy(), problem.scale]
    if method == "vjp":
        arguments.append(problem.cotangent.copy())
    if method == "jvp":
        arguments.append(tuple(t.copy() for t in problem.tangents))
    where = f"{problem.dtype}, q {q.shape}, k {k.shape}, v {v.shape}"
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(), redirect_stdout(_Nowhere()):
            warnings.simplefilter("ignore")
            answer: Any = getattr(subject, method)(*arguments)
            return _accepted(name, method, answer, problem)
    except KeyboardInterrupt:
        raise
    except BaseException as trouble:  # whatever a subject raises, the run goes on
        return Fault(f"{name} failed on {where}: it raised {said(trouble)}.", True)


def _accepted(name: str, method: str, answer: Any, problem: Problem) -> dict[str, Array] | Fault:
    batch, heads, _, queries, keys, _, dv = problem.sizes
    expected: dict[str, tuple[int, ...]] = {
        "output": (batch, heads, queries, dv),
        "jvp": (batch, heads, queries, dv),
        "weights": (batch, heads, queries, keys),
        "dq": problem.q.shape,
        "dk": problem.k.shape,
        "dv": problem.v.shape,
    }
    found: dict[str, Any]
    flags = None
    if method == "vjp":
        if not isinstance(answer, (tuple, list)) or len(answer) != 3:
            return Fault(f"{name} returned a {type(answer).__name__}; return the three arrays (dq, dk, dv).")
        found = dict(zip(("dq", "dk", "dv"), answer, strict=True))
    elif method == "jvp":
        found = {"jvp": answer}
    elif isinstance(answer, AttentionAnswer):
        found, flags = {"output": answer.output}, answer.valid
        if answer.weights is not None:
            found["weights"] = answer.weights
    else:
        found = {"output": answer}
    for quantity, array in found.items():
        if not hasattr(array, "__array__") or not hasattr(array, "shape"):
            return Fault(f"{name} returned a {type(array).__name__} for {quantity}; return a NumPy array.")
        array = np.asarray(array)
        if array.shape != expected[quantity]:
            return Fault(f"{name} returned {quantity} of shape {array.shape}; {expected[quantity]} was due.")
        if array.dtype != problem.q.dtype:
            return Fault(f"{name} returned {quantity} in {array.dtype} for {problem.q.dtype} arrays.")
        found[quantity] = array
    if flags is not None:
        flags = np.asarray(flags)
        if flags.dtype != np.bool_ or flags.shape != (batch, heads, queries):
            return Fault(f"{name} returned a 'valid' flag of dtype {flags.dtype} and shape {flags.shape}.")
        found["valid"] = flags
    return found
