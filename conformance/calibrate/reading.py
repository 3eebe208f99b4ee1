r"""What the weights of a row say about the exponentials that they were made from.

**Assumption.** Every weight of a row is its numerator times one factor common to the row, rounded once to the storage
format: ``w_i = fl(e^_i c)``. That holds for a division, where ``c = 1/S^``, and for a product with a rounded reciprocal
alike, whatever the sum is worth. Where results are computed in float32 and stored in half, one rounding of float32
precedes.

**Interval.** Key 0 holds the maximum, whose argument is 0. With ``h(w)`` half an ulp of the storage format at ``w``,

    q = e^_i / e^_0   lies in   [ (w_i - h(w_i)) / (w_0 + h(w_0)),  (w_i + h(w_i)) / (w_0 - h(w_0)) ].

A factor common to all exponentials cancels in a softmax and cannot be seen: ``q`` is what there is to know. Read is the
relative deviation ``r = q / e^x - 1``. Rows that divide the same numerators by other sums give other intervals, and the
deviation lies in all of them.

**Grid.** Where the numerators are numbers of the storage format and ``exp(0)`` is 1, ``q`` is such a number, and the
interval shrinks to those that it holds. Whether that is so is tried out first (:mod:`.form`). Where moreover the other
numerators add up to less than ``u/8``, the sum rounds to 1, and the weight *is* the computed exponential: in a wider
sum the division changes it by less than an eighth of ``u``, which does not reach the next number.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...spec.batch import Array, Bools, Floats
from ...spec.formats import FORMATS, HALVES, Format
from ...spec.oracle.dd_exp import dd_exp
from ...spec.oracle.doubledouble import two_prod
from ...spec.oracle.exp64 import exp64
from ...spec.rounding.model import FLOAT32
from .rows import Layout

_COLUMNS = 1024  # rows at a time: what belongs to them stays in the cache
_EXPONENT = np.int64(0x7FF0000000000000)
_SLACK = 2.0**-20  # in ulp: the errors of the reference and of this evaluation


@dataclass(frozen=True, eq=False)
class Reading:
    """About each argument, in order: the deviation ``r`` of its exponential lies in ``[low, high]``.

    Where the exponential is below the normal range, ``normal`` is False, ``r`` is undefined (0), and ``[low_tiny,
    high_tiny]`` bounds its absolute error instead, in units of the smallest subnormal number; elsewhere these are 0.
    ``zero``: where the weight is 0. ``off_grid``: how many intervals hold no number of the format, where one was to be.
    """

    low: Floats
    high: Floats
    normal: Bools
    low_tiny: Floats
    high_tiny: Floats
    zero: Bools
    off_grid: int


class Reader:
    """Reads weights in one format; ``on_grid`` as found out by :mod:`.form`."""

    def __init__(self, dtype: str, on_grid: bool) -> None:
        self.format: Format = FORMATS[dtype]
        self.on_grid = on_grid
        self.extra = FLOAT32.u if dtype in HALVES else 0.0

    def read(self, weights: Floats, layout: Layout, arguments: Array) -> Reading:
        """The reading of rows that :meth:`Layout.rows` made from these arguments; ``weights`` shape ``(rows, 16)``."""
        rows = len(weights)
        padded = np.full(layout.probes * rows, arguments[-1], np.float64)
        padded[: len(arguments)] = arguments
        x = padded.reshape(layout.probes, rows)
        floats = [np.empty_like(x) for _ in range(4)]
        bools = [np.empty(x.shape, bool) for _ in range(2)]
        off = 0
        for start in range(0, rows, _COLUMNS):
            part = slice(start, start + _COLUMNS)
            columns = np.ascontiguousarray(weights[part].T)
            probes = columns[layout.zeros : layout.zeros + layout.probes]
            with np.errstate(all="ignore"):  # quotients of what underflowed, which are not used
                *found, count = self._columns(columns[0], probes, np.ascontiguousarray(x[:, part]), layout.zeros)
            for whole, piece in zip((*floats, *bools), found, strict=True):
                whole[:, part] = piece
            off += count
        low, high, low_tiny, high_tiny = (a.reshape(-1)[: len(arguments)] for a in floats)
        normal, zero = (a.reshape(-1)[: len(arguments)] for a in bools)
        return Reading(low, high, normal, low_tiny, high_tiny, zero, off)

    def empty(self, low: Floats, high: Floats, arguments: Array) -> int:
        """How many intervals of the deviation hold no number of the format; shape ``(n,)``, normal results only."""
        head, tail, _ = self._reference(arguments.astype(np.float64))
        return self._snap(low.copy(), high.copy(), head, tail, np.ones(len(low), bool))

    def _columns(
        self, top: Floats, w: Floats, x: Floats, zeros: int
    ) -> tuple[Floats, Floats, Floats, Floats, Bools, Bools, int]:
        f = self.format
        head, tail, scale = self._reference(x)
        size = head if scale is None else np.ldexp(head, scale)
        scaled = w if scale is None else np.ldexp(w, -scale)
        if scale is None:
            product = top * head
            r = (scaled - product) / product
        else:
            product, rest = two_prod(np.broadcast_to(top, head.shape), head)
            r = (((scaled - product) - rest) - top * tail) / product
        least = f.eta / 2.0 if f.precision < 53 else f.eta
        h = np.maximum((w.view(np.int64) & _EXPONENT).view(np.float64) * f.u, least)
        h /= np.maximum(w, f.eta)
        h_top = (top.view(np.int64) & _EXPONENT).view(np.float64) * f.u / top + self.extra
        h += self.extra
        h += h_top
        h /= 1.0 - h_top
        h *= 1.0 + r
        low, high = r - h, r + h
        np.maximum(low, -1.0, out=low)

        normal, zero = size >= f.lam, w == 0.0
        settled: Bools | None = None
        off = 0
        if self.on_grid:
            off = self._snap(low, high, head, tail, normal & ~zero)
            if zeros == 1:
                settled = (top == 1.0) & (size.sum(axis=0) <= f.u / 8.0)
                if settled.any():
                    low[:, settled] = high[:, settled] = r[:, settled]
        low_tiny, high_tiny = np.zeros_like(r), np.zeros_like(r)
        small = ~normal
        if small.any():
            error = np.abs(r[small]) * (size[small] / f.eta)
            doubt = np.broadcast_to(0.5 / top, r.shape)[small] + (size / f.eta * (h_top + self.extra))[small]
            if settled is not None:
                doubt = np.where(np.broadcast_to(settled, r.shape)[small], 0.0, doubt)
            low_tiny[small], high_tiny[small] = np.maximum(error - doubt, 0.0), error + doubt
            low[small] = high[small] = 0.0
            normal = normal & ~small
        # Just above the limit a result may be flushed a little early: counted as a zero, not as a deviation.
        early = zero & normal & (size < 2.0 * f.lam)
        if early.any():
            normal = normal & ~early
            low[early] = high[early] = 0.0
        return low, high, low_tiny, high_tiny, normal, zero, off

    def _reference(self, x: Floats) -> tuple[Floats, Floats, np.ndarray | None]:
        """``e^x`` as ``(head + tail) 2^scale``; without a scale ``head`` is ``e^x`` to float64 and ``tail`` 0."""
        if self.format.precision < 53:
            return exp64(x), np.zeros(1), None
        return dd_exp(x, np.zeros_like(x))

    def _snap(self, low: Floats, high: Floats, head: Floats, tail: Floats, among: Bools) -> int:
        """Shrink intervals of ``q / e^x - 1`` to the numbers of the format in them; how many hold none."""
        f = self.format
        grid = head if f.precision == 53 else head.astype(f.dtype).astype(np.float64)
        rest = tail if f.precision == 53 else head - grid
        power = (grid.view(np.int64) & _EXPONENT).view(np.float64)
        ulp = power * (2.0 * f.u)
        # Below a power of two the numbers are denser.
        ulp *= np.where(grid - power > 8.0 * ulp, 1.0, 0.5)
        first = np.ceil((rest + head * low) / ulp - _SLACK)
        last = np.floor((rest + head * high) / ulp + _SLACK)
        usable = among & (first <= last)
        off = int(among.sum()) - int(usable.sum())
        np.copyto(low, (first * ulp - rest) / head, where=usable)
        np.copyto(high, (last * ulp - rest) / head, where=usable)
        return off
