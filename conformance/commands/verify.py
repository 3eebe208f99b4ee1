"""The command ``hardmask verify``."""

from __future__ import annotations

import sys

import click

from .common import Failure


@click.command()
@click.argument("certificate", type=click.Path())
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the result (JSON) to a file.")
@click.option("--signature", type=click.Path(), help="Also check this signed statement about the certificate.")
@click.option("--public-key", type=click.Path(), help="The key (PEM) that the statement has to be signed with.")
def verify(certificate: str, json_file: str | None, signature: str | None, public_key: str | None) -> None:
    """Check a certificate without the framework.

    Schema, digest, counts and verdicts have to agree, and every row and problem in CERTIFICATE is recomputed: its true
    values, its error, its budget, and the verdict that follows. Says what could not be recomputed. Exit code 1 when
    something does not hold, 2 when a file cannot be read as what it should be.
    """
    from ..certificate import parsed
    from ..output import writable, write_or_explain
    from ..strict_json import content_of
    from ..terminal.console import output
    from ..verification.ledger import Problem
    from ..verification.report import print_verification, record
    from ..verification.verify import verify as run

    if (signature is None) != (public_key is None):
        raise Failure("A signature is checked with a key: give both --signature and --public-key.")
    try:
        path = writable(json_file, "result")
        content = content_of(certificate, "certificate")
        found = parsed(content, certificate)
        signed, unsigned = "", ""
        if signature is not None and public_key is not None:
            from ..verification.signature import NotSigned, check_signature

            try:
                signed = check_signature(content, found, certificate, signature, public_key)
            except NotSigned as problem:
                unsigned = str(problem)
    except ValueError as problem:
        raise Failure(str(problem)) from None
    try:
        result = run(found)
        if unsigned:
            result.problems.insert(0, Problem("signature", unsigned))
    except KeyboardInterrupt:
        click.echo("Interrupted: nothing was verified.", err=True)
        sys.exit(1)
    print_verification(result, certificate, signed, output())
    if path is not None and json_file is not None:
        try:
            write_or_explain(path, record(result, certificate, signed), json_file, "result")
        except ValueError as problem:
            raise Failure(str(problem)) from None
    sys.exit(0 if result.holds else 1)
