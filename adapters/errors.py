"""The error of a target that cannot be judged, and how to quote what somebody else's code says."""

from __future__ import annotations

LONGEST = 300


class TargetError(ValueError):
    """A target cannot be turned into subjects; the message is one sentence or two: what, why, and the mend."""


def said(error: BaseException) -> str:
    """The type and the first line of an exception, for use inside a sentence, without a final full stop.

    Safe for whatever an exception holds: one that cannot be turned into text, control characters, lone surrogates.

    >>> said(ValueError("too \x1b[31mred"))
    'ValueError: too [31mred'
    """
    try:
        text = str(error)
    except Exception:
        text = ""
    line = next(iter(text.splitlines()), "").strip().rstrip(".")
    line = "".join(c for c in line[:LONGEST] if c.isprintable())
    name = "".join(c for c in type(error).__name__ if c.isprintable())
    return f"{name}: {line}" if line else name
