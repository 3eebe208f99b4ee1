"""Write the table of full sweeps in exhaustive.md from certificates.

    python docs/generate_exhaustive.py CERTIFICATE.json ...

Each certificate is one that ``hardmask certify --exhaustive`` wrote. Only sweeps over all first scores are shown.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from hardmask.conformance.certificate import read
from hardmask.conformance.document import Certificate

PAGE = Path(__file__).with_name("exhaustive.md")
MARK = "<!-- full sweeps -->"
HEAD = "| subject | dtype | rows of | rows | violations | not correctly rounded | largest distance | seconds |"


def table(certificates: Sequence[Certificate]) -> str:
    """The table in Markdown, and a line with the versions and the processors of the runs."""
    lines = [HEAD, "|---|---|---|--:|--:|--:|--:|--:|"]
    versions: dict[str, str] = {}
    processors = set()
    for certificate in certificates:
        environment = certificate.environment
        versions |= environment["frameworks"]
        processors.add(f"{environment['processors']} processors, {environment['system']} {environment['machine']}")
        for s in certificate.sweeps:
            if not s.complete or s.sampled != s.of:
                continue
            rounded = distance = "–"
            if s.not_correctly_rounded is not None and s.share_not_correctly_rounded is not None:
                rounded = f"{sum(s.not_correctly_rounded):,} ({100.0 * s.share_not_correctly_rounded:.4f} %)"
            if s.largest_code_distance is not None:
                distance = str(max(s.largest_code_distance))
            seconds = certificate.times["sweeps"][f"{s.subject} {s.dtype} {s.kind}"]
            cells = s.dtype, s.kind, f"{s.rows:,}", f"{s.violations:,}", rounded, distance, f"{seconds:.0f}"
            lines.append(f"| `{s.subject}` | {' | '.join(cells)} |")
    names = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return "\n".join([*lines, "", f"With {names}; {'; '.join(sorted(processors))}."])


def write(certificates: Sequence[Certificate], page: Path = PAGE) -> None:
    """Put the table between the two marks of the page."""
    text = page.read_text(encoding="utf-8")
    made = f"{MARK}\n{table(certificates)}\n{MARK}"
    page.write_text(re.sub(f"{MARK}.*?{MARK}", lambda _: made, text, flags=re.S), encoding="utf-8")


if __name__ == "__main__":
    write([read(path) for path in sys.argv[1:]])
