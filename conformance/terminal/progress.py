"""Progress on a terminal; silent everywhere else."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ..runner import CaseJudged, CaseStarted, Event


class ProgressBar:
    """A context manager that is also a listener for the events of a run."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<34}"),
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

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, CaseStarted):
            self._progress.update(self._task, description=event.case.key, total=event.total)
        elif isinstance(event, CaseJudged):
            self._progress.update(self._task, completed=event.index + 1)
