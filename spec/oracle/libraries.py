"""Rigorous real numbers of any precision: python-flint balls, or mpmath intervals where python-flint is missing.

Neither library's global precision is touched from outside a :meth:`Library.precision` block, and one thread at a time
is inside such a block.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from importlib.util import find_spec
from threading import RLock
from typing import Any, Literal, Protocol

from .interval import Interval, rounded_down

Name = Literal["flint", "mpmath"]

_ALONE = RLock()
"""Held inside a precision block: the precision belongs to the process, not to the thread."""


class Library(Protocol):
    """What the referee needs of enclosures besides ``+ - * / abs`` and the comparisons.

    ``a > b`` and ``a <= b`` must be true only if they hold for all the reals enclosed.
    """

    name: Name

    def precision(self, bits: int) -> AbstractContextManager[None]:
        """Work with this many bits inside the block."""
        ...

    def number(self, value: float) -> Any:
        """A finite float, exactly."""
        ...

    def exp(self, x: Any) -> Any:
        """The exponential; exactly 1 at an exact 0."""
        ...

    def interval(self, x: Any) -> Interval:
        """The enclosure that ``x`` stands for."""
        ...

    def rough(self, x: Any) -> float:
        """A float near the middle of the enclosure, for what decides nothing."""
        ...


class _Flint:
    name: Name = "flint"

    def __init__(self) -> None:
        import flint

        self.number = flint.arb
        self._context = flint.ctx

    @contextmanager
    def precision(self, bits: int) -> Iterator[None]:
        with _ALONE, self._context.workprec(bits):
            yield

    def exp(self, x: Any) -> Any:
        return x.exp()

    def interval(self, x: Any) -> Interval:
        low, high = (tuple(map(int, end.man_exp())) for end in (x.lower(), x.upper()))
        return Interval(rounded_down(*low), -rounded_down(-high[0], high[1]))

    def rough(self, x: Any) -> float:
        return float(x)


class _Mpmath:
    name: Name = "mpmath"

    def __init__(self) -> None:
        from mpmath.ctx_iv import MPIntervalContext

        self._context = MPIntervalContext()  # a private one: mpmath.iv keeps its precision
        self.number = self._context.mpf
        self._zero = self.number(0)._mpi_
        self._doubt = self.number(1)

    @contextmanager
    def precision(self, bits: int) -> Iterator[None]:
        with _ALONE:
            before = self._context.prec, self._doubt
            self._context.prec = bits
            self._doubt = 1 + self.number([-1, 1]) * self.number(2) ** (2 - bits)
            try:
                yield
            finally:
                self._context.prec, self._doubt = before

    def exp(self, x: Any) -> Any:
        """mpmath rounds its approximation, correct to some 14 guard bits, outwards; a wrong last bit is allowed for."""
        return self._context.one if x._mpi_ == self._zero else self._context.exp(x) * self._doubt

    def interval(self, x: Any) -> Interval:
        low, high = ((-int(man) if sign else int(man), int(exp)) for sign, man, exp, _ in x._mpi_)
        return Interval(rounded_down(*low), -rounded_down(-high[0], high[1]))

    def rough(self, x: Any) -> float:
        return float(x.mid)


@cache
def _load(name: Name) -> Library:
    return _Flint() if name == "flint" else _Mpmath()


def library(name: Name | None = None) -> Library:
    """The library asked for, or the best that is installed: python-flint, else mpmath.

    Raises ValueError for an unknown name and ImportError when python-flint is asked for and missing.
    """
    if name is None:
        name = "flint" if find_spec("flint") else "mpmath"
    if name not in ("flint", "mpmath"):
        raise ValueError(f"The referee knows no library '{name}'. Ask for 'flint' or 'mpmath', or leave it out.")
    if name == "flint" and not find_spec("flint"):
        raise ImportError("The referee needs python-flint, which is not installed. Run: pip install python-flint")
    return _load(name)
