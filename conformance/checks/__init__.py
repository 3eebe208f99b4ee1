"""The floating-point checks, and which declarations each of them serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..judgement import Outcome
from ..view import View
from . import adjoint, derivative, empty_row, facts, forward, relations

CHECKS: tuple[Callable[[View], Iterator[Outcome]], ...] = (
    forward.check,
    relations.check,
    empty_row.check,
    facts.check,
    derivative.check,
    adjoint.check,
)

SERVED_BY: dict[str, tuple[str, ...]] = {
    **{
        key: ("forward",)
        for key in (
            *forward.VALUES,
            *forward.ZEROS,
            *forward.RANGE,
            *forward.ONE,
            *forward.ALL_TRUE,
            *forward.CAUSAL,
            *forward.SUM,
            *forward.NON_INTERFERENCE,
            *relations.NAMES.values(),
            relations.TRUNCATION,
            *empty_row.EMPTY,
            facts.VISIBLE,
        )
    },
    **{key: ("vjp",) for key in derivative.VJP},
    **{key: ("jvp",) for key in derivative.JVP},
    **{key: ("vjp", "jvp") for key in derivative.BLOCKED},
    **{key: ("vjp", "jvp") for key in adjoint.SELF},
    **{key: ("vjp+jvp",) for key in adjoint.ADJOINT},
}
"""Declaration key -> the methods that decide it: any one of those listed, or both of ``vjp+jvp``."""
