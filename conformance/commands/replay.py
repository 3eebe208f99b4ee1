"""The command ``hardmask replay``."""

from __future__ import annotations

import sys
from typing import Any

import click

from .common import Failure
from .worker_options import worker_options


@click.command()
@click.argument("certificate", type=click.Path())
@click.argument("id", required=False)
@click.option("--all", "every", is_flag=True, help="Run every failing case again.")
@worker_options
def replay(certificate: str, id: str | None, every: bool, **where: Any) -> None:
    """Run one case of a certificate again.

    ID is the id of a finding, or the beginning of one; without it the failing findings are listed. The case is put to
    the same check, and is fixed, still failing, or different: another diagnosis, or other returned bits.

    Exit codes: 0 fixed, or it passes; 1 still failing, or different; 2 it cannot be run again.
    """
    from ...adapters.errors import TargetError
    from ...adapters.remote import close_workers, workers
    from ..certificate import read
    from ..replay import chosen, failing
    from ..replay import replay as run
    from ..replay.terminal import print_again, print_list, print_several
    from ..suite_fault import SuiteFault
    from ..terminal.console import output

    if id is not None and every:
        raise Failure("Name a finding, or ask for --all of them: not both.")
    console = output()
    try:
        options = workers(**where)
        found = read(certificate)
        if id is None and not every:
            print_list(found, certificate, console)
            return
        if id is not None:
            finding = chosen(found, id)
            again = run(found, finding, options)
            print_again(again, finding, found, console)
            sys.exit(again.exit_code)
        sys.exit(print_several(found, failing(found), console, options))
    except (TargetError, ValueError) as problem:
        raise Failure(str(problem)) from None
    except SuiteFault as fault:
        click.echo(str(fault), err=True)
        sys.exit(3)
    finally:
        close_workers()
