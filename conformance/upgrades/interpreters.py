"""Run the same seeded cases in two interpreters, which need no more than a framework and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from ..certificate import write
from ..certification import Request, certify
from ..document import Certificate
from ..exhaustive import PieceDone
from ..output import OutputError
from ..runner import Event

NAMES = ("old.json", "new.json")
"""What the two certificates are called where they are kept."""


def in_both(
    request: Request,
    pythons: tuple[str, str],
    *,
    executor: Callable[[], AbstractContextManager[Executor | None]],
    listen: Callable[[Event | PieceDone], None] = lambda event: None,
    folder: Path | None = None,
) -> tuple[Certificate, Certificate]:
    """The certificates of one request in two interpreters; the oracle and the checks are those of this process.

    ``executor`` is entered once for each of them, so that no process serves both. ``folder``: where the certificates
    are kept, each as soon as it is there.

    Raises ValueError (of which ``TargetError`` is one) for an interpreter or a target that cannot be used, OutputError
    for a folder that cannot be written to, and SuiteFault when hardmask contradicts itself.
    """
    made: list[Certificate] = []
    for python, name in zip(pythons, NAMES, strict=True):
        with executor() as pool:
            asked = replace(request, in_process=False, python=python)
            report = certify(asked, executor=pool, listen=listen)
        if folder is not None:
            try:
                write(report.certificate, folder / name)
            except OSError as problem:
                raise OutputError(f"'{name}' cannot be written to '{folder}': {problem.strerror}.") from None
        made.append(report.certificate)
    return made[0], made[1]


def prepared(folder: str | None) -> Path | None:
    """The folder, made if it is not there, by its absolute path. Raises OutputError."""
    if folder is None:
        return None
    path = Path(folder).absolute()
    try:
        path.mkdir(exist_ok=True)
    except OSError as problem:
        raise OutputError(f"The folder '{folder}' cannot be made: {problem.strerror}.") from None
    return path
