"""Measure what a subject's exponential is worth inside its softmax, and compare that with what the subject declares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ...adapters.subject import Subject
from ...spec.formats import FORMATS
from ...spec.rounding import model
from ...spec.rounding.tiers import canonical, ladder
from .arguments import Arguments
from .fit import Fit, fit
from .form import Form, form_of
from .reading import Reader
from .rows import UnusableError
from .sweep import Side, Tiny, sweep

Status = Literal["fits", "open", "generous", "too tight", "unusable"]


@dataclass(frozen=True)
class Calibration:
    """What was measured of one subject in one dtype.

    ``above``, ``below``: the largest deviations of the exponential, up to the factor that all exponentials of a row
    share, relative to ``e^x``; their ``lower`` bound is certain, and reached at ``argument``. ``tiny``: results below
    the normal range. ``fits``: each rounding model of the dtype, strongest first, beside what was seen; ``declared``
    the subject's own. ``disagreeing``: arguments whose exponential differs from row to row.
    """

    subject: str
    dtype: str
    status: Status
    sentence: str
    fraction: float = 1.0
    seed: int = 0
    arguments: int = 0
    total: int = 0
    above: Side | None = None
    below: Side | None = None
    tiny: Tiny | None = None
    form: Form | None = None
    disagreeing: int = 0
    declared: Fit | None = None
    fits: tuple[Fit, ...] = ()

    @property
    def supported(self) -> Fit | None:
        """The strongest model that nothing refutes, None if all are refuted."""
        return next((f for f in self.fits if f.holds), None)

    @property
    def measured(self) -> tuple[float, float]:
        """Bounds on the largest deviation, in ``u`` of the dtype."""
        assert self.above is not None
        assert self.below is not None
        u = FORMATS[self.dtype].u
        return max(self.above.lower, self.below.lower) / u, max(self.above.upper, self.below.upper) / u


def calibrate(
    subject: Subject,
    dtype: str = "float32",
    *,
    fraction: float = 1.0,
    seed: int = 0,
    listen: Callable[[int], None] = lambda count: None,
) -> Calibration:
    """Measure a subject's exponential as its softmax uses it.

    Every argument of float32, float16 and bfloat16 that matters is probed, or the share ``fraction`` of them, drawn
    with ``seed``; of float64 a sample. ``listen`` hears how many arguments were done. Raises ValueError when the
    subject does not take the dtype, or the fraction is not in (0, 1]. Source: extension; the derivation is in
    ``reading.py`` and ``fit.py``.

    >>> from hardmask.adapters.numpy_rows import softmax_where
    >>> mine = Subject("mine.softmax", softmax_where, dtypes=("float16",), tier="mixed")
    >>> calibrate(mine, "float16", fraction=0.05).status
    'open'
    """
    if dtype not in subject.dtypes:
        raise ValueError(f"{subject.id} does not take {dtype}; it takes {', '.join(subject.dtypes)}.")
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"A fraction is above 0 and at most 1; {fraction} is not.")
    arguments = Arguments(dtype, fraction, seed)
    try:
        form = form_of(subject, dtype, seed)
        blocks = sweep(subject, arguments, Reader(dtype, form.on_grid), listen)
    except UnusableError as problem:
        return Calibration(subject.id, dtype, "unusable", str(problem), fraction, seed)
    above, below, tiny = Side(), Side(), Tiny()
    for block in blocks:
        above.merge(block.above)
        below.merge(block.below)
        tiny.merge(block.tiny)
    fits = tuple(fit(tier, model(tier, dtype), blocks, tiny, form) for tier in ladder(dtype))
    tier = subject.tier_for("forward", dtype)
    declared = fit(tier, subject.rounding_for("forward", dtype), blocks, tiny, form)
    status, sentence = _judged(declared, fits, form, dtype)
    return Calibration(
        subject.id,
        dtype,
        status,
        sentence,
        fraction,
        seed,
        arguments.count,
        arguments.total,
        above,
        below,
        tiny,
        form,
        sum(block.disagreeing for block in blocks),
        declared,
        fits,
    )


def _judged(declared: Fit, fits: tuple[Fit, ...], form: Form, dtype: str) -> tuple[Status, str]:
    unit = f"u of {model(declared.tier, dtype).compute.name}"
    said = f"declared {declared.tier} allows exp {declared.alpha:g} {unit}, needed {interval(declared)}"
    supported = next((f for f in fits if f.holds), None)
    if not declared.holds:
        faults = list(declared.objections)
        if declared.lower > declared.alpha:
            faults.insert(0, "exp is worse than that")
        return "too tight", f"{said}: too tight, {', and '.join(faults)}. {_mend(declared, supported, form)}"
    if supported is not None and _index(supported, fits) < _index_of(declared.tier, fits, dtype):
        return "generous", f"{said}: generous, '{supported.tier}' grants all that was seen ({interval(supported)})."
    if declared.alpha > max(2.0 * declared.upper, fits[0].alpha):
        return "generous", f"{said}: generous, alpha={_rounded_up(max(declared.upper, fits[0].alpha)):g} is enough."
    if not declared.certain:
        return "open", f"{said}: fits as far as {dtype} weights can tell."
    return "fits", f"{said}: fits."


def _mend(declared: Fit, supported: Fit | None, form: Form) -> str:
    custom = not declared.objections and math.isfinite(declared.upper)
    if custom and form.shift and form.rounded is None:
        # Tiers for other forms of the exponent would grant the error too, for a reason that does not apply.
        return f"The exponent is formed as declared; a custom model needs {_alpha(declared)}."
    if supported is not None:
        return f"Declare tier='{supported.tier}'."
    return "No tier grants this." + (f" A custom model needs {_alpha(declared)}." if custom else "")


def _alpha(declared: Fit) -> str:
    return f"model={{'alpha': {_rounded_up(declared.upper):g}}}"


def _rounded_up(alpha: float) -> float:
    digits = 10.0 ** (math.floor(math.log10(alpha)) - 1)
    return math.ceil(alpha / digits) * digits


def interval(found: Fit) -> str:
    """The alpha that a model needs, in words.

    >>> interval(Fit("strict", 4.0, 1.386, 1.391, ())), interval(Fit("mixed", 4.0, 0.0, 2.5e4, ()))
    ('1.39', 'at most 2.5e+04')
    """
    low, high = f"{found.lower:.3g}", f"{found.upper:.3g}"
    if low == high:
        return low
    return f"at most {high}" if found.lower == 0.0 else f"{low} to {high}"


def _index(found: Fit, fits: tuple[Fit, ...]) -> int:
    return fits.index(found)


def _index_of(tier: str, fits: tuple[Fit, ...], dtype: str) -> int:
    return [f.tier for f in fits].index(canonical(tier, dtype))
