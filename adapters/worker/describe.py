"""Subjects as data: all that they declare, without their functions."""

from __future__ import annotations

from dataclasses import fields, replace
from importlib.util import find_spec
from typing import Any

from ..attention import Attention
from ..subject import Subject

Anything = Subject | Attention

FUNCTIONS = ("forward", "vjp", "jvp", "widths", "ran", "rows")

NO_BFLOAT16 = "bfloat16 needs ml_dtypes in the interpreter that runs the framework, and it is not installed there."


def described(subject: Anything) -> dict[str, Any]:
    """The fields of a subject but for its functions, the names of its ``methods``, and which questions it can answer.

    >>> found = described(Subject("x.y", forward=lambda s, m: s))
    >>> found["kind"], found["methods"], found["fields"]["dtypes"]
    ('masked-softmax', ('forward',), ('float32', 'float64'))
    """
    return {
        "kind": subject.operation,
        "methods": subject.methods,
        "asks": {
            "widths": isinstance(subject, Attention) and "head width" in subject.limits,
            "ran": isinstance(subject, Attention) and subject.ran is not None,
        },
        "fields": {
            f.name: _data(getattr(subject, f.name)) for f in fields(subject) if f.name not in (*FUNCTIONS, "recipe")
        },
    }


def possible(subject: Anything) -> Anything:
    """The subject without bfloat16 where this interpreter has no such numbers."""
    if "bfloat16" not in subject.dtypes or find_spec("ml_dtypes") is not None:
        return subject
    changes: dict[str, Any] = {
        "dtypes": tuple(d for d in subject.dtypes if d != "bfloat16"),
        "unsupported": {**subject.unsupported, "bfloat16": NO_BFLOAT16},
    }
    if isinstance(subject, Subject) and not isinstance(subject.any_axis, bool):
        changes["any_axis"] = tuple(d for d in subject.any_axis if d != "bfloat16")
    return replace(subject, **changes)


def _data(value: Any) -> Any:
    if isinstance(value, frozenset):
        return sorted(value)
    if hasattr(value, "keys"):
        return {key: _data(value[key]) for key in value}
    return value
