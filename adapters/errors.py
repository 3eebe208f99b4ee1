"""The error of a target that cannot be judged."""

from __future__ import annotations


class TargetError(ValueError):
    """A target cannot be turned into subjects; the message is one sentence or two: what, why, and the mend."""


def said(error: BaseException) -> str:
    """The type and the first line of an exception, for use inside a sentence, without a final full stop."""
    line = next(iter(str(error).splitlines()), "").strip().rstrip(".")
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
