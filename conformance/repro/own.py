"""The recipe of a user's own function: the file that defines it is run, and the function taken from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...adapters.recipe import Recipe
from ...adapters.registry import Anything
from ...adapters.subject import Subject


def recipe_from_target(subject: Anything, targets: Sequence[str]) -> Recipe | None:
    """A recipe that runs ``path/file.py`` and takes ``object`` from it, for a target of that form that is a plain
    function; None for anything else, which cannot be called without hardmask."""
    for target in targets:
        where, _, name = target.rpartition(":")
        if isinstance(subject, Subject) and where.endswith(".py") and subject.id == f"{Path(where).stem}.{name}":
            source = f'import runpy\n\nforward = runpy.run_path({str(Path(where).resolve())!r})["{name}"]'
            return Recipe("numpy", source)
    return None
