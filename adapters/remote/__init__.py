"""Subjects that run in worker processes: how these are started, spoken to, watched and started again.

A run names its subjects by a :class:`~hardmask.adapters.remote.source.Source`: in this process, or in workers. Workers
need a POSIX system (:data:`POSSIBLE`).
"""

import os

from .options import Options
from .source import InProcess, InWorkers, Source, source_of

POSSIBLE = os.name == "posix"
"""Whether this system has what workers are built on: pipes that can be waited for, and process groups."""

__all__ = ["POSSIBLE", "InProcess", "InWorkers", "Options", "Source", "source_of"]
