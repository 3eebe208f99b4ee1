"""The certificate: canonical JSON with a digest, written by one function and read strictly by another."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from .document import Certificate
from .output import write_whole
from .strict_json import content_of, decoded
from .text import printable

SCHEMA = "hardmask-certificate/2"


def digest_of(certificate: Certificate) -> str:
    """SHA-256 over the canonical form of everything but the digest itself and the times."""
    return _digest(fields(certificate))


def _digest(content: dict[str, Any]) -> str:
    covered = {name: value for name, value in content.items() if name not in ("digest", "times")}
    return "sha256:" + hashlib.sha256(canonical(covered)).hexdigest()


def canonical(content: dict[str, Any]) -> bytes:
    """The canonical form: JSON in ASCII, keys sorted, no white space, numbers as Python writes them, no value that JSON
    lacks.

    >>> canonical({"b": 1.5e-8, "a": None})
    b'{"a":null,"b":1.5e-08}'
    """
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def sealed(certificate: Certificate) -> Certificate:
    """The certificate with its digest filled in."""
    return msgspec.structs.replace(certificate, digest=digest_of(certificate))


def write(certificate: Certificate, path: str | Path) -> None:
    """Write a certificate, whole or not at all. Raises OSError."""
    text = json.dumps(fields(certificate), sort_keys=True, indent=1, allow_nan=False) + "\n"
    write_whole(path, text.encode("ascii"))


def read(path: str | Path) -> Certificate:
    """Read a certificate strictly, and check its schema and digest.

    Raises ValueError with one printable sentence that names the file, for one that is missing, truncated, edited,
    ambiguous (a name twice in one object), larger than :data:`~hardmask.conformance.strict_json.LARGEST`, or something
    else altogether. Nothing is evaluated.
    """
    return parsed(content_of(path, "certificate"), path)


def parsed(content: bytes, path: str | Path) -> Certificate:
    """:func:`read` for the content of a file that was read already; ``path`` names it in messages."""
    name = printable(str(path))
    try:
        raw = decoded(content)
        certificate = msgspec.json.decode(content, type=Certificate)
        digest = _digest(raw)
    except (ValueError, msgspec.DecodeError, RecursionError) as problem:
        # A truncated file may be cut within a number that is then another one: the digest would tell.
        why = printable(str(problem)).rstrip(".") or "it is nested too deeply"
        raise ValueError(f"'{name}' is not a complete hardmask certificate: {why}.") from None
    if certificate.schema != SCHEMA:
        other = printable(certificate.schema, 80)
        raise ValueError(f"'{name}' follows the schema '{other}'; this version reads '{SCHEMA}'.")
    if certificate.digest != digest:
        raise ValueError(f"'{name}' was changed after it was written: its digest does not match its content.")
    return certificate


def fields(certificate: Certificate) -> dict[str, Any]:
    """The certificate as plain dictionaries and lists."""
    built: dict[str, Any] = msgspec.to_builtins(certificate)
    return built
