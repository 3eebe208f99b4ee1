"""Progress on a terminal; elsewhere a line now and then for a sweep, which may take minutes, and silence otherwise."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..exhaustive import PieceDone
from ..runner import CaseJudged, CaseStarted, Event

LINE_EVERY = 30.0
"""Seconds between two lines where there is no terminal."""


class ProgressBar:
    """A context manager that is also a listener for the events of a run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._begun = self._said = time.monotonic()
        self._progress = Progress(
            TextColumn("{task.description:<34}", markup=False),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # else it leaves an empty line behind
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> ProgressBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, event: Event | PieceDone) -> None:
        """Show one event."""
        if isinstance(event, PieceDone):
            self._swept(event)
        if isinstance(event, CaseStarted):
            self._progress.update(self._task, description=event.case.key, total=event.total)
        elif isinstance(event, CaseJudged):
            self._progress.update(self._task, completed=event.index + 1)

    def _swept(self, event: PieceDone) -> None:
        self._progress.update(self._task, description=event.sweep, total=event.total, completed=event.rows)
        now = time.monotonic()
        if self._console.is_terminal or now - self._said < LINE_EVERY:
            return
        self._said = now
        share = event.rows / max(event.total, 1)
        text = f"{event.sweep}: {100.0 * share:.0f} % of all rows"
        if share >= 0.01:  # before that the start of the processes takes most of the time
            rate = (event.rows - event.resumed) / (now - self._begun)
            text += f", about {(event.total - event.rows) / max(rate, 1.0):.0f} s left"
        self._console.print(text, highlight=False, markup=False)  # an id may have brackets
