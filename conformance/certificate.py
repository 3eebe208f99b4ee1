"""The certificate: canonical JSON with a digest, written by one function and read strictly by another."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from .document import Certificate
from .output import write_whole

SCHEMA = "hardmask-certificate/2"


def digest_of(certificate: Certificate) -> str:
    """SHA-256 over the canonical form of everything but the digest itself and the times."""
    covered = {name: value for name, value in fields(certificate).items() if name not in ("digest", "times")}
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
    """Read a certificate and check its schema and digest.

    Raises ValueError with one sentence for a file that is missing, truncated, edited, or something else altogether.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as problem:
        raise ValueError(f"The certificate '{path}' cannot be read: {problem.strerror}.") from None
    try:
        certificate = msgspec.json.decode(content, type=Certificate)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as problem:
        raise ValueError(f"'{path}' is not a complete hardmask certificate: {problem}.") from None
    if certificate.schema != SCHEMA:
        raise ValueError(f"'{path}' follows the schema '{certificate.schema}'; this version reads '{SCHEMA}'.")
    if certificate.digest != digest_of(certificate):
        raise ValueError(f"'{path}' was changed after it was written: its digest does not match its content.")
    return certificate


def fields(certificate: Certificate) -> dict[str, Any]:
    """The certificate as plain dictionaries and lists."""
    built: dict[str, Any] = msgspec.to_builtins(certificate)
    return built
