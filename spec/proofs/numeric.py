"""The arbitrary-precision leg: the same residuals over mpmath numbers and over mpmath intervals.

At :data:`DIGITS` digits. A claim holds when the two sides differ by less than :data:`RESIDUAL`, relative to
``max(1, |right|)`` (relative claims: to ``|right|``), and when the interval enclosure of the difference contains 0 and
is, relative to the same, narrower than :data:`WIDTH`. The digits beyond 50 are guard digits: forming ``exp`` of a score
near 10^4 costs five of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

from mpmath.ctx_iv import MPIntervalContext
from mpmath.ctx_mp import MPContext

from ..arithmetic import Arithmetic
from .attention_remainder import measure as measure_attention
from .claims import Claim, NonNegative
from .definitions_record import Definitions
from .head import Head
from .proof import Control, Proof
from .remainder import Remainder, measure
from .row import Row
from .samples import SEED, Sample, samples
from .samples_heads import HeadSample, Table, head_samples

DIGITS = 70
RESIDUAL = 1e-45
WIDTH = 1e-40
# Intervals are slower; they run on the rows of at most this many keys, and on heads of at most so many pairs.
INTERVAL_KEYS = 6
INTERVAL_PAIRS = 9


@dataclass(frozen=True)
class NumericLeg:
    """What the numeric leg found, on rows or, for attention, on heads.

    ``residual`` is the worst relative residual, ``width`` the widest relative enclosure; ``remainder`` is there for the
    statements about differentiability.
    """

    rows: int
    claims: int
    residual: float
    enclosures: int
    width: float
    seed: int
    remainder: Remainder | None = None
    failure: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every claim held in both engines, and there was one."""
        return self.failure is None and self.claims > 0 and self.enclosures > 0


class Points:
    """Claims over mpmath numbers."""

    name = "arbitrary precision"

    def __init__(self, digits: int) -> None:
        self.context = MPContext()
        self.context.dps = digits
        self.poisons = (*(self.context.mpf(s) for s in ("nan", "inf", "-inf")), self.context.mpf(10) ** 30)

    def number(self, value: Fraction) -> Any:
        """An exact dyadic number."""
        return self.context.mpf(value.numerator) / value.denominator

    def error(self, claim: Claim) -> float:
        """The relative residual of a claim; infinite when it is false outright or not a number."""
        if isinstance(claim, NonNegative):
            value = self.context.mpf(claim.value)
            if value > 0 or (value == 0 and not claim.strict):
                return 0.0
            return float("inf") if claim.strict else _not_nan(abs(value))
        if isinstance(claim.right, bool | int | list):
            return 0.0 if claim.left == claim.right else float("inf")
        size = abs(claim.right)
        if claim.relative and size == 0:
            return 0.0 if claim.left == 0 else float("inf")
        distance = abs(claim.left - claim.right) / (size if claim.relative else max(1, size))
        return _not_nan(distance)

    def holds(self, error: float) -> bool:
        """Whether a residual is small enough."""
        return error < RESIDUAL


class Intervals:
    """Claims over mpmath intervals."""

    name = "intervals"

    def __init__(self, digits: int) -> None:
        self.context = MPIntervalContext()
        self.context.dps = digits
        self.poisons = (self.context.mpf(["-inf", "inf"]), self.context.mpf(10) ** 30)

    def number(self, value: Fraction) -> Any:
        """An exact dyadic number, as an interval of width 0."""
        return self.context.mpf(value.numerator) / value.denominator

    def error(self, claim: Claim) -> float:
        """The relative width of the enclosure of a claim; infinite when the enclosure refutes the claim."""
        if isinstance(claim, NonNegative):
            value = self.context.convert(claim.value)
            refuted = not value.b > 0 if claim.strict else not value.b >= 0
            undecided = not value.a > 0 if claim.strict else not value.a >= -WIDTH
            return float("inf") if refuted or undecided else 0.0
        if isinstance(claim.right, bool | int | list):
            return 0.0 if claim.left == claim.right else float("inf")
        difference = claim.left - claim.right
        size = abs(claim.right).b
        if claim.relative and size == 0:
            return 0.0 if difference.a == 0 and difference.b == 0 else float("inf")
        if not (difference.a <= 0 <= difference.b):
            return float("inf")
        return _not_nan((difference.delta / (size if claim.relative else max(1, size))).b)

    def holds(self, error: float) -> bool:
        """Whether an enclosure is narrow enough."""
        return error < WIDTH


def _not_nan(value: Any) -> float:
    result = float(value)
    return float("inf") if result != result else result


Engine = Points | Intervals


@cache
def engines() -> tuple[Engine, Engine]:
    """The two engines, made once."""
    return Points(DIGITS), Intervals(DIGITS)


def rows(proof: Proof, engine: Engine, seed: int) -> Iterator[Row | Head]:
    """The sample rows, or heads, in the numbers of one engine."""
    if proof.attention:
        for head in head_samples(seed):
            if isinstance(engine, Points) or len(head.q) * len(head.k) <= INTERVAL_PAIRS:
                yield _head(engine, head)
        return
    for sample in samples(seed):
        if isinstance(engine, Points) or len(sample.mask) <= INTERVAL_KEYS:
            yield _row(engine, sample)


@cache
def _row(engine: Engine, sample: Sample) -> Row:
    def vector(values: tuple[Fraction, ...]) -> list[Any]:
        return [engine.number(value) for value in values]

    ar = Arithmetic(engine.name, engine.context.exp, engine.context.mpf(0))
    return Row(
        f"row '{sample.family}' in {engine.name}",
        sample.mask,
        vector(sample.x),
        ar,
        vector(sample.u),
        vector(sample.v),
        vector(sample.g),
        engine.number(sample.c),
        engine.poisons,
    )


@cache
def _head(engine: Engine, sample: HeadSample) -> Head:
    def matrix(table: Table) -> list[list[Any]]:
        return [[engine.number(value) for value in row] for row in table]

    far = engine.context.mpf(10) ** 30
    return Head(
        f"head '{sample.family}' in {engine.name}",
        sample.mask,
        matrix(sample.q),
        matrix(sample.k),
        matrix(sample.v),
        engine.number(sample.scale),
        Arithmetic(engine.name, engine.context.exp, engine.context.mpf(0)),
        matrix(sample.g),
        matrix(sample.dq),
        matrix(sample.dk),
        matrix(sample.dv),
        (lambda x: 2 * x + 1, lambda x: x - far),
    )


def check_row(
    proof: Proof, engine: Engine, row: Row | Head, definitions: Definitions, refuting: type[Exception] = ArithmeticError
) -> tuple[int, float, str | None]:
    """The number of claims that held on a row, the worst error, and the first claim that did not, as a sentence.

    An exception of the type ``refuting``, raised by the definitions, is a claim that did not hold.
    """
    count, worst = 0, 0.0
    try:
        for claim in proof.residual(row, definitions):
            error = engine.error(claim)
            worst = max(worst, error)
            if not engine.holds(error):
                return count, worst, f"{claim.label} is off by {error:.3g} on {row.family}"
            count += 1
    except refuting as raised:
        return count, float("inf"), f"{type(raised).__name__} on {row.family}: {raised}"
    return count, worst, None


def prove_numeric(proof: Proof, definitions: Definitions, *, seed: int = SEED) -> NumericLeg:
    """Check one declaration for the given definitions, stopping at the first claim that does not hold."""
    counts, worst, used = [0, 0], [0.0, 0.0], 0
    failure: str | None = None
    for side, engine in enumerate(engines()):
        for row in rows(proof, engine, seed):
            done, error, failure = check_row(proof, engine, row, definitions, Exception)
            counts[side] += done
            worst[side] = max(worst[side], error)
            used += side == 0
            if failure:
                return NumericLeg(used, counts[0], worst[0], counts[1], worst[1], seed, None, failure)
    remainder = _measure(proof, definitions)
    failure = remainder.failure if remainder else None
    return NumericLeg(used, counts[0], worst[0], counts[1], worst[1], seed, remainder, failure)


def rejects(proof: Proof, control: Control, *, seed: int = SEED) -> bool:
    """Whether both engines, and the remainder where there is one, find the control's mistake."""
    definitions = control.apply()
    caught = all(
        any(check_row(proof, engine, row, definitions)[2] for row in rows(proof, engine, seed)) for engine in engines()
    )
    if not caught:
        return False
    remainder = _measure(proof, definitions)
    return remainder is None or remainder.failure is not None


def _measure(proof: Proof, definitions: Definitions) -> Remainder | None:
    """The remainder of the function that a proof says is differentiable."""
    if proof.differentiable == "scaledDotProductAttention":
        return measure_attention(definitions)
    return measure(proof.differentiable, definitions) if proof.differentiable else None
