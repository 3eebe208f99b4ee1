"""The command ``hardmask badge``."""

from __future__ import annotations

import click

from .common import Failure


@click.command()
@click.argument("certificate", type=click.Path())
@click.option("--out", type=click.Path(dir_okay=False), help="Write the badge (JSON) to a file.  [default: print it]")
@click.option("--label", default="hardmask", show_default=True, help="The left side of the badge.")
def badge(certificate: str, out: str | None, label: str) -> None:
    """Write the badge of a certificate.

    CERTIFICATE is a file that certify has written with --out. The badge is the JSON of an endpoint badge of
    shields.io. Exit code 0 when it is written, whatever it says.
    """
    import json

    from ..certificate import read
    from ..output import writable, write_or_explain
    from ..reports import badge as of
    from ..reports import outcome_of

    try:
        path = writable(out, "badge")
        text = json.dumps(of(outcome_of(read(certificate), certificate), label)) + "\n"
        if path is not None and out is not None:
            write_or_explain(path, text.encode("ascii"), out, "badge")
    except ValueError as problem:
        raise Failure(str(problem)) from None
    if out is None:
        click.echo(text, nl=False)
