"""The command ``hardmask calibrate``: from names to lines, a file and an exit code."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import NoReturn

import click

from ...adapters.errors import TargetError
from ...adapters.memory import keep_freed_memory
from ...adapters.registry import resolve, versions
from ...adapters.subject import Subject
from ...spec.formats import DTYPES
from ...spec.oracle.referee import engine_name
from .. import __version__
from ..environment import environment
from ..output import OutputError, json_bytes, writable, write_or_explain
from ..terminal.calibration import CalibrationBar, print_calibration
from ..terminal.console import errors, output
from .arguments import Arguments
from .calibration import Calibration, calibrate


def run(targets: tuple[str, ...], dtypes: tuple[str, ...], fraction: float, seed: int, path: str | None) -> None:
    """Calibrate and leave with the exit code: 0, 1 for a declaration that is too tight, 2 for a bad request."""
    for dtype in dtypes:
        if dtype not in DTYPES:
            _refuse(f"There is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
    if not 0.0 < fraction <= 1.0:
        _refuse(f"A fraction is above 0 and at most 1; {fraction:g} is not.")
    try:
        out = writable(path, "record")
        subjects = resolve(list(targets))
    except (OutputError, TargetError) as problem:
        _refuse(str(problem))
    pairs = [(s, d) for s in subjects for d in dtypes if d in s.dtypes]
    if not pairs:
        _refuse(f"None of the subjects takes {' or '.join(dtypes)}: {', '.join(s.id for s in subjects)}.")
    for s in subjects:
        for d in dtypes:
            if d not in s.dtypes:
                click.echo(f"{s.id} does not take {d}.", err=True)
    try:
        found = _measure(pairs, fraction, seed)
    except KeyboardInterrupt:
        click.echo("Interrupted.", err=True)
        sys.exit(1)
    if path is not None and out is not None:
        try:
            write_or_explain(out, _data(found, subjects), path, "record")
        except OutputError as problem:
            _refuse(str(problem))
    sys.exit(int(any(c.status in ("too tight", "unusable") for c in found)))


def _refuse(sentence: str) -> NoReturn:
    click.echo(sentence, err=True)
    sys.exit(2)


def _measure(pairs: list[tuple[Subject, str]], fraction: float, seed: int) -> list[Calibration]:
    keep_freed_memory()
    console = output()
    found = []
    with CalibrationBar(errors()) as bar:
        for subject, dtype in pairs:
            bar.start(f"{subject.id} {dtype}", Arguments(dtype, fraction, seed))
            found.append(calibrate(subject, dtype, fraction=fraction, seed=seed, listen=bar))
            print_calibration(found[-1], console)
    return found


def _data(found: list[Calibration], subjects: list[Subject]) -> bytes:
    """Everything that was measured, as JSON; infinite numbers become null."""
    record = {
        "hardmask": __version__,
        "environment": environment(versions(subjects), engine_name()),
        "calibrations": [asdict(c) for c in found],
    }
    return json_bytes(record)
