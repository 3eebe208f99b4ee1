"""One self-contained HTML page: no script, no network, nothing but what is in the file."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING

from ..outcome import Outcome
from .view import Page

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MISSING = (
    "An HTML report needs Jinja2, and it is not installed. Install it with: python -m pip install 'hardmask[report]'"
)

BREAK = re.compile(r"(?<=[\[,._\-:])(?=.)")
"""Places at which a long name may be broken."""


def html(outcome: Outcome) -> bytes:
    """The page of a certificate, in UTF-8. Raises ValueError, with a sentence, where Jinja2 is not installed."""
    templates = environment()
    style = re.sub(r"\n\s*", "\n", resources.files(__package__).joinpath("style.css").read_text("utf-8"))
    page = templates.get_template("page.html").render(page=Page(outcome), style=style, style_hash=digest_of(style))
    return re.sub(r"\n\s*\n\s*|\n +", "\n", page).encode()


def digest_of(style: str) -> str:
    """The digest by which the page's policy allows its one style sheet, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


def environment() -> Environment:
    """The templates. Raises ValueError, with a sentence, where Jinja2 is not installed."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise ValueError(MISSING) from None
    templates = Environment(
        loader=PackageLoader("hardmask.conformance.reports.page", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["breakable"] = breakable
    return templates


def breakable(name: str) -> Markup:
    """A name that may be broken behind punctuation.

    >>> breakable("a_b<c")
    Markup('a_<wbr>b&lt;c')
    """
    from markupsafe import Markup, escape

    return Markup("<wbr>").join(escape(part) for part in BREAK.split(name))
