"""Worker processes that Ctrl-C does not reach: the main process handles it, and they finish what they have begun."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from threading import Thread
from typing import Any


class Workers(ProcessPoolExecutor):
    """``jobs`` processes, started afresh by the first call: a forked framework may hang.

    ``single``: they compute with one thread each, because there is one of them for every processor.
    """

    def __init__(self, jobs: int, *, single: bool = False) -> None:
        super().__init__(jobs, get_context("spawn"), _begin, (single,))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a call."""
        with _interrupts_blocked():
            return super().submit(fn, *args, **kwargs)


def _end_with_parent() -> None:
    """Leave no process behind when the main one is killed: nobody would collect what it finds out."""
    parent = parent_process()
    if parent is None:
        return

    def watch() -> None:
        wait([parent.sentinel])
        os._exit(1)

    Thread(target=watch, daemon=True).start()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A process that starts meanwhile inherits this: an interruption cannot kill it before it can say that it ignores
    them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(single: bool) -> None:
    _end_with_parent()
    from ..adapters.memory import keep_freed_memory

    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if single:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
