"""What the subjects of a run run on, in this process or in workers."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..adapters.builds import builds
from ..adapters.registry import Anything, reported, versions
from ..adapters.remote import InWorkers, Source


@dataclass(frozen=True)
class Frameworks:
    """``versions`` by distribution, ``builds`` by module, the version of the ``python`` that runs them, and whether
    that is this process."""

    versions: dict[str, str]
    builds: dict[str, dict[str, str]]
    python: str
    in_process: bool

    @classmethod
    def of(cls, subjects: Sequence[Anything], source: Source) -> Frameworks:
        """Those of the subjects, which were resolved and not called yet: a call may load more."""
        if isinstance(source, InWorkers):
            return cls(source.versions, source.builds, source.python, False)
        return cls(versions(subjects), builds(reported(subjects)), platform.python_version(), True)

    @property
    def record(self) -> dict[str, Any]:
        """What the environment of a certificate says of them beside their versions."""
        return {"framework_python": self.python, "builds": self.builds}
