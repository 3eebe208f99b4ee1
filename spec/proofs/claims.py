"""What a residual yields: claims that an engine decides with its own kind of number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class BlockedRead(ArithmeticError):
    """A blocked score was read."""


@dataclass(frozen=True)
class Equal:
    """``left = right``.

    Numerically, the distance is measured relative to ``max(1, |right|)``, or with ``relative`` to ``|right|`` alone (so
    that a zero must be exact).
    """

    label: str
    left: Any
    right: Any
    relative: bool = False


@dataclass(frozen=True)
class NonNegative:
    """``value >= 0``, or ``value > 0`` with ``strict``."""

    label: str
    value: Any
    strict: bool = False


Claim = Equal | NonNegative


class Unreadable:
    """Stands for a blocked score that must not be read: every use raises :class:`BlockedRead`."""

    def _read(self, *_: object) -> Any:
        raise BlockedRead("a blocked score was read")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _read
    __neg__ = __gt__ = __lt__ = __ge__ = __le__ = _read
    element = property(_read)
