"""Draw docs/figures/report.png: the page of a certificate in a browser. Run ``python docs/figures/report.py``.

Needs the extra ``report``, and Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hardmask.conformance.certification import Request, certify
from hardmask.conformance.reports import Outcome
from hardmask.conformance.reports.page import html

PICTURE = Path(__file__).with_name("report.png")
SUBJECTS = ("softmax-where", "fill-inf", "replace-min", "additive-1e9", "zero-with-flag")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def page() -> bytes:
    """The page of a quick run on some subjects of NumPy."""
    report = certify(Request(tuple(f"numpy.{name}" for name in SUBJECTS), effort="smoke"))
    return html(Outcome(report.certificate, report.exit_code, report.reason))


def draw(browser: str, picture: Path) -> None:
    """Write the picture of the top of the page."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_bytes(page())
        options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
        place = (f"--user-data-dir={folder}/profile", f"--screenshot={picture}", "--window-size=1120,1000")
        subprocess.run([browser, *options, *place, "--hide-scrollbars", file.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        sys.exit(f"The picture needs a browser: install one of {', '.join(BROWSERS)}.")
    draw(found, PICTURE)
