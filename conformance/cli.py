"""The command line. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

import click

from . import __version__
from .commands.audit import audit
from .commands.badge import badge
from .commands.certify import certify
from .commands.common import DTYPES, Failure
from .commands.replay import replay
from .commands.report import report
from .commands.repro import repro
from .commands.schema import schema
from .commands.sign import sign
from .commands.verify import verify
from .fingerprint.command import fingerprint
from .metamorphic.command import metamorphic


class Guarded(click.Group):
    """A group whose commands never end in a traceback: a fault of hardmask itself is a sentence and exit code 3."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted: nothing is certified.", err=True)
            ctx.exit(1)
        except Exception as fault:
            if isinstance(fault, OSError) and fault.errno in (errno.ENOSPC, errno.EIO):
                # What the stream still holds would fail once more, at exit.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise Failure(f"The output cannot be written: {fault.strerror}.") from None
            import traceback

            frame = traceback.extract_tb(fault.__traceback__)[-1]
            where = f"{frame.name}, line {frame.lineno} of {frame.filename.rpartition('/')[2]}"
            click.echo(
                f"hardmask itself failed: {type(fault).__name__}: {fault} (in {where}). Nothing is certified. "
                "Please report this as a fault of hardmask.",
                err=True,
            )
            ctx.exit(3)


@click.group(cls=Guarded, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="hardmask")
def main() -> None:
    """Certify masked softmax against the theorems that TorchLean proves about it.

    Exit codes: 0 every subject keeps what it declares; 1 one does not, or the run was interrupted; 2 the request was
    wrong; 3 hardmask contradicts itself.
    """


@main.command("list")
def list_command() -> None:
    """Show adapters, versions and subjects."""
    from rich.table import Table
    from rich.text import Text

    from ..adapters.registry import available
    from .terminal.console import output

    console = output()
    for adapter in available():
        version = adapter.version or "not installed"
        console.print(Text(adapter.adapter, style="bold"), version, highlight=False)
        if adapter.problem:
            console.print(f"  {adapter.problem}", soft_wrap=True, highlight=False, markup=False)
        table = Table(box=None, pad_edge=True, show_header=False)
        for s in adapter.subjects:
            table.add_row(Text(s.id), s.role, s.contract, "+".join(s.methods), " ".join(s.dtypes))
        if adapter.subjects:
            console.print(table)
        opt_in = {s.opt_in: [t.id for t in adapter.subjects if t.opt_in == s.opt_in] for s in adapter.subjects}
        for reason, ids in opt_in.items():
            if reason:
                line = f"  Only when named, because {reason}: {', '.join(ids)}"
                console.print(line, soft_wrap=True, highlight=False, markup=False)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--max-n", type=click.IntRange(1, 10), default=6, show_default=True, help="Enumerate all masks up to n.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def prove(names: tuple[str, ...], max_n: int, as_json: bool) -> None:
    """Prove the declarations themselves.

    Symbolically, and in arbitrary precision. NAME is a Lean name, its last component, or a glob; without one, all
    declarations are proved. Every declaration comes with deliberate mistakes that both legs must reject.
    """
    import json

    from .prove import exit_code
    from .prove import prove as run
    from .prove_report import proof_data, proof_notes, proof_table

    try:
        results = run(names, max_n=max_n)
    except ValueError as problem:
        raise Failure(str(problem)) from None
    except KeyboardInterrupt:
        click.echo("Interrupted: nothing was proved.", err=True)
        sys.exit(1)
    if as_json:
        click.echo(json.dumps(proof_data(results), indent=1, allow_nan=False))
    else:
        from .terminal.console import output

        console = output()
        console.print(proof_table(results))
        for note in proof_notes(results):
            console.print(note, soft_wrap=True, highlight=False, markup=False)
    sys.exit(exit_code(results))


@main.command()
@click.argument("targets", nargs=-1, required=True)
@click.option("--dtype", "dtypes", multiple=True, help="Probe this dtype (repeatable).  [default: float32]")
@click.option("--fraction", type=float, default=1.0, show_default=True, help="Probe this share of all arguments.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the sample.")
@click.option(
    "--json", "path", type=click.Path(dir_okay=False, writable=True), help="Write the record (JSON) to a file."
)
def calibrate(targets: tuple[str, ...], dtypes: tuple[str, ...], fraction: float, seed: int, path: str | None) -> None:
    """Measure the exponential inside a softmax.

    Compares the exp of TARGETS (those of certify), as their softmax uses it, with the tier that they declare. Exit
    code 1 when a declaration is too tight, or a subject cannot be calibrated. Changes no verdict of certify.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from .calibrate.command import run

    run(targets, tuple(dict.fromkeys(dtypes)) or ("float32",), fraction, seed, path)


@main.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--dtype", "dtypes", multiple=True, help=f"Restrict to a dtype (repeatable). One of: {', '.join(DTYPES)}."
)
@click.option("--effort", default="default", show_default=True, help="smoke, default or deep.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of all random rows.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes; default: one per processor.")
@click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, writable=True), help="Write the result (JSON) to a file."
)
@click.option(
    "--markdown",
    "markdown_file",
    type=click.Path(dir_okay=False, writable=True),
    help="Write the tables (Markdown) to a file.",
)
def selftest(**request: Any) -> None:
    """Measure hardmask on itself.

    Every wrong softmax that it knows must be caught, every correct one must pass. NAME is the name of a mutant or of a
    correct variant, or a glob; all of them by default. Prints the kill table: the theorems that caught each mutant in
    each dtype. Exit code 3 when a mutant survives that is not listed with a reason, when a listed survivor is caught,
    or when a correct variant does not pass.
    """
    from .selftest.command import command

    try:
        code = command(**request)
    except ValueError as problem:
        raise Failure(str(problem)) from None
    sys.exit(code)


main.add_command(audit)
main.add_command(badge)
main.add_command(certify)
main.add_command(metamorphic)
main.add_command(fingerprint)
main.add_command(report)
main.add_command(replay)
main.add_command(repro)
main.add_command(schema)
main.add_command(sign)
main.add_command(verify)

if __name__ == "__main__":
    main()
