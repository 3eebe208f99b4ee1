"""The options that ask for reports, the same wherever there are reports. Imports nothing but click."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = {
    "html": "Write a page (HTML) of its own, for people; '-' is standard output.",
    "junit": "Write a JUnit file, for a CI service; '-' is standard output.",
    "markdown": "Write a summary in Markdown; '-' is standard output.",
}


def report_options(command: Command) -> Command:
    """Add an option for each kind of report: each takes a file."""
    for name, text in reversed(FORMATS.items()):
        command = click.option(f"--{name}", type=click.Path(dir_okay=False, allow_dash=True), help=text)(command)
    return command
