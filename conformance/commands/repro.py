"""The command ``hardmask repro``."""

from __future__ import annotations

import click

from .common import Failure


@click.command()
@click.argument("certificate", type=click.Path())
@click.argument("id")
@click.option("--out", type=click.Path(dir_okay=False, writable=True), help="Write the script to a file.")
def repro(certificate: str, id: str, out: str | None) -> None:
    """Write a failure as a script for a bug report.

    ID is the id of a finding, or the beginning of one. The script needs only the framework and NumPy. It prints what
    was returned and what is true, and ends with exit code 1 where the fault shows.
    """
    from ...adapters.errors import TargetError
    from ..certificate import read
    from ..output import writable, write_or_explain
    from ..replay import chosen
    from ..repro import script

    try:
        path = writable(out, "script")
        found = read(certificate)
        text = script(found, chosen(found, id))
        if path is not None and out is not None:
            write_or_explain(path, text.encode(), out, "script")
            return
    except (TargetError, ValueError) as problem:
        raise Failure(str(problem)) from None
    click.echo(text, nl=False)
