r"""Which 16-bit codes a row of two allowed scores may give: for every code, an interval of the scores' difference.

With ``d = s_0 - s_1`` the weights are ``sigma(d)`` and ``sigma(-d)``, and the derivative along ``(1, 0)`` is ``p`` and
``-p`` with ``p = sigma(d) sigma(-d)``. The weight grows with ``d`` and ``p`` falls with ``|d|``, so that whatever can
be asked of a code turns into two comparisons with ``d``. A table holds the two ends for all 65,536 codes.

**Correct rounding.** Code ``c`` is the correctly rounded one exactly where the true value lies between the midpoints
to its neighbours. The ends are the largest float64 numbers below the places where the value crosses a midpoint, found
with the enclosing double-double engine. No tie occurs: at ``d != 0`` the value is irrational, at 0 it is a code.

**Certain acceptance.** The budget of a weight is bounded from below by what it holds for every row of two scores, over
a neighbourhood of the code's value; a code is accepted where its distance to the true value is below that. The
argument errors, the underflow of numerators and all that a weaker tier adds only enlarge the budget, so the ordinary
budget accepts whatever these tables accept. What they leave open is for :func:`weights_budget` to decide.

Every model accepts what is correctly rounded: either the budget holds half an ulp of the storage format, or that is the
compute format, and the addition of the two numerators alone grants ``u`` of the weight.

In the notation of :mod:`.weights`, with ``w`` in ``[lo, hi]`` and no cast, ``e^L >= (1 + alpha u)(1 + u)^divisions /
((1 + alpha u (2 hi - 1)) (1 - u)^h)``, since ``L`` grows with every argument error. Hence ``E >= lo (e^L - 1) +
(underflow) + (half an ulp at lo)``. Where ``hi <= lam`` the underflow terms hold outright, or the rounded bound has
grown past ``4 lam`` and the error exceeds their sum, ``3 lam``. For the derivative, the terms in the weights' own
error and the last rounding are kept: ``E_0 >= E_w[0] + half an ulp`` and ``E_1 >= w_0 E_w[1] + w_1 E_w[0] + half an
ulp``, and for a composed one the eight roundings of its two branches.

The difference of two float16 numbers is exact in float64. That of two bfloat16 numbers may be rounded, but only where
it is within ``2^-45`` of one of them; no end of a table is so close to a bfloat16 number, which is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from ..batch import Bools, Floats
from ..formats import FORMATS, Format
from ..oracle.dd_engine import DoubleDoubleEngine
from ..oracle.exact import Exact
from .model import RoundingModel

Codes = npt.NDArray[np.uint16]
_CODES = 1 << 16
_SIGN = 1 << 15
_SHRUNK = 1.0 - 1e-6  # on the relative part of a bound, past the rounding errors of its evaluation
_APART = 2.0**-40
_FLAT = 2.0**-30


@dataclass(frozen=True, eq=False)
class Intervals:
    """For every 16-bit code an interval of ``d`` (or ``|d|``): code ``c`` belongs to ``above[c] < d <= upto[c]``.

    Codes beyond ``top`` have an empty interval, NaN and negative numbers among them; minus zero counts as zero.
    """

    above: Floats
    upto: Floats
    top: int

    def hold(self, codes: Codes, d: Floats) -> Bools:
        """Whether each code belongs to its ``d``; one shape for all three."""
        return (self.above[codes] < d) & (d <= self.upto[codes])

    def expected(self, d: Floats) -> npt.NDArray[np.int64]:
        """The code whose interval holds each ``d``, for intervals that cover the line without gaps."""
        rising = self.upto[0] < self.upto[self.top]
        ends = self.upto[: self.top] if rising else self.above[: self.top][::-1]
        place = np.searchsorted(ends, d, side="left")
        return place if rising else self.top - place


def code_values(storage: Format, top: float) -> Floats:
    """The values of the codes 0, 1, 2, ... up to the code of ``top``, in float64.

    >>> code_values(FORMATS["float16"], 1.0)[-2:]
    array([0.99951172, 1.        ])
    """
    with np.errstate(invalid="ignore"):  # the codes of NaN
        values = np.arange(_SIGN, dtype=np.uint16).view(storage.dtype).astype(np.float64)
    return values[: int(np.flatnonzero(values == top)[0]) + 1]


@cache
def correct_weights(name: str) -> Intervals:
    """Where each code of a 16-bit format is the correctly rounded weight ``sigma(d)`` (extension; see the module).

    >>> correct_weights("float16").expected(np.array([0.0, 20.0]))  # 0.5 and 1
    array([14336, 15360])
    """
    values = code_values(FORMATS[name], 1.0)
    ends = _logit((values[:-1] + values[1:]) / 2.0)
    _check_apart(name, ends)
    return _table(np.concatenate([[-np.inf], ends]), np.concatenate([ends, [np.inf]]))


@cache
def correct_products(name: str) -> Intervals:
    """Where each code is the correctly rounded ``sigma(d) sigma(-d)``: intervals of ``|d|`` (extension).

    >>> correct_products("float16").expected(np.array([0.0, 20.0]))  # 0.25 and 0
    array([13312,     0])
    """
    values = code_values(FORMATS[name], 0.25)
    ends = _width((values[:-1] + values[1:]) / 2.0)
    _check_apart(name, ends)
    return _table(np.concatenate([ends, [-np.inf]]), np.concatenate([[np.inf], ends]))


@cache
def accepted_weights(model: RoundingModel) -> Intervals:
    """Where the budget of a weight certainly accepts each code: intervals of ``d`` (extension; see the module)."""
    values = code_values(model.storage, 1.25)  # a weight may come out a little above 1
    below, beyond = _radii(lambda lo, hi: least_weight_error(model, lo, hi), values, 1.0)
    return _table(
        _inward(values - below, -1, _logit, 1.0),
        _inward(values + beyond, +1, _logit, 1.0),
    )


@cache
def accepted_products(model: RoundingModel, own: bool, positive: bool) -> Intervals:
    """Where the budget of a derivative certainly accepts the magnitude of each code: intervals of ``|d|`` (extension).

    ``own``: at the key whose cotangent is 1, rather than at the other one. ``positive``: the key whose cotangent is 1
    has the larger score.
    """
    values = code_values(model.storage, 0.3125)

    def least(lo: Floats, hi: Floats) -> Floats:
        small = tuple((1.0 - np.sqrt(np.maximum(1.0 - 4.0 * p, 0.0))) / 2.0 for p in (lo, hi))
        # The formula loses digits where p is small, and there the weight is p (1 + p) within its square.
        few, many = (np.where(p < 1e-5, p, s) for p, s in zip((lo, hi), small, strict=True))
        few, many = few * (1.0 - 2e-5), np.minimum(many * (1.0 + 2e-5), 0.5)
        mine, other = ((1.0 - many, 1.0 - few), (few, many)) if positive else ((few, many), (1.0 - many, 1.0 - few))
        mine_error = least_weight_error(model, *mine)
        if own:
            moved, branches = mine_error, mine[0] * (1.0 + mine[0])
        else:
            moved = mine[0] * least_weight_error(model, *other) + other[0] * mine_error
            branches = other[0] * mine[0]
        moved = moved + model.tiny
        if model.composed:
            moved = moved + branches * np.expm1(-8.0 * np.log1p(-model.u))
        return moved * _SHRUNK + _half_ulp(model, lo, hi)

    below, beyond = _radii(least, values, 0.25)
    return _table(
        _inward(values + beyond, -1, _width, 0.25),
        _inward(values - below, +1, _width, 0.25),
    )


def least_weight_error(model: RoundingModel, lo: Floats, hi: Floats) -> Floats:
    """A lower bound of the budget of any weight in ``[lo, hi]`` of any row of two allowed scores, elementwise.

    >>> m = RoundingModel(FORMATS["float32"], FORMATS["float16"], FORMATS["float32"], alpha=4.0)
    >>> bool(least_weight_error(m, np.array(0.3), np.array(0.3)) > 2.0**-13)  # half an ulp, and a little
    True
    """
    # The budget grows with alpha, and for an alpha beyond reason it is large enough without all of it.
    u, alpha = model.u, min(model.alpha * model.u, 0.25)
    others = 1.0 - (1.0 - alpha) * (1.0 - model.u_cast)
    log_error = np.log1p(alpha) - np.log1p(alpha * hi - others * (1.0 - hi)) + model.log_sum(np.asarray(2.0))
    log_error = log_error + model.divisions * np.log1p(u) + np.log1p(model.u_cast)
    underflow = np.where(hi <= model.compute.lam, model.compute.lam if model.flush else model.compute.eta, 0.0)
    return np.asarray((lo * np.expm1(log_error) + underflow) * _SHRUNK + _half_ulp(model, lo, hi))


def _half_ulp(model: RoundingModel, lo: Floats, hi: Floats) -> Floats:
    """A lower bound of the error of the rounding to storage of any number in ``[lo, hi]``."""
    if model.storage == model.compute:
        return np.zeros_like(lo)
    exponent = np.maximum(np.frexp(lo)[1] - 1, model.storage.emin)
    half = np.ldexp(1.0, np.where(lo > 0.0, exponent, model.storage.emin) - model.storage.precision)
    return np.where(hi <= model.storage.lam, np.maximum(half, model.tiny_storage), half)


def _radii(least: Callable[[Floats, Floats], Floats], values: Floats, most: float) -> tuple[Floats, Floats]:
    """How far below and beyond each code's value a true value, at most ``most``, may certainly lie."""
    true = np.minimum(values, most)
    reach = least(true, true)
    below = np.minimum(least(np.clip(values - reach, 0.0, most), true), reach)
    beyond = np.minimum(least(true, np.minimum(true + reach, most)), reach)
    return below, beyond


def _inward(targets: Floats, side: int, place: Callable[[Floats], Floats], most: float) -> Floats:
    """The places of the targets, moved towards the inside of their interval; ``side`` -1 is a lower end, 1 an upper."""
    falling = place is _width
    way = np.inf if (side < 0) != falling else -np.inf
    moved = np.nextafter(targets, way)  # they were rounded themselves
    # Where the difference is nearly 0, float64 numbers lie closer together than the engine can tell.
    flat = most if falling else 0.5
    close = np.abs(moved - flat) < _FLAT
    moved = np.where(close, flat + np.copysign(_FLAT, way), moved)
    inside = (moved > 0.0) & (moved < most)
    # Beyond all true values an end bounds nothing, or leaves nothing.
    ends = np.where((moved <= 0.0) != falling, -np.inf, np.inf)
    found = place(moved[inside])
    for _ in range(3):
        found = np.nextafter(found, -side * np.inf)
    ends[inside] = found
    return ends


def _table(above: Floats, upto: Floats) -> Intervals:
    top = len(above) - 1
    lower, upper = np.full(_CODES, np.inf), np.full(_CODES, -np.inf)
    lower[: top + 1], upper[: top + 1] = above, upto
    lower[_SIGN], upper[_SIGN] = above[0], upto[0]  # minus zero
    return Intervals(lower, upper, top)


def _logit(targets: Floats) -> Floats:
    """The largest float64 numbers below ``log(x / (1 - x))``, for ``x`` in (0, 1); 0 for a half."""
    small = np.where(targets > 0.5, 1.0 - targets, targets)  # exact
    other = small < 0.5
    x = small[other]
    found = np.zeros_like(targets)
    found[other] = _crossing(_sigmoid, lambda value, t: value * (1.0 - value), np.log1p(-x) - np.log(x), x)
    # What was found is below ``-logit(small)``.
    return np.where(other & (targets < 0.5), -np.nextafter(found, np.inf), found)


def _width(targets: Floats) -> Floats:
    """The largest float64 numbers below the ``|d|`` at which ``sigma(d) sigma(-d)`` is ``x``, for ``x`` in (0, 1/4)."""
    root = np.sqrt(1.0 - 4.0 * targets)
    start = np.where(targets < 1e-6, -np.log(targets), 2.0 * np.arctanh(np.minimum(root, 1.0 - 1e-16)))
    return _crossing(_product, lambda value, t: value * np.tanh(t / 2.0), start, targets)


def _sigmoid(t: Floats) -> Exact:
    scores = np.stack([-t, np.zeros_like(t)], axis=1)
    return _first(DoubleDoubleEngine().weights(scores, np.ones(scores.shape, bool)).weights)


def _product(t: Floats) -> Exact:
    scores = np.stack([-t, np.zeros_like(t)], axis=1)
    engine = DoubleDoubleEngine()
    weights = engine.weights(scores, np.ones(scores.shape, bool))
    return _first(engine.derivative(weights, np.tile([1.0, 0.0], (len(t), 1))))


def _first(both: Exact) -> Exact:
    return Exact(both.value[:, 0], both.low[:, 0], both.error[:, 0])


def _crossing(
    function: Callable[[Floats], Exact], slope: Callable[[Floats, Floats], Floats], start: Floats, targets: Floats
) -> Floats:
    """The largest float64 ``t >= 0`` at which a falling function still exceeds its target; rigorous.

    Newton's method from a guess of a few ulps, then single steps, each decided by the engine's enclosure.
    """
    t = np.maximum(start, 0.0)
    for _ in range(2):
        here = function(t)
        t = np.maximum(t + ((here.value - targets) + here.low) / slope(here.value, t), 0.0)
    t = np.nextafter(t, 0.0)
    for _ in range(64):
        after = np.nextafter(t, np.inf)
        short, far = _exceeds(function(after), targets), ~_exceeds(function(t), targets)
        if not (short.any() or far.any()):
            return t
        t = np.where(short, after, np.where(far, np.nextafter(t, 0.0), t))
    raise ArithmeticError("A rounding threshold could not be told from a float64 number.")


def _exceeds(here: Exact, targets: Floats) -> Bools:
    """Whether the true value exceeds the target. Raises ArithmeticError where the enclosure leaves it open."""
    distance = (here.value - targets) + here.low
    if np.any(np.abs(distance) * (1.0 - 2.0**-50) <= here.error):
        raise ArithmeticError("A value of the double-double engine could not be told from a rounding threshold.")
    return distance > 0.0


def _check_apart(name: str, ends: Floats) -> None:
    """Differences that float64 rounds are next to a bfloat16 number: no threshold may be there."""
    nearest: Any = ends.astype(FORMATS[name].dtype).astype(np.float64)
    if FORMATS[name].emin < -100 and np.any(np.abs(ends - nearest) <= _APART * np.abs(ends)):
        raise ArithmeticError(f"A rounding threshold lies too close to a number of {name}.")
