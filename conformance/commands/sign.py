"""The command ``hardmask sign``."""

from __future__ import annotations

import click

from .common import Failure


@click.command()
@click.argument("certificate", type=click.Path())
@click.option("--key", required=True, type=click.Path(), help="The private key (PEM): Ed25519, ECDSA or RSA.")
@click.option("--out", required=True, type=click.Path(dir_okay=False), help="Write the signed statement to a file.")
def sign(certificate: str, key: str, out: str) -> None:
    """Sign a statement about a certificate.

    The statement (in-toto, in a DSSE envelope) names the file CERTIFICATE by its SHA-256 and sums up what it says.
    Needs the extra 'sign'.
    """
    from ..certificate import parsed
    from ..output import writable, write_or_explain
    from ..strict_json import content_of
    from ..verification.signature import signed_statement

    try:
        path = writable(out, "statement")
        content = content_of(certificate, "certificate")
        statement = signed_statement(content, parsed(content, certificate), certificate, key)
        if path is not None:
            write_or_explain(path, statement, out, "statement")
    except ValueError as problem:
        raise Failure(str(problem)) from None
    click.echo(f"Signed: {out}")
