"""Files that a command writes: whether they can be is found out before the work, and they are written whole."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec


class OutputError(ValueError):
    """A file cannot be written; the message is a sentence that names it."""


def writable(out: str | Path | None, what: str) -> Path | None:
    """The absolute path of a file to be written, found out before the run: a subject may change the folder.

    None stays None. Raises OutputError where the folder is missing or read-only.

    >>> writable("no/such/folder/certificate.json", "certificate")
    Traceback (most recent call last):
    ...
    hardmask.conformance.output.OutputError: The certificate cannot be written to 'no/such/folder/certificate.json': \
its folder is not there, or is read-only.
    """
    if out is None:
        return None
    path = Path(out).absolute()
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise OutputError(f"The {what} cannot be written to '{out}': its folder is not there, or is read-only.")
    return path


def write_or_explain(path: Path, content: bytes, out: str | Path, what: str) -> None:
    """:func:`write_whole`, with a sentence for a failure. Raises OutputError."""
    try:
        write_whole(path, content)
    except OSError as problem:
        raise OutputError(f"The {what} cannot be written to '{out}': {problem.strerror}.") from None


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file, whole or not at all. Raises OSError.

    A link stays a link. What is no regular file, a device or a pipe, is written to and never replaced.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        target.write_bytes(content)
        return
    target = Path(os.path.realpath(target))
    partial = target.with_name(target.name + ".partial")
    try:
        partial.write_bytes(content)
        os.replace(partial, target)
    except OSError:
        with suppress(OSError):
            partial.unlink()
        raise


def json_bytes(record: Any) -> bytes:
    """A record as indented JSON; infinite numbers and NaN become null.

    >>> json_bytes({"x": float("inf")})
    b'{\\n "x": null\\n}\\n'
    """
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"
