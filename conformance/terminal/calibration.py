"""A calibration on a terminal, and its progress."""

from __future__ import annotations

import math
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ...spec.formats import FORMATS
from ..calibrate import Calibration, interval
from ..calibrate.arguments import Arguments
from ..calibrate.form import OFFSETS, SUM_KEYS, Form
from ..calibrate.sweep import Side, Tiny


class CalibrationBar:
    """A progress bar with the time left, silent where the console is no terminal."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description:<34}", markup=False),
            BarColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> CalibrationBar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def start(self, description: str, arguments: Arguments) -> None:
        """The next subject begins."""
        self._progress.reset(self._task, description=description, total=arguments.count)

    def __call__(self, count: int) -> None:
        """So many arguments are done."""
        self._progress.advance(self._task, count)


def print_calibration(found: Calibration, console: Console) -> None:
    """Print what was measured, one line for each question, and what it means for the declaration."""
    for line in lines(found):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def lines(found: Calibration) -> list[str]:
    """The lines of :func:`print_calibration`."""
    if found.above is None or found.below is None or found.tiny is None or found.form is None:
        return [f"{found.subject} {found.dtype}", f"  cannot be calibrated: {found.sentence}"]
    first, last = Arguments(found.dtype).ends
    every = found.arguments == found.total
    share = f"all {found.total:,}" if every else f"{found.arguments:,} of {found.total:,}"
    seed = "" if every else f", seed {found.seed}"
    head = f"{found.subject} {found.dtype}: {share} arguments from {first:.3g} to {last:g}{seed}"
    rows = [
        ("exp, too large", _side(found.above, found.dtype)),
        ("exp, too small", _side(found.below, found.dtype)),
        ("below normal", _tiny(found.tiny, found.dtype)),
        ("numerators", _numerators(found)),
        ("exponents", _exponents(found.form, found.dtype)),
        ("division", _division(found.form)),
        ("sum", _sum(found.form)),
        ("row sum", f"1 within {found.form.row_sum / FORMATS[found.dtype].u:.3g} u"),
        ("supports", _supports(found)),
        (found.status, found.sentence),
    ]
    return [head, *(f"  {name:<15} {text}" for name, text in rows)]


def _side(side: Side, dtype: str) -> str:
    u = FORMATS[dtype].u
    low, high = f"{side.lower / u:.3g}", f"{side.upper / u:.3g}"
    size = f"by {low} u" if low == high else f"by {low} to {high} u"
    if side.lower == 0.0:
        return f"by {high} u at most"
    return f"{size}, at {side.argument:.6g} ({side.argument.hex()})"


def _tiny(tiny: Tiny, dtype: str) -> str:
    f = FORMATS[dtype]
    zero = "no weight is 0" if tiny.zero_from == -math.inf else f"weights are 0 from {tiny.zero_from:.6g} downwards"
    if tiny.zero_from > -math.inf and math.exp(tiny.zero_from) > 2.0 * f.eta:
        return f"{zero}: results below {math.exp(tiny.zero_from) / f.lam:.3g} times the smallest normal are flushed"
    low, high = f"{tiny.lower:.3g}", f"{tiny.upper:.3g}"
    off = high if low == high else f"{low} to {high}"
    return f"off by {off} times the smallest subnormal; {zero}"


def _numerators(found: Calibration) -> str:
    assert found.form is not None
    text = f"numbers of {found.dtype}" if found.form.on_grid else f"finer than {found.dtype}"
    if found.disagreeing:
        text += f"; {found.disagreeing:,} arguments have more than one exponential, depending on where they stand"
    return text


def _exponents(form: Form, dtype: str) -> str:
    if form.shift:
        return f"differences of scores: offsets of ±1 to ±{OFFSETS[-2]:g} change no bit"
    u = FORMATS[dtype].u
    sizes = sorted({abs(o.offset) for o in form.offsets})
    worst = {s: max(max(o.above.lower, o.below.lower) for o in form.offsets if abs(o.offset) == s) / u for s in sizes}
    shown = ", ".join(f"{worst[s]:.3g} u at ±{s:g}" for s in sizes[::5])
    return f"depend on a common offset of the scores: off by {shown}"


def _division(form: Form) -> str:
    if form.divisions is None:
        return "cannot be told"
    return "one rounding: a division" if form.divisions == 1 else "two roundings: a product with the reciprocal"


def _sum(form: Form) -> str:
    return f"of {SUM_KEYS:,} terms, all but one below u: off by {form.sum_low:.3g} to {form.sum_high:.3g} u"


def _supports(found: Calibration) -> str:
    best = found.supported
    if best is None:
        return "no tier"
    return f"{best.tier}, which allows exp {best.alpha:g} u and needs {interval(best)}"
