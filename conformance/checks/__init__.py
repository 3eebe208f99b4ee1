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
    **dict.fromkeys(forward.NAMES, ("forward",)),
    **dict.fromkeys((*relations.NAMES.values(), relations.TRUNCATION, relations.NON_INTERFERENCE), ("forward",)),
    **dict.fromkeys((*empty_row.EMPTY, facts.VISIBLE), ("forward",)),
    **dict.fromkeys(derivative.VJP, ("vjp",)),
    **dict.fromkeys(derivative.JVP, ("jvp",)),
    **dict.fromkeys(derivative.BLOCKED, ("vjp", "jvp")),
    facts.ISOLATION: ("vjp", "jvp"),
    **dict.fromkeys(adjoint.SELF, ("vjp", "jvp")),
    **dict.fromkeys(adjoint.ADJOINT, ("vjp+jvp",)),
}
"""Declaration key -> the methods that decide it: any one of those listed, or both of ``vjp+jvp``."""


def check_of(key: str) -> Callable[[View], Iterator[Outcome]]:
    """The check that judges a declaration, by its key; outcomes of other declarations come along.

    >>> check_of("row_sum").__module__.rpartition(".")[2]
    'forward'
    """
    return _CHECK_OF[key]


_CHECK_OF: dict[str, Callable[[View], Iterator[Outcome]]] = {
    **dict.fromkeys(forward.NAMES, forward.check),
    **dict.fromkeys((*relations.NAMES.values(), relations.TRUNCATION, relations.NON_INTERFERENCE), relations.check),
    **dict.fromkeys(empty_row.EMPTY, empty_row.check),
    **dict.fromkeys((facts.VISIBLE, facts.ISOLATION), facts.check),
    **dict.fromkeys((*derivative.VJP, *derivative.JVP, *derivative.BLOCKED), derivative.check),
    **dict.fromkeys((*adjoint.SELF, *adjoint.ADJOINT), adjoint.check),
}
