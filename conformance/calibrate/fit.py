r"""Which rounding models contain what was seen.

Under a model every numerator is ``e^x`` times ``exp(±a(x)) (1 ± alpha u)``, with ``a(x)`` what the model grants to the
exponent, times a factor common to the row, which cancels. So the logarithms ``l(x)`` of the deviations lie within
``c ± (a(x) + log(1 + alpha u))`` for some ``c``, and, since the maximum itself deviates by 0, the least alpha is

    alpha u  =  (max (l(x) - a(x)) + max (-l(x) - a(x))) / 2.

The first bound on it uses what is certain about the deviations and grants the most, the second uses what is possible
and grants the least. An alpha between the two is neither confirmed nor refuted.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ...spec.batch import Floats
from ...spec.formats import FORMATS
from ...spec.rounding import RoundingModel
from ...spec.rounding.arguments import divided
from .form import SUM_KEYS, Form
from .rows import KEYS
from .sweep import Extremes, Side, Tiny


@dataclass(frozen=True)
class Fit:
    """A model beside what was seen.

    ``lower``, ``upper``: bounds on the alpha that the model needs, in its ``u``. ``objections``: clauses on what else
    the model does not grant.
    """

    tier: str
    alpha: float
    lower: float
    upper: float
    objections: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing that was seen refutes the model."""
        return self.lower <= self.alpha and not self.objections

    @property
    def certain(self) -> bool:
        """Whether the model grants even what is only possible."""
        return self.upper <= self.alpha and not self.objections


def fit(tier: str, model: RoundingModel, blocks: Sequence[Extremes], tiny: Tiny, form: Form) -> Fit:
    """Compare one model with a sweep and the experiments on the form."""
    lowest, highest = _needed(model, blocks, form)
    return Fit(tier, model.alpha, lowest, highest, tuple(_objections(model, tiny, form)))


def _needed(model: RoundingModel, blocks: Sequence[Extremes], form: Form) -> tuple[float, float]:
    edges = np.array([b.first for b in blocks])
    pairs = [_half_spread(model, [b.above for b in blocks], [b.below for b in blocks], edges, 0.0)]
    moved = [o for o in form.offsets if not o.same_bits]
    for o in (*moved, *([form.rounded] if form.rounded else [])):
        nearest = np.array([max(o.above.argument, o.below.argument)])
        pairs.append(_half_spread(model, [o.above], [o.below], nearest, o.offset))
    lower, upper = (max(p[i] for p in pairs) for i in (0, 1))
    turns = float(KEYS - 1) if model.online else 0.0
    # An online kernel may have rescaled the row's numerators, each time with another exp and a product.
    cast = math.log1p(model.u_cast) if model.cast_numerators else 0.0
    lower = max(0.0, (lower - cast - turns * model.u) / (1.0 + turns))
    return _in_units(lower, model), _in_units(max(0.0, upper), model)


def _in_units(log: float, model: RoundingModel) -> float:
    return math.expm1(min(log, 700.0)) / model.u


def _half_spread(
    model: RoundingModel, above: Sequence[Side], below: Sequence[Side], edges: Floats, offset: float
) -> tuple[float, float]:
    """Both bounds of the module docstring, as logarithms; ``edges`` are where the least is granted."""
    certain, possible = 0.0, 0.0
    for sides, sign in ((above, 1.0), (below, -1.0)):
        at = np.array([s.argument for s in sides])
        low, high = (np.array([getattr(s, name) for s in sides]) for name in ("lower", "upper"))
        most, origin = _granted(model, at, offset, float(KEYS))
        least, _ = _granted(model, edges, offset, 1.0)
        certain += max(float((_log(low, sign) - most).max()), -origin)
        possible += max(float((_log(high, sign) - least).max()), 0.0)
    return certain / 2.0, possible / 2.0


def _log(deviation: Floats, sign: float) -> Floats:
    """``|log(1 + r)|`` of deviations to one side, given by their size."""
    return sign * np.log1p(np.maximum(sign * deviation, -1.0 + 2.0**-53))


def _granted(model: RoundingModel, x: Floats, offset: float, total: float) -> tuple[Floats, float]:
    """What the model grants to the exponents of the scores ``offset + x``, and to that of the maximum."""
    scores = np.stack([np.full(len(x), offset), offset + x], axis=1)
    gap = np.stack([np.zeros(len(x)), -x], axis=1)
    sums = np.maximum(1.0 + np.exp(x), total)[:, None]
    a = divided(model, scores, np.ones(scores.shape, bool), gap, sums)
    return a[:, 1], float(a[:, 0].max())


def _objections(model: RoundingModel, tiny: Tiny, form: Form) -> Iterator[str]:
    storage = model.storage
    absolute = model.tiny + (storage.eta / 2.0 if model.storage == model.compute else model.tiny_storage)
    lost = math.exp(tiny.zero_from) if tiny.zero_from > -math.inf else 0.0
    if lost > absolute * (1.0 + 2.0**-8):
        yield f"weights are 0 from {lost / storage.lam:.3g} times the smallest normal number downwards"
    elif tiny.lower * storage.eta > absolute * (1.0 + 2.0**-8):
        yield f"results below the normal range are off by {tiny.lower:.3g} times the smallest subnormal number"
    u = FORMATS[storage.name].u
    granted = math.expm1(float(model.log_sum(np.array(float(SUM_KEYS))))) / u + 2.0 * (model.alpha + 2.0) * model.u / u
    off = max(form.sum_low, -form.sum_high)
    if off > granted:
        yield f"a sum of {SUM_KEYS:,} terms is off by {off:.3g} u"
    terms = (KEYS + 2) * model.u + model.u_cast + (0.0 if model.storage == model.compute else u)
    if model.shared and form.row_sum > 1.01 * terms:
        yield f"the weights of one row add up to 1 only within {form.row_sum / u:.3g} u"
