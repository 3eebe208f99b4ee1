"""The command ``hardmask selftest``."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ...adapters.memory import keep_freed_memory
from ...spec.formats import DTYPES
from ..environment import processors
from ..output import json_bytes, writable, write_or_explain
from ..suite_fault import SuiteFault
from ..terminal.console import errors, output
from ..terminal.progress import ProgressBar
from .report import markdown, print_selftest
from .run import selftest


def command(
    names: Sequence[str],
    dtypes: Sequence[str],
    effort: str,
    seed: int,
    jobs: int | None,
    json_file: str | None,
    markdown_file: str | None,
) -> int:
    """Run the self-test, print it, write the files and return the exit code.

    Raises ValueError for a request that cannot be carried out.
    """
    files = [(file, writable(file, "result")) for file in (json_file, markdown_file)]
    keep_freed_memory()
    if jobs is None:
        jobs = 1 if effort == "smoke" else processors()
    try:
        with ProgressBar(errors()) as bar:
            result = selftest(
                names, dtypes=tuple(dict.fromkeys(dtypes)) or DTYPES, effort=effort, seed=seed, jobs=jobs, listen=bar
            )
    except KeyboardInterrupt:
        click.echo("Interrupted: the self-test is not complete and shows nothing.", err=True)
        return 1
    except SuiteFault as fault:
        click.echo(str(fault), err=True)
        return 3
    print_selftest(result, output())
    for (file, path), content in zip(files, (json_bytes(result), markdown(result).encode()), strict=True):
        if file is not None and path is not None:
            write_or_explain(path, content, file, "result")
    return result.exit_code
