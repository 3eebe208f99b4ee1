"""The command ``hardmask metamorphic``."""

from __future__ import annotations

import sys

import click

DTYPES = ("float64", "float32", "float16", "bfloat16")


@click.command()
@click.argument("targets", nargs=-1, required=True)
@click.option(
    "--keys",
    multiple=True,
    type=click.IntRange(1),
    default=(65536,),
    show_default=True,
    help="Keys per row (repeatable).",
)
@click.option("--rows", type=click.IntRange(1), default=32, show_default=True, help="Rows per call.")
@click.option(
    "--dtype", "dtypes", multiple=True, help=f"Restrict to a dtype (repeatable). One of: {', '.join(DTYPES)}."
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random rows.")
@click.option(
    "--json", "out", type=click.Path(dir_okay=False, writable=True), help="Write the record (JSON) to a file."
)
def metamorphic(
    targets: tuple[str, ...], keys: tuple[int, ...], rows: int, dtypes: tuple[str, ...], seed: int, out: str | None
) -> None:
    """Compare answers with each other, at any length.

    TARGETS are those of certify; there is no oracle. A row and its shifted, permuted, padded, truncated or moved copy,
    and the same row with other numbers at its blocked scores, have one softmax. A difference in bits is a fact, a
    difference beyond the derived bound a failure; where the same call gives the same bits, so must a call in which
    only blocked scores changed.
    """
    from rich.text import Text

    from ...adapters.errors import TargetError
    from ...adapters.memory import keep_freed_memory
    from ..commands.common import Failure
    from ..output import OutputError, json_bytes, writable, write_or_explain
    from ..terminal.console import errors, output
    from .report import print_report
    from .request import Request
    from .request import metamorphic as run

    keep_freed_memory()
    try:
        path = writable(out, "record")
        request = Request(targets, tuple(dict.fromkeys(keys)), rows, tuple(dict.fromkeys(dtypes)) or DTYPES, seed)
        with errors().status("starting") as status:
            report = run(request, listen=lambda what: status.update(Text(what)))  # an id may have brackets
    except (TargetError, ValueError) as problem:
        raise Failure(str(problem)) from None
    except KeyboardInterrupt:
        click.echo("Interrupted before anything was asked.", err=True)
        sys.exit(1)
    console = output()
    print_report(report, console)
    if out is not None and path is not None:
        try:
            write_or_explain(path, json_bytes(report.record), out, "record")
        except OutputError as problem:
            raise Failure(str(problem)) from None
        console.print(f"Record: {out}", highlight=False)
    sys.exit(report.exit_code)
