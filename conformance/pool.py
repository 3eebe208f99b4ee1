"""Worker processes that each keep to their own dtypes.

A framework that compiles does so once per shape and dtype in every process: with the dtypes dealt out, nothing is
compiled twice.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TYPE_CHECKING, Any

from .workers import Workers

if TYPE_CHECKING:
    from .cases import Case

TURN = (0, 1, 1, 0)
"""Which of two workers takes each dtype, in the order of ``DTYPES``: the double-double oracle of float64 and the slow
native float16 of some backends fall to different ones."""


class PoolByDtype(Executor):
    """An executor for functions whose first argument is a :class:`~hardmask.conformance.cases.Case`.

    ``jobs`` processes, which start at once and load what they need while their parent does the same. They ignore
    Ctrl-C, which the main process handles.
    """

    def __init__(self, jobs: int) -> None:
        self._slots = [Workers(1) for _ in range(max(1, jobs))]
        for slot in self._slots:
            slot.submit(_load)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call on the worker of its case's dtype."""
        from ..spec.formats import DTYPES

        case: Case = args[0]
        number = DTYPES.index(case.dtype)
        slot = TURN[number] if len(self._slots) == 2 else number
        return self._slots[slot % len(self._slots)].submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Stop the workers."""
        for slot in self._slots:
            slot.shutdown(wait, cancel_futures=cancel_futures)


def _load() -> None:
    from . import runner  # noqa: F401  # loading it is all that there is to do
