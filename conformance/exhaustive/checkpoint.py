"""The state of a run in a file, so that an interrupted run goes on where it was."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from ...adapters.registry import versions
from ...adapters.subject import Subject
from .. import __version__
from ..output import json_bytes, write_whole
from .counts import Counts
from .enumeration import Enumeration

FORMAT = "hardmask-checkpoint/1"


class CheckpointError(ValueError):
    """A checkpoint cannot be read, continued or written; the message is one sentence or two with the mend."""


class Progress(msgspec.Struct):
    """How far one sweep has come: ``pieces`` of it are done, in ``seconds``, and what they came to."""

    pieces: int = 0
    seconds: float = 0.0
    counts: Counts = msgspec.field(default_factory=Counts)


class Checkpoint(msgspec.Struct):
    """``identity`` says what is enumerated, and ``sweeps`` how far each sweep is, by its name."""

    format: str
    identity: dict[str, Any]
    sweeps: dict[str, Progress]


def identity_of(
    enumeration: Enumeration, targets: Sequence[str], subjects: Sequence[Subject], contract: str | None, seed: int
) -> dict[str, Any]:
    """What two runs must share for one to continue the other, under the names that a sentence can use."""
    models = [
        f"{s.id} {method} {dtype}: {s.rounding_for(method, dtype)}, {contract or s.contract}"
        for s in subjects
        for dtype in enumeration.dtypes
        for method in s.methods
    ]
    installed = {name: _version(name) for name in ("numpy", "ml_dtypes")}
    return {
        "target": sorted(targets),
        "subjects, rounding models and contracts": models,
        "dtype": list(enumeration.dtypes),
        "part": list(enumeration.parts),
        "fraction": enumeration.fraction,
        "seed": seed,
        "versions": {**installed, **versions(subjects), "python": platform.python_version()},
        "machine": platform.machine(),
        "user's files": _files(targets),
        "hardmask": {"version": __version__, "code": code_fingerprint()},
    }


def code_fingerprint() -> str:
    """A digest of hardmask's own source files: another version must not continue a sweep.

    >>> len(code_fingerprint())
    64
    """
    total = hashlib.sha256()
    for package in ("spec", "adapters", "conformance"):
        found = find_spec(f"hardmask.{package}")
        assert found is not None
        for folder in found.submodule_search_locations or ():
            for path in sorted(Path(folder).rglob("*.py")):
                total.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()


def _files(targets: Sequence[str]) -> dict[str, str]:
    """The digests of the user's files among the targets."""
    names = [t.rpartition(":")[0] for t in targets if ":" in t]
    return {n: hashlib.sha256(Path(n).read_bytes()).hexdigest() for n in names if Path(n).is_file()}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def load(path: str | Path, identity: dict[str, Any]) -> dict[str, Progress]:
    """What a checkpoint holds; empty when there is no such file.

    Raises CheckpointError, with a sentence, for a file that cannot be read, is no checkpoint, or is of another run.
    """
    file = Path(path)
    if not file.exists():
        return {}
    if not file.is_file():
        raise CheckpointError(f"The checkpoint '{path}' is not a regular file. Name another file.")
    try:
        content = file.read_bytes()
    except OSError as problem:
        raise CheckpointError(f"The checkpoint '{path}' cannot be read: {problem.strerror}.") from None
    try:
        found = msgspec.json.decode(content, type=Checkpoint)
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as problem:
        raise CheckpointError(
            f"'{path}' is not a complete checkpoint of hardmask: {problem}. Name another file, or delete this one to "
            "start anew."
        ) from None
    if found.format != FORMAT:
        raise CheckpointError(
            f"'{path}' follows the format '{found.format}'; this version continues '{FORMAT}'. Name another file."
        )
    for name, value in identity.items():
        if found.identity.get(name) != value:
            raise CheckpointError(
                f"The checkpoint '{path}' belongs to another run: its {name} differs from what was asked for. "
                "Name another file, or delete this one to start anew."
            )
    return found.sweeps


def save(path: str | Path, identity: dict[str, Any], sweeps: dict[str, Progress]) -> None:
    """Write a checkpoint, whole or not at all. Raises OSError."""
    write_whole(path, json_bytes(Checkpoint(FORMAT, identity, sweeps)))
