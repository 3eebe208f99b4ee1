"""The command ``hardmask schema``."""

from __future__ import annotations

import click


@click.command()
def schema() -> None:
    """Print the JSON Schema of certificates."""
    from ..verification.schema import schema_text

    click.echo(schema_text(), nl=False)
