"""Judge the references and ``jax.nn.softmax(where=)`` on at least ten million entries per theorem and format.

Prints, for each format, a table of theorems and subjects: entries judged, the largest share of an error budget that was
used, the verdict. Exits 1 when a subject fails, or when a theorem was judged on fewer entries than asked for. Takes
about half an hour on one core; one line per batch tells on standard error how far it is.

    OMP_NUM_THREADS=1 python benchmarks/deep.py
    python benchmarks/deep.py --targets numpy.softmax-where --dtypes float32 --rounds 2 --entries 0
"""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hardmask.conformance.certificate import write
from hardmask.conformance.certification import Report, Request, certify
from hardmask.conformance.finding import Finding, combine
from hardmask.conformance.promises import PROMISES
from hardmask.conformance.runner import CaseStarted, Event
from hardmask.conformance.terminal.matrix import short_name

TARGETS = ("numpy.softmax-where", "torch.softmax-where", "jax.double-where[jit]", "jax.softmax-where[jit]")
DTYPES = ("float32", "bfloat16", "float64")
ROUNDS = 20
"""Five turns through the four lengths: the rarest theorem (truncation) then meets 1.1·10⁷ entries."""


def main() -> int:
    """Run the request of the command line, format by format, and return the exit code."""
    options = _options()
    worst = 0
    for dtype in options.dtypes:
        started = time.time()
        request = Request(
            tuple(options.targets), dtypes=(dtype,), effort="deep", seed=options.seed, rounds=options.rounds
        )
        report = certify(request, listen=_progress)
        if options.out:
            write(report.certificate, f"{options.out}-{dtype}.json")
        short = _print(report, dtype, options.entries)
        print(f"{dtype}: {report.reason} ({time.time() - started:.0f} s)\n", flush=True)
        worst = max(worst, report.exit_code, int(short))
    return worst


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="The deep run: ten million entries per theorem and format.")
    parser.add_argument("--targets", nargs="+", default=TARGETS)
    parser.add_argument("--dtypes", nargs="+", default=DTYPES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--entries", type=int, default=10**7, help="entries that each theorem must meet")
    parser.add_argument("--out", default="", help="also write certificates, to this path with -DTYPE.json appended")
    return parser.parse_args()


def _progress(event: Event) -> None:
    if isinstance(event, CaseStarted):
        print(f"{event.index + 1}/{event.total} {event.case.key}", file=sys.stderr, flush=True)


def _print(report: Report, dtype: str, wanted: int) -> bool:
    """Print one table and return whether a theorem met fewer entries than wanted."""
    ids = [s.id for s in report.certificate.subjects]
    optional = {p.name for p in PROMISES.values()}
    title = f"{dtype}: entries judged, and the largest share of a budget used"
    table = Table("theorem", "entries", title=title)
    for i in ids:
        table.add_column(Text(i))  # as text: rich would take the brackets of a path for markup
    short = False
    for name in report.certificate.declarations:
        cells: dict[str, list[Finding]] = {i: [] for i in ids}
        for f in report.certificate.findings:
            if f.declaration == name:
                cells[f.subject].append(f)
        entries = min(sum(f.elements for f in found) for found in cells.values())
        few = entries < wanted and name not in optional
        short |= few
        table.add_row(short_name(name), f"{entries:,}" + (" (too few)" if few else ""), *(_cell(cells[i]) for i in ids))
    Console(width=160).print(table)
    for f in report.certificate.findings:
        if f.verdict in ("fail", "error"):
            what = f"{f.diagnosis}; {f.failed} of {f.checked} rows, {f.witness}"
            print(f"  {f.subject} {f.declaration} {f.family}: {what}")
    return short


def _cell(found: list[Finding]) -> str:
    largest = max((f.ratio for f in found if f.ratio is not None), default=0.0)
    return f"{combine(f.verdict for f in found)} {largest:.4f}"


if __name__ == "__main__":
    sys.exit(main())
