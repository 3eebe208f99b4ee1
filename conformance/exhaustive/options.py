"""From the options of the command line to an enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from .enumeration import Enumeration
from .kinds import PARTS, Part


def enumeration_of(
    dtypes: Sequence[str],
    parts: Sequence[str],
    fraction: float | None,
    checkpoint: str | None,
    jobs: int,
    alone: bool,
) -> Enumeration | None:
    """What the options ask for; None when no dtype is to be enumerated.

    Raises ValueError, with a sentence, for a wrong value, and for an option that has no effect without a dtype.

    >>> enumeration_of(["float16"], ["pairs"], None, None, 1, True).parts
    ('pairs',)
    """
    if not dtypes:
        given = {"--part": bool(parts), "--fraction": fraction is not None, "--checkpoint": checkpoint is not None}
        for option, there in given.items():
            if there:
                raise ValueError(f"{option} belongs to a sweep: add --exhaustive float16, or leave it out.")
        return None
    chosen = cast("tuple[Part, ...]", tuple(dict.fromkeys(parts)) or PARTS)
    return Enumeration(
        tuple(dict.fromkeys(dtypes)), 1.0 if fraction is None else fraction, chosen, checkpoint, jobs, alone
    )
