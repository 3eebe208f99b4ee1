"""The command ``hardmask selftest``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console

from ...spec.formats import DTYPES
from ..memory import keep_freed_memory
from ..suite_fault import SuiteFault
from ..terminal.progress import ProgressBar
from .report import markdown, print_selftest
from .run import selftest


def command(
    names: Sequence[str],
    dtypes: Sequence[str],
    effort: str,
    seed: int,
    jobs: int | None,
    json_file: Path | None,
    markdown_file: Path | None,
) -> int:
    """Run the self-test, print it, write the files and return the exit code.

    Raises ValueError for a request that cannot be carried out.
    """
    for path in (json_file, markdown_file):
        if path is not None and not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
            raise ValueError(f"The result cannot be written to '{path}': its folder is not there, or is read-only.")
    keep_freed_memory()
    if jobs is None:
        jobs = 1 if effort == "smoke" else len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
    try:
        with ProgressBar(Console(stderr=True)) as bar:
            result = selftest(
                names, dtypes=tuple(dict.fromkeys(dtypes)) or DTYPES, effort=effort, seed=seed, jobs=jobs, listen=bar
            )
    except KeyboardInterrupt:
        click.echo("Interrupted: the self-test is not complete and shows nothing.", err=True)
        return 1
    except SuiteFault as fault:
        click.echo(str(fault), err=True)
        return 3
    print_selftest(result, Console() if sys.stdout.isatty() else Console(width=140))
    texts = {
        json_file: msgspec.json.format(msgspec.json.encode(result)).decode() + "\n",
        markdown_file: markdown(result),
    }
    for path, text in texts.items():
        if path is not None:
            try:
                path.write_text(text, encoding="utf-8")
            except OSError as problem:
                raise ValueError(f"The result cannot be written to '{path}': {problem.strerror}.") from None
    return result.exit_code
