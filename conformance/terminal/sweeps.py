"""The table of exhaustive sweeps."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from ..document import Certificate, SweepRecord
from .matrix import SHORT


def sweep_table(certificate: Certificate) -> Table:
    """One line per sweep: what was enumerated, the violations, and how well the outputs are rounded."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("subject", overflow="fold")
    table.add_column("dtype")
    table.add_column("rows of")
    for name in ("rows", "violations", "not correctly rounded", "largest distance", "seconds"):
        table.add_column(name, justify="right")
    seconds = certificate.times.get("sweeps", {})
    for s in certificate.sweeps:
        spent = seconds.get(f"{s.subject} {s.dtype} {s.kind}")
        table.add_row(
            # As text: rich would take the brackets of a path for markup and drop them.
            Text(s.subject),
            SHORT[s.dtype],
            Text(s.kind),
            f"{s.rows:,}",
            Text(f"{s.violations:,}", style="bold red" if s.violations else "green"),
            _rounded(s),
            "–" if s.largest_code_distance is None else str(max(s.largest_code_distance)),
            "" if spent is None else f"{spent:.1f}",
        )
    return table


def _rounded(s: SweepRecord) -> str:
    if s.not_correctly_rounded is None or s.share_not_correctly_rounded is None:
        return "–"
    return f"{sum(s.not_correctly_rounded):,} ({100.0 * s.share_not_correctly_rounded:.4f} %)"


def sweep_notes(certificate: Certificate) -> list[str]:
    """Which first scores were taken, for each dtype, and which sweeps are not complete."""
    lines = [f"{dtype}: {words}." for dtype, words in dict.fromkeys((s.dtype, s.sample) for s in certificate.sweeps)]
    for s in certificate.sweeps:
        if not s.complete or s.note:
            state = "" if s.complete else f"{s.first_scores:,} of {s.sampled:,} first scores were enumerated. "
            lines.append(f"{s.subject} {s.dtype} {s.kind}: {state}{s.note}".rstrip())
    return lines
