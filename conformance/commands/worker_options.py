"""The options that say where subjects are called: what ``certify`` and ``replay`` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

SECONDS = click.FloatRange(0, min_open=True)


def worker_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--in-process`` and the options of workers to a command."""
    options = (
        click.option("--in-process", is_flag=True, help="Call the subjects in the judging processes, not in workers."),
        click.option(
            "--python", type=click.Path(exists=True, dir_okay=False), help="Interpreter that runs the framework."
        ),
        click.option("--call-timeout", type=SECONDS, default=300.0, show_default=True, help="Seconds for one call."),
        click.option(
            "--subject-timeout", type=SECONDS, default=3600.0, show_default=True, help="For a subject's calls."
        ),
        click.option(
            "--memory-limit", type=click.IntRange(1), help="MiB for a worker; default: three quarters of what is free."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
