"""Subjects whose functions run in a worker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from ..attention import Attention
from ..errors import TargetError
from ..subject import METHODS, Array, Bools, Subject
from .worker import Worker

TUPLES = ("dtypes", "any_axis")


def proxy(found: Mapping[str, Any], worker: Worker) -> Subject | Attention:
    """The subject that a worker has described, with functions that call it there.

    Raises TargetError for a description that is none.
    """
    try:
        declared: dict[str, Any] = {
            k: tuple(v) if k in TUPLES and isinstance(v, list) else v for k, v in found["fields"].items()
        }
        declared["promises"] = frozenset(declared["promises"])
        id, methods, asks = str(declared["id"]), found["methods"], found["asks"]
        kind: Any = Attention if found["kind"] == "masked-attention" else Subject
        call = _attend if kind is Attention else _rows
        functions: dict[str, Any] = {m: partial(call, worker, id, m) for m in METHODS if m in methods}
        if asks["widths"]:
            functions["widths"] = cache(lambda d: bool(worker.question(id, "widths", width=d)))
        if asks["ran"]:
            functions["ran"] = lambda: str(worker.question(id, "ran"))
        made: Subject | Attention = kind(**declared, **functions)
        return made
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise TargetError(
            f"A worker described a subject in a way that cannot be: {type(problem).__name__}: {str(problem)[:200]}. "
            "Run with --in-process to see what the adapter offers."
        ) from None


def _rows(worker: Worker, id: str, method: str, *arrays: Array, **along: int) -> Any:
    return worker.call(id, method, arrays, **along)


def _attend(
    worker: Worker, id: str, method: str, q: Array, k: Array, v: Array, mask: Bools, scale: float, *vector: Any
) -> Any:
    more = vector[0] if method == "jvp" else vector
    return worker.call(id, method, (q, k, v, mask, *more), scale=float(scale))
