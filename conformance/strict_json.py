"""JSON read strictly: what could be understood in two ways is refused, and so is what no honest writer writes."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from .text import printable

LARGEST = 256 * 2**20
"""Bytes of a file that is read, at most. The certificate of a whole framework has a fifth of that."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class FileProblem(ValueError):
    """A file cannot be read, or not as what it should be; the message is a sentence that names it."""


def content_of(path: str | Path, what: str) -> bytes:
    """The content of a regular file of at most :data:`LARGEST` bytes; ``what`` names what it should be.

    Raises FileProblem for everything else: a folder, a pipe, a device, a file that is missing, or larger.
    """
    name = printable(str(path))
    try:
        # A pipe that nobody writes to would block.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise FileProblem(f"The {what} '{name}' cannot be read: Is a directory.")
            if not stat.S_ISREG(mode):
                raise FileProblem(f"The {what} '{name}' cannot be read: it is no regular file.")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(LARGEST + 1)
        finally:
            os.close(descriptor)
    except OSError as problem:
        raise FileProblem(f"The {what} '{name}' cannot be read: {problem.strerror}.") from None
    except ValueError as problem:
        if isinstance(problem, FileProblem):
            raise
        raise FileProblem(f"The {what} '{name}' cannot be read: no file can have this name.") from None
    if len(content) > LARGEST:
        raise FileProblem(f"The {what} '{name}' cannot be read: it has more than {LARGEST // 2**20} MiB.")
    return content


def decoded(content: bytes) -> Any:
    """JSON text in ASCII as dictionaries, lists, strings, numbers.

    Raises ValueError, whose message says in a few words what is wrong, for a name that occurs twice in one object, a
    number that is none, lone surrogates, another encoding, text behind the end, and everything else that is not JSON.

    >>> decoded(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the name 'a' occurs twice in one object
    """
    if not content.strip():
        raise ValueError("it is empty")
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as problem:
        raise ValueError(f"byte {problem.start} is not ASCII") from None
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except json.JSONDecodeError as problem:
        raise ValueError(f"{problem.msg} at line {problem.lineno}, column {problem.colno}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("it holds half of a surrogate pair") from None
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name '{printable(twice, 80)}' occurs twice in one object")
    return made


def _no_number(constant: str) -> Any:
    raise ValueError(f"it holds {constant}, which JSON does not have")
