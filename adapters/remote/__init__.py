"""Subjects that run in worker processes: how these are started, spoken to, watched and started again.

A run names its subjects by a :class:`~hardmask.adapters.remote.source.Source`: in this process, or in workers. Workers
need a POSIX system (:data:`POSSIBLE`).
"""

from .options import POSSIBLE, Options, workers
from .source import InProcess, InWorkers, Source, close_workers, source_of

__all__ = ["POSSIBLE", "InProcess", "InWorkers", "Options", "Source", "close_workers", "source_of", "workers"]
