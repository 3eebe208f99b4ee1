"""How a subject forms its exponents, sums and divides, as far as weights tell: small experiments on few rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ...adapters.subject import Subject
from ...spec.batch import Array, Floats
from ...spec.formats import FORMATS, HALVES, Format
from .reading import Reader
from .rows import KEYS, ask, layout
from .sweep import Side

SUM_KEYS = 4097
"""Keys of the row that tells how sums are rounded."""

OFFSETS = tuple(sign * 2.0**k for k in range(11) for sign in (1.0, -1.0))

_DEPTH = 16.0  # arguments of the experiments lie above minus this
_LOOKS = 12
_LOOKS_AT_OFFSETS = 5
_DIVISORS = (3, 5, 7, 11, 13)


@dataclass
class Offset:
    """The deviations in rows whose scores all have ``offset`` added, exactly; relative, as in a reading.

    They are left out where every weight has the ``same_bits`` as without the offset.
    """

    offset: float
    same_bits: bool
    above: Side = field(default_factory=Side)
    below: Side = field(default_factory=Side)


@dataclass
class Form:
    """What was found out.

    ``on_grid``: numerators are numbers of the storage format, and ``exp(0)`` is 1. ``divisions``: roundings of the
    normalisation, None where that cannot be told. ``sum_low``, ``sum_high``: bounds on the relative deviation of the
    sum of :data:`SUM_KEYS` terms, in ``u`` of the storage format. ``offsets``: one entry for each of :data:`OFFSETS`.
    ``row_sum``: how far the weights of a row are from adding up to 1, at most, over all offsets. ``rounded``: for the
    halves, the deviations where no difference of scores is a number of the format.
    """

    on_grid: bool
    divisions: int | None
    sum_low: float
    sum_high: float
    offsets: list[Offset]
    row_sum: float
    rounded: Offset | None

    @property
    def shift(self) -> bool:
        """Whether a common offset changes no bit, so that exponents are differences of scores."""
        return all(o.same_bits for o in self.offsets)


def form_of(subject: Subject, dtype: str, seed: int) -> Form:
    """Make all experiments on one subject. Raises UnusableError when an answer tells nothing."""
    rng = np.random.default_rng(seed)
    f = FORMATS[dtype]
    on_grid = _on_grid(subject, f, rng)
    low, high = _sum(subject, f)
    reader = Reader(dtype, on_grid)
    divisions = _divisions(subject, f, rng) if on_grid else None
    offsets, row_sum = _offsets(subject, f, reader, rng)
    return Form(on_grid, divisions, low, high, offsets, row_sum, _rounded(subject, f, reader, rng))


def _on_grid(subject: Subject, f: Format, rng: np.random.Generator) -> bool:
    """Whether intervals narrowed by many looks still hold a number of the format each."""
    x = (-rng.uniform(2.0**-4, min(9.0, -math.log(64.0 * f.lam)), 1500)).astype(f.dtype)
    reader = Reader(f.name, False)
    low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    for stage in range(_LOOKS):
        rows = layout(stage)
        found = reader.read(ask(subject, *rows.rows(x, rng if stage else None)), rows, x)
        low, high = np.maximum(low, found.low), np.minimum(high, found.high)
    # A kernel with two exponentials for one argument may leave a few intervals empty.
    return reader.empty(low, high, x) <= len(x) // 10


def _divisions(subject: Subject, f: Format, rng: np.random.Generator) -> int | None:
    """Compare ``e / m`` and ``e * (1 / m)`` with what a row of m maxima gives; e is read where the sum is 1."""
    end = -math.log(f.lam) - 4.0
    start = -math.log(f.u / 256.0)
    if end <= start:
        return None
    x = (-rng.uniform(start, end, 3 * 512)).astype(f.dtype)
    numerators = ask(subject, *_at_the_end(x, 1))[:, -3:]
    once = twice = True
    for m in _DIVISORS:
        returned = ask(subject, *_at_the_end(x, m))[:, -3:]
        divided = (numerators / m).astype(f.dtype).astype(np.float64)
        reciprocal = np.array(1.0 / m).astype(f.dtype).astype(np.float64)
        multiplied = (numerators * reciprocal).astype(f.dtype).astype(np.float64)
        once &= bool(np.all(returned == divided))
        twice &= bool(np.all(returned == multiplied))
    return 1 if once else 2 if twice else None


def _at_the_end(x: Array, zeros: int) -> tuple[Array, np.ndarray]:
    """Rows of so many maxima, then blocked keys, with three arguments at the last keys."""
    scores = np.zeros((len(x) // 3, KEYS), x.dtype)
    scores[:, -3:] = x.reshape(-1, 3)
    mask = np.ones(scores.shape, bool)
    mask[:, zeros:-3] = False
    return scores, mask


def _sum(subject: Subject, f: Format) -> tuple[float, float]:
    """A row of one maximum and terms below half an ulp of it, which a sum in sequence loses."""
    y = np.array(math.log(0.4 * f.u)).astype(f.dtype)
    scores = np.full((1, SUM_KEYS), y)
    scores[0, 0] = 0.0
    top = float(ask(subject, scores, np.ones(scores.shape, bool))[0, 0])
    true = 1.0 + (SUM_KEYS - 1) * math.exp(float(y))
    doubt = 1.0 if f.name in ("float32", "float64") else 1.01
    seen = (1.0 / top - true) / true / f.u
    return seen - doubt, seen + doubt


def _offsets(subject: Subject, f: Format, reader: Reader, rng: np.random.Generator) -> tuple[list[Offset], float]:
    step = 2.0 ** (OFFSETS[-2].as_integer_ratio()[0].bit_length() - f.precision)
    depth = max(_DEPTH, 10.0 * step)
    x = -step * np.unique(rng.integers(1, int(depth / step) + 1, 960)).astype(np.float64)
    x = x[x > math.log(f.lam) + 4.0] if f.name == "float16" else x
    arguments = x.astype(f.dtype)
    state = int(rng.integers(1 << 32))

    def weights(stage: int, offset: float) -> Floats:
        draws = np.random.default_rng((state, stage)) if stage else None
        return ask(subject, *layout(stage).rows(arguments, draws, offset, max(step, 2.0**-6)))

    plain = [weights(stage, 0.0) for stage in range(_LOOKS_AT_OFFSETS)]
    found = []
    row_sum = max(map(_off_one, plain))
    for offset in OFFSETS:
        answers = [weights(stage, offset) for stage in range(_LOOKS_AT_OFFSETS)]
        if all(map(np.array_equal, answers, plain)):
            found.append(Offset(offset, True))  # what the deviations are then, the sweep tells
            continue
        row_sum = max(row_sum, *map(_off_one, answers))
        low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
        for stage, answer in enumerate(answers):
            reading = reader.read(answer, layout(stage), arguments)
            low, high = np.maximum(low, reading.low), np.minimum(high, reading.high)
        found.append(_extremes(offset, low, high, x))
    return found, row_sum


def _off_one(weights: Floats) -> float:
    return max(abs(math.fsum((*row, -1.0))) for row in weights.tolist())


def _rounded(subject: Subject, f: Format, reader: Reader, rng: np.random.Generator) -> Offset | None:
    """Rows whose maximum is 8 and whose other scores are so fine that no difference is a number of the format."""
    if f.name not in HALVES:
        return None
    s = np.unique(rng.uniform(2.0**-4, 1.0, 960).astype(f.dtype)).astype(np.float64)
    x = s - 8.0
    x = x[x.astype(f.dtype).astype(np.float64) != x]
    low, high = np.full(len(x), -np.inf), np.full(len(x), np.inf)
    for stage in range(_LOOKS):
        rows = layout(stage)
        scores, mask = rows.rows(x, rng if stage else None, 8.0)
        reading = reader.read(ask(subject, scores.astype(f.dtype), mask), rows, x)
        low, high = np.maximum(low, reading.low), np.minimum(high, reading.high)
    return _extremes(8.0, low, high, x)


def _extremes(offset: float, low: Floats, high: Floats, x: Floats) -> Offset:
    seen = Offset(offset, False)
    for side, certain, possible in ((seen.above, low, high), (seen.below, -high, -low)):
        at = int(certain.argmax())
        side.certain(float(certain[at]), float(x[at]))
        side.upper = max(side.upper, float(possible.max()))
    return seen
