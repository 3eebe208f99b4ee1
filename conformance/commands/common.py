"""What the commands share. Imports nothing but click: ``hardmask --help`` loads this."""

from __future__ import annotations

from typing import Any

import click

DTYPES = ("float64", "float32", "float16", "bfloat16")


class Failure(click.ClickException):
    """A sentence on standard error and the exit code of a request that cannot be carried out."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the sentence alone, without what would control a terminal."""
        click.echo("".join(c for c in self.message if c.isprintable() or c == "\n"), err=True)
