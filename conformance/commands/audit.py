"""The command ``hardmask audit``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from .common import DTYPES, Failure

if TYPE_CHECKING:
    from ..document import Certificate

LEVELS = ("verdict", "policy", "distribution", "bits")


@click.command()
@click.argument("given", nargs=-1, required=True, metavar="OLD.json NEW.json | TARGET...")
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
@click.option(
    "--python",
    "pythons",
    type=click.Path(exists=True, dir_okay=False),
    multiple=True,
    help="Run TARGET in this interpreter: twice, the old one first.",
)
@click.option("--dtype", "dtypes", multiple=True, help=f"Restrict to a dtype. One of: {', '.join(DTYPES)}.")
@click.option("--effort", help="smoke, default or deep.  [default: default]")
@click.option("--seed", type=click.IntRange(0), help="Seed of all random rows.  [default: 0]")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes; default: one per processor.")
@click.option("--out-dir", type=click.Path(file_okay=False), help="Keep both certificates there: old.json, new.json.")
def audit(
    given: tuple[str, ...],
    fail_on: str,
    json_file: str | None,
    markdown_file: str | None,
    pythons: tuple[str, ...],
    **run: Any,
) -> None:
    """Show what changed from one certificate to another.

    OLD and NEW are certificates that certify has written: before and after an upgrade. Or TARGETS, those of certify,
    are run on the same rows in two interpreters, which need no more than the framework and NumPy. Verdicts that flipped
    come first, then policies (what an empty row gives, which kernel ran, the strongest tier that holds), then errors
    whose distribution moved further than chance explains, then outputs whose bits are other ones. What has one cause is
    one entry.

    Exit codes: 0 nothing got worse; 1 something did; 2 the two cannot be compared, or not at the level asked for.
    """
    from ..output import OutputError, json_bytes, writable, write_or_explain
    from ..terminal.console import output
    from ..text import printable
    from ..upgrades import compare, exit_code, record
    from ..upgrades.markdown import markdown
    from ..upgrades.terminal import print_comparison

    try:
        files = [(file, writable(file, "comparison")) for file in (json_file, markdown_file)]
        comparison = compare(*(_in_two(given, pythons, **run) if pythons else _read(given, run)))
    except ValueError as problem:
        raise Failure(printable(str(problem), 600)) from None
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


def _read(given: tuple[str, ...], run: dict[str, Any]) -> tuple[Certificate, Certificate]:
    """Two certificates from two files."""
    from ..certificate import read

    if len(given) != 2:
        raise Failure(
            f"An audit compares two certificates, and {len(given)} {'is' if len(given) == 1 else 'are'} named. To run "
            "targets in two interpreters, name both with --python."
        )
    for name, value in run.items():
        if value is not None and value != ():
            option = {"dtypes": "dtype"}.get(name, name.replace("_", "-"))
            raise Failure(f"--{option} is for a run in two interpreters: name both with --python, or drop it.")
    return read(given[0]), read(given[1])


def _in_two(
    targets: tuple[str, ...],
    pythons: tuple[str, ...],
    dtypes: tuple[str, ...],
    effort: str | None,
    seed: int | None,
    jobs: int | None,
    out_dir: str | None,
) -> tuple[Certificate, Certificate]:
    """Two certificates from two interpreters."""
    if len(pythons) != 2:
        raise Failure("Name two interpreters with --python: the old one, then the new one.")
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as certify does
    from ...adapters.memory import keep_freed_memory
    from ..certification import Request, SuiteFault
    from ..terminal.console import errors
    from ..terminal.progress import ProgressBar
    from ..upgrades.interpreters import in_both, prepared
    from .certify import executor

    keep_freed_memory()
    effort, judged = effort or "default", tuple(dict.fromkeys(dtypes)) or DTYPES
    request = Request(targets, dtypes=judged, effort=effort, seed=seed or 0)
    folder = prepared(out_dir)
    try:
        with ProgressBar(errors()) as bar:
            return in_both(
                request,
                (pythons[0], pythons[1]),
                executor=lambda: executor(jobs, effort, judged),
                listen=bar,
                folder=folder,
            )
    except SuiteFault as fault:
        click.echo(str(fault), err=True)
        sys.exit(3)
    except KeyboardInterrupt:
        click.echo("Interrupted: nothing is compared.", err=True)
        sys.exit(1)
