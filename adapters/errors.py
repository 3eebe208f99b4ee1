"""The errors of what is judged, and how to quote what somebody else's code says."""

from __future__ import annotations

from typing import Literal, get_args

LONGEST = 300


class TargetError(ValueError):
    """A target cannot be turned into subjects; the message is one sentence or two: what, why, and the mend."""


class Relayed(Exception):
    """What a subject raised in another process; ``sentence`` is what :func:`said` made of it there."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


Did = Literal[
    "crashed its process",
    "ended its process",
    "did not return",
    "took too much memory",
    "gave no usable answer",
    "could not be called",
    "was not called",
    "could not be loaded",
]
DIDS: tuple[Did, ...] = get_args(Did)
"""What a call did that another process gave no answer to."""


class Lost(Exception):
    """A call that another process gave no answer to. ``did``: what the call did, ``why``: how that was seen.

    >>> Lost("crashed its process", "it was killed by signal 11 (SIGSEGV)").told("x.y.forward", "float32 rows")
    'x.y.forward crashed its process on float32 rows: it was killed by signal 11 (SIGSEGV).'
    """

    def __init__(self, did: Did, why: str) -> None:
        super().__init__(f"the call {did}: {why}")
        self.did, self.why = did, why

    def told(self, name: str, words: str) -> str:
        """The sentence about the call of a method on arrays described in words."""
        return f"{name} {self.did} on {words}: {self.why}."


def said(error: BaseException) -> str:
    """The type and the first line of an exception, for use inside a sentence, without a final full stop.

    Safe for whatever an exception holds: one that cannot be turned into text, control characters, lone surrogates.

    >>> said(ValueError("too \x1b[31mred"))
    'ValueError: too [31mred'
    """
    if isinstance(error, Relayed):
        return error.sentence
    try:
        text = str(error)
    except Exception:
        text = ""
    line = next(iter(text.splitlines()), "").strip().rstrip(".")
    line, name = printable(line), printable(type(error).__name__)
    return f"{name}: {line}" if line else name


def printable(text: str, longest: int = LONGEST) -> str:
    """The beginning of a text, without what could steer a terminal."""
    return "".join(c for c in text[:longest] if c.isprintable())
