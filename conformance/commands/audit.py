"""The command ``hardmask audit``."""

from __future__ import annotations

import sys

import click

from .common import Failure

LEVELS = ("verdict", "policy", "distribution", "bits")


@click.command()
@click.argument("old", type=click.Path(dir_okay=False))
@click.argument("new", type=click.Path(dir_okay=False))
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    default="policy",
    show_default=True,
    help="Fail on a change at this level, or at one before it.",
)
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, writable=True), help="Write the record (JSON) to a file."
)
@click.option(
    "--markdown",
    "markdown_file",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the page (Markdown) to a file.",
)
def audit(old: str, new: str, fail_on: str, json_file: str | None, markdown_file: str | None) -> None:
    """Show what changed from one certificate to another.

    OLD and NEW are certificates that certify has written: before and after an upgrade. Verdicts that flipped come
    first, then policies (what an empty row gives, which kernel ran, the strongest tier that holds), then errors whose
    distribution moved further than chance explains, then outputs whose bits are other ones. What has one cause is one
    entry.

    Exit codes: 0 nothing got worse; 1 something did; 2 the two cannot be compared, or not at the level asked for.
    """
    from ..certificate import read
    from ..output import OutputError, json_bytes, writable, write_or_explain
    from ..terminal.console import output
    from ..text import printable
    from ..upgrades import IncomparableError, compare, exit_code, record
    from ..upgrades.markdown import markdown
    from ..upgrades.terminal import print_comparison

    try:
        files = [(file, writable(file, "comparison")) for file in (json_file, markdown_file)]
        comparison = compare(read(old), read(new))
    except (IncomparableError, ValueError) as problem:
        raise Failure(str(problem)) from None
    level = next(name for name in record.LEVELS if name == fail_on)
    code = exit_code(comparison, level)
    console = output()
    print_comparison(comparison, console, fail_on=level, code=code)
    pages = (json_bytes(comparison), markdown(comparison, level).encode())
    for (file, path), content in zip(files, pages, strict=True):
        if file is not None and path is not None:
            try:
                write_or_explain(path, content, file, "comparison")
            except OutputError as problem:
                raise Failure(str(problem)) from None
            console.print(f"Comparison: {printable(file)}", highlight=False, markup=False)
    sys.exit(code)
