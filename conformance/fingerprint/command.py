"""The command ``hardmask fingerprint``."""

from __future__ import annotations

import os
import sys

import click

DTYPES = ("float64", "float32", "float16", "bfloat16")


@click.command()
@click.argument("targets", nargs=-1, required=True)
@click.option(
    "--dtype", "dtypes", multiple=True, help=f"Restrict to a dtype (repeatable). One of: {', '.join(DTYPES)}."
)
@click.option("--specimens", is_flag=True, help="Include the deliberate policies shipped for demonstration.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, writable=True), help="Write the record (JSON) to a file."
)
@click.option(
    "--markdown",
    "markdown_file",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the tables (Markdown) to a file.",
)
def fingerprint(
    targets: tuple[str, ...], dtypes: tuple[str, ...], specimens: bool, json_file: str | None, markdown_file: str | None
) -> None:
    """Show what softmaxes and attentions do where a formula does not decide.

    TARGETS are those of certify. For each subject and dtype: what an empty row and a row of −∞ give, whether blocked
    keys weigh exactly 0, how the mask is read, what a NaN at a blocked place reaches. All of it is read from
    answers; nothing is judged.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from rich.text import Text

    from ...adapters.errors import TargetError
    from ..commands.common import Failure
    from ..output import OutputError, json_bytes, writable, write_or_explain
    from ..terminal.console import errors, output
    from .report import markdown, print_fingerprint
    from .run import fingerprint as run

    try:
        files = [(file, writable(file, "record")) for file in (json_file, markdown_file)]
        with errors().status("starting") as status:
            record = run(
                targets,
                dtypes=tuple(dict.fromkeys(dtypes)) or DTYPES,
                specimens=specimens,
                listen=lambda what: status.update(Text(what)),  # an id may have brackets
            )
    except (TargetError, ValueError) as problem:
        raise Failure(str(problem)) from None
    except KeyboardInterrupt:
        click.echo("Interrupted before anything was probed.", err=True)
        sys.exit(1)
    console = output()
    print_fingerprint(record, console)
    for (file, path), content in zip(files, (json_bytes(record), markdown(record).encode()), strict=True):
        if file is not None and path is not None:
            try:
                write_or_explain(path, content, file, "record")
            except OutputError as problem:
                raise Failure(str(problem)) from None
            console.print(f"Record: {file}", highlight=False)
    sys.exit(0 if record.complete else 1)
