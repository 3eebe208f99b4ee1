"""The command ``hardmask certify``."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from .common import DTYPES, Failure
from .report_options import report_options
from .worker_options import worker_options


@click.command()
@click.argument("targets", nargs=-1)
@click.option("--contract", help="Judge empty rows by this contract instead of the declared ones.")
@click.option("--require", multiple=True, help="Also fail on: zero, complete, isolation, allowed-nan-visible.")
@click.option("--specimens", is_flag=True, help="Include the deliberate policies shipped for demonstration.")
@click.option(
    "--dtype", "dtypes", multiple=True, help=f"Restrict to a dtype (repeatable). One of: {', '.join(DTYPES)}."
)
@click.option("--effort", help="smoke, default or deep.  [default: default; none with --exhaustive]")
@click.option("--rounds", type=click.IntRange(1), help="Repeat the batches this many times, with fresh rows.")
@click.option("--seed", type=click.IntRange(0), help="Seed of all random rows.  [default: 0]")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes; default: one per processor.")
@click.option("--exhaustive", multiple=True, help="Enumerate short rows: float16 or bfloat16 (repeatable).")
@click.option("--part", "parts", multiple=True, help="Only: pairs, blocked, empty, short, vjp.  [default: all]")
@click.option("--fraction", type=float, help="Enumerate a seeded sample of this fraction of the first scores.")
@click.option("--checkpoint", type=click.Path(dir_okay=False), help="Save the sweep there, and go on from it.")
@worker_options
@click.option("--out", type=click.Path(dir_okay=False, writable=True), help="Write the certificate (JSON) to a file.")
@click.option("--config", help="Read this configuration.  [default: the nearest hardmask.toml or pyproject.toml]")
@click.option("--no-config", is_flag=True, help="Read no configuration.")
@click.option("--write-deviations", "draft", type=click.Path(), help="Draft a configuration with what fails now.")
@report_options
def certify(
    targets: tuple[str, ...],
    contract: str | None,
    require: tuple[str, ...],
    specimens: bool,
    dtypes: tuple[str, ...],
    effort: str | None,
    rounds: int | None,
    seed: int | None,
    jobs: int | None,
    exhaustive: tuple[str, ...],
    parts: tuple[str, ...],
    fraction: float | None,
    checkpoint: str | None,
    in_process: bool,
    python: str | None,
    call_timeout: float,
    subject_timeout: float,
    memory_limit: int | None,
    out: str | None,
    config: str | None,
    no_config: bool,
    draft: str | None,
    **files: str | None,
) -> None:
    """Judge masked softmaxes and write a certificate.

    TARGETS are adapters (numpy, torch, jax), subject ids or globs, file.py:object, or module:object; without any, those
    of the configuration. A failure that the configuration records as a known deviation lets the exit code be 0.
    """
    # Read when a framework loads its OpenMP: idle threads that spin would take the core on which the oracle works.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from ..gate.asked import asked

    try:
        ask = asked(
            targets, file=config, search=not no_config, contract=contract, require=require, specimens=specimens,
            dtypes=dtypes, effort=effort, rounds=rounds, seed=seed,
            narrowed=bool(exhaustive),
        )  # fmt: skip
    except ValueError as problem:
        raise Failure(str(problem)) from None
    judged = ask.values["dtypes"]
    sampled = not exhaustive or effort is not None
    # The workers load what they need while this process does.
    with executor(jobs, ask.values["effort"], judged if sampled else ()) as pool:
        from ...adapters.errors import TargetError
        from ...adapters.memory import keep_freed_memory
        from ..certificate import write
        from ..certification import Request, SuiteFault
        from ..certification import certify as run
        from ..environment import processors
        from ..exhaustive.checkpoint import CheckpointError
        from ..exhaustive.options import enumeration_of
        from ..gate.draft import unwritten, write_draft
        from ..output import writable
        from ..reports.files import wanted
        from ..reports.outcome import Outcome
        from ..terminal.console import errors, output
        from ..terminal.progress import ProgressBar
        from ..terminal.report import print_report

        keep_freed_memory()
        try:
            enumeration = enumeration_of(exhaustive, parts, fraction, checkpoint, jobs or processors(), effort is None)
            ask.checked()
            request = Request(
                **ask.values,
                enumeration=enumeration,
                in_process=in_process,
                python=python,
                call_timeout=call_timeout,
                subject_timeout=subject_timeout,
                memory_limit=memory_limit,
            )
            path = writable(out, "certificate")
            reports = wanted(**files)
            draft_path = unwritten(draft)
        except ValueError as problem:
            raise Failure(str(problem)) from None
        try:
            with ProgressBar(errors()) as bar:
                report = run(request, listen=bar, executor=pool, gate=ask.gate)
        except (TargetError, CheckpointError) as problem:
            raise Failure(str(problem)) from None
        except SuiteFault as fault:
            click.echo(str(fault), err=True)
            sys.exit(3)
        except KeyboardInterrupt:
            click.echo("Interrupted before anything was judged.", err=True)
            sys.exit(1)
        console = output()
        if ask.configuration is not None:
            console.print(f"Configuration: {ask.configuration.name}", soft_wrap=True, highlight=False)
            console.print()
        print_report(report, console)
        if path is not None:
            try:
                write(report.certificate, path)
            except OSError as problem:
                raise Failure(f"The certificate cannot be written to '{out}': {problem.strerror}.") from None
            console.print(f"Certificate: {out} ({report.certificate.digest[:23]}…)", highlight=False)
        outcome = Outcome(report.certificate, report.exit_code, report.reason, out or "certificate.json")
        for one in reports:
            try:
                console.print(one.write(outcome), highlight=False, soft_wrap=True)
            except ValueError as problem:
                raise Failure(str(problem)) from None
        if draft_path is not None:
            try:
                drafted = write_draft(report.certificate, ask.rules, draft_path)
                console.print(drafted, soft_wrap=True, highlight=False)
            except ValueError as problem:
                raise Failure(str(problem)) from None
        sys.exit(report.exit_code)


def executor(jobs: int | None, effort: str, dtypes: tuple[str, ...]) -> Any:
    """Worker processes, or nothing where starting them takes longer than they save."""
    from contextlib import nullcontext

    from ..environment import processors

    if jobs is None:
        jobs = 1 if effort == "smoke" else min(processors(), len(set(dtypes)))
    if jobs == 1 or not dtypes:
        return nullcontext()
    from ..pool import PoolByDtype

    return PoolByDtype(jobs)
