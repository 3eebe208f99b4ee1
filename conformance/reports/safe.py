"""Text that subjects and files bring along, made safe for documents."""

from __future__ import annotations

from urllib.parse import urlsplit

LONGEST = 2000
"""Characters of one text that somebody else wrote, at most."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def safe(text: str, longest: int = LONGEST) -> str:
    """The text with every character that does not print replaced; line breaks and long texts are kept within bounds.

    What is replaced are control characters, which XML does not allow, lone surrogates, which no encoding allows, and
    marks that reverse the direction of writing, which make a name look like another one.

    >>> safe("torch\\x00\\x1b[31m\\u202eevil")
    'torch��[31m�evil'
    """
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c == "\n" else " " if c == "\t" else REPLACEMENT for c in cut)


def line(text: str, longest: int = LONGEST) -> str:
    """:func:`safe` on one line.

    >>> line("two\\nlines")
    'two lines'
    """
    return safe(" ".join(text.split()), longest)


def web_link(text: str) -> str:
    """The text where it is the address of a web page, and nothing else: only such texts become links.

    >>> web_link("https://example.org/issue/1")
    'https://example.org/issue/1'
    >>> web_link("javascript:alert(1)"), web_link("https://a b")
    ('', '')
    """
    if not text.isascii() or not text.isprintable() or any(c in " \"'<>\\`" for c in text):
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("https", "http") and parts.hostname else ""
