"""The command ``hardmask report``."""

from __future__ import annotations

import click

from .common import Failure
from .report_options import FORMATS, report_options


@click.command()
@click.argument("certificate", type=click.Path())
@report_options
def report(certificate: str, **files: str | None) -> None:
    """Write reports of a certificate.

    CERTIFICATE is a file that certify has written with --out. Runs nothing, and needs no framework. Exit code 0 when
    the reports are written, whatever they say.
    """
    from ..certificate import read
    from ..reports import outcome_of
    from ..reports.files import wanted
    from ..terminal.console import output

    if not any(files.values()):
        raise Failure(f"Name a report to write: {', '.join('--' + name for name in FORMATS)}.")
    try:
        reports = wanted(**files)
        outcome = outcome_of(read(certificate), certificate)
        said = [one.write(outcome) for one in reports]
    except ValueError as problem:
        raise Failure(str(problem)) from None
    if not any(one.path is None for one in reports):
        for sentence in said:
            output().print(sentence, highlight=False, soft_wrap=True)
