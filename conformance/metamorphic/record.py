"""The typed records of a metamorphic run."""

from __future__ import annotations

from typing import Any

import msgspec

from ..finding import Verdict

SCHEMA = "hardmask-metamorphic/1"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What one relation came to for one subject, dtype, length and method.

    ``relation``: a kind of change, of which ``variant`` is one, or a law that one answer must keep. ``declaration``:
    what it follows from. ``rows``: rows compared; ``identical``: of them, those whose answers agree to the bit;
    ``failed``: those beyond the bound. ``share``: the largest difference, as a part of its bound; null where the bound
    is 0 or the difference is not a number. The other fields describe the worst row: ``row`` and ``key`` (null for a
    number that belongs to a row), the two values as hexadecimal floats (of a law, its one value), their ``difference``
    and its ``bound``. ``diagnosis`` says what is wrong; of a pass, what was seen; of ``unsupported``, why.
    """

    subject: str
    dtype: str
    keys: int
    method: str
    relation: str
    variant: str = ""
    declaration: str
    verdict: Verdict
    diagnosis: str = ""
    rows: int = 0
    identical: int = 0
    failed: int = 0
    share: float | None = None
    row: int | None = None
    key: int | None = None
    first: str | None = None
    second: str | None = None
    difference: float | None = None
    bound: float | None = None


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The document of a metamorphic run. With the seed, the rows can be rebuilt bit by bit."""

    schema: str
    hardmask: str
    environment: dict[str, Any]
    seed: int
    rows: int
    keys: list[int]
    dtypes: list[str]
    complete: bool
    comparisons: list[Comparison]
    not_shown: list[str]
    seconds: float
