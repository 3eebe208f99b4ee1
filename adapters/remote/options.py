"""How workers are run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

POSSIBLE = os.name == "posix"
"""Whether this system has what workers are built on: pipes that can be waited for, and process groups."""

CALL_TIMEOUT = 300.0
SUBJECT_TIMEOUT = 3600.0
LOADING = 300.0
"""Seconds in which a framework is loaded, at least: that it is slow says nothing about a call."""

STRIKES = 3
"""Calls of one subject that may cost a worker its life before the subject is not called any more."""

MIB = 1 << 20
SHARE = 0.75


@dataclass(frozen=True)
class Options:
    """The interpreter and the limits of workers.

    ``python``: the interpreter, None for the one that runs hardmask. ``call_timeout``: seconds for one call.
    ``subject_timeout``: seconds for all calls of one subject in one worker. ``memory_limit``: MiB that a worker may
    hold, None for three quarters of what is free when it starts.

    Raises ValueError for a limit that is not positive.
    """

    python: str | None = None
    call_timeout: float = CALL_TIMEOUT
    subject_timeout: float = SUBJECT_TIMEOUT
    memory_limit: int | None = None

    def __post_init__(self) -> None:
        for name in ("call_timeout", "subject_timeout", "memory_limit"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"A {name.replace('_', ' ')} is a number above 0; {value} is none.")

    @property
    def memory(self) -> int | None:
        """The bytes that a worker may hold, None where nothing is known about the memory."""
        if self.memory_limit is not None:
            return self.memory_limit * MIB
        free = _free()
        return None if free is None else int(SHARE * free)


def workers(
    in_process: bool,
    python: str | None = None,
    call_timeout: float = CALL_TIMEOUT,
    subject_timeout: float = SUBJECT_TIMEOUT,
    *,
    memory_limit: int | None = None,
) -> Options | None:
    """How workers are run, None where subjects run in process.

    Raises ValueError for limits that are none, for another interpreter in process, and where workers are impossible.
    """
    limits = Options(python, call_timeout, subject_timeout, memory_limit)
    if in_process and python is not None:
        raise ValueError("Another interpreter runs in a process of its own: drop 'in process', or the interpreter.")
    if not in_process and not POSSIBLE:
        raise ValueError("Workers need a POSIX system. Run in process here (--in-process).")
    return None if in_process else limits


def held(pid: int) -> int:
    """The bytes of memory that a process holds, 0 where the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _page()
    except (OSError, ValueError, IndexError):
        return 0


@cache
def _page() -> int:
    return os.sysconf("SC_PAGE_SIZE")


def _free() -> int | None:
    """The bytes that are free, in the machine and in the container."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
        group = Path("/sys/fs/cgroup")
        found.append(int((group / "memory.max").read_text()) - int((group / "memory.current").read_text()))
    except (OSError, ValueError):
        pass  # no Linux, no container, or a container without a limit
    return max(1, min(found)) if found else None
