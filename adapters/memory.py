"""Ask the allocator to keep memory that is freed.

A run allocates and frees arrays of one or two megabytes many thousands of times. The GNU allocator returns each of them
to the system and fetches it back page by page, which costs about a tenth of a run.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # from malloc.h
_LARGE = 1 << 28


def keep_freed_memory() -> None:
    """Do so where the C library has the switch; elsewhere do nothing. Affects this process only."""
    try:
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    except (OSError, TypeError):  # Windows has no handle of the whole process
        return
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _LARGE)
        mallopt(_TRIM_THRESHOLD, 4 * _LARGE - 1)
