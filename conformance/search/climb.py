"""Breed rows on which a subject uses more and more of its error budget.

A population of rows is judged as one batch of the ordinary shape by the ordinary checks. The rows that use the largest
share of a budget are kept and changed at random, for a fixed number of generations: nothing depends on a clock, and the
seed reproduces every row.

Why not Hypothesis and its ``target``: it judges one example at a time. One call of a subject and its oracle costs about
as much for one row as for a few hundred, so in the same time a population sees hundreds of times as many rows.
``benchmarks/search.py`` measures both.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from ...adapters.subject import Method, Subject
from ...spec.batch import Batch, Floats
from ...spec.contracts import contract
from ...spec.formats import FORMATS, Format
from ...spec.oracle.audit import Audit
from ..audit import audited
from ..cases import Case
from ..cases.build import SEARCHED, build
from ..checks import derivative, forward
from ..judgement import Codes, Outcome
from ..minimise.rows import Rows, joined
from ..minimise.trial import stored
from ..runner import Policy, Results, count_faults
from ..tally import Tallies, count
from ..truth import Truth
from ..view import View
from .mutate import mutated

GENERATIONS = 100
ELITE = 64
"""Rows that each objective keeps from one generation to the next."""

FRESH = 0.1
"""Share of each generation that is drawn anew."""


@dataclass(frozen=True)
class Objective:
    """What a part of the population climbs: the share of one budget. ``vectors`` may change with the rows."""

    declaration: str
    method: Method
    quantity: str
    vectors: str | None = None


OBJECTIVES: tuple[Objective, ...] = (
    Objective("spec_eq_weights", "forward", "weights"),
    Objective("row_sum", "forward", "row sum"),
    Objective("backward_eq_derivative", "vjp", "vjp", "cotangents"),
    Objective("derivative_apply", "jvp", "jvp", "tangents"),
)


@dataclass(frozen=True, eq=False)
class Climb(Case):
    """The directed search for one subject in one dtype. ``start``: the worst rows that the run has seen."""

    subject: str = field(kw_only=True)
    start: Rows | None = field(kw_only=True, default=None)
    generations: int = field(kw_only=True, default=GENERATIONS)

    @property
    def key(self) -> str:
        """Names the search."""
        return f"{self.dtype}/search {self.subject}/{self.rows}x{self.keys}/{self.round}"


@dataclass(eq=False)
class _Peak:
    """The best rows of one objective, best first."""

    objective: Objective
    rows: Rows | None = None
    share: Floats = field(default_factory=lambda: np.zeros(0))

    def keep(self, rows: Rows, share: Floats) -> None:
        """Merge judged rows in; of equal shares one is kept, which keeps the rows different."""
        pool = rows if self.rows is None else joined([self.rows, rows])
        shares = np.concatenate([self.share, share])
        _, first = np.unique(-shares, return_index=True)
        self.rows, self.share = pool.take(first[:ELITE]), shares[first[:ELITE]]


def climb(case: Climb, subject: Subject, policy: Policy) -> tuple[Results, Audit]:
    """Judge every generation of a search and count what the checks say, under the family ``directed search``.

    The truth of the last generation is audited. A call that raises ends the search, as an error.

    >>> from hardmask.adapters import resolve
    >>> (subject,) = resolve(["numpy.softmax-where"])
    >>> case = Climb("float32", "search", 104, 16, 0, 0, subject=subject.id, generations=3)
    >>> results, audit = climb(case, subject, Policy())
    >>> results[subject.id, "float32"]["row_sum", "directed search"].checked
    312
    """
    rng = np.random.default_rng((case.seed, zlib.crc32(case.key.encode())))
    form, declared = FORMATS[case.dtype], contract(policy.contract_of(subject))
    peaks = [_Peak(o) for o in OBJECTIVES if o.method in subject.methods]
    tallies: Tallies = {}
    for generation in range(case.generations):
        rows = _born(rng, form, case, peaks, generation)
        batch = _batch(case, rows, generation)
        view = View(subject, declared, Truth(batch), policy.required)
        outcomes = [outcome for check in (forward.check, derivative.check) for outcome in check(view)]
        for outcome in outcomes:
            count(outcome, batch, tallies)
        if view.faults:
            count_faults(case, view, tallies)
            break
        for peak in peaks:
            found = next((o for o in outcomes if _matches(o, peak.objective)), None)
            if found is not None:
                # What is not a number at all cannot be made worse; it is no place to climb from.
                share = np.where(found.applies & np.isfinite(found.ratio), found.ratio, 0.0)
                peak.keep(rows, share)
    audit = audited(view.truth, case.seed, len(subject.methods) > 1)
    return {(subject.id, case.dtype): tallies}, audit


def _matches(outcome: Outcome, objective: Objective) -> bool:
    same = outcome.quantity == objective.quantity and not outcome.remark
    return same and objective.declaration in outcome.declarations


def _born(rng: np.random.Generator, form: Format, case: Climb, peaks: list[_Peak], generation: int) -> Rows:
    """The rows of a generation: random and given ones first, later mostly changed copies of the best."""
    known = [p for p in peaks if p.rows is not None]
    if not known:
        fresh = _random(case, case.rows, generation)
        return fresh if case.start is None else joined([case.start, fresh]).take(slice(case.rows))
    fresh = _random(case, max(1, int(case.rows * FRESH)), generation)
    parts = [fresh]
    places = np.array_split(np.arange(case.rows - len(fresh.scores)), len(known))
    for peak, mine in zip(known, places, strict=True):
        assert peak.rows is not None
        # The best are chosen most often.
        chosen = (len(peak.share) * rng.random(len(mine)) ** 2).astype(np.int64)
        parts.append(mutated(rng, form, peak.rows.take(chosen), peak.objective.vectors))
    return joined(parts)


def _random(case: Climb, rows: int, generation: int) -> Rows:
    batch = build(
        "shapes", case.key, (case.seed, generation, zlib.crc32(case.key.encode())), case.dtype, rows, case.keys
    )
    order: Codes = np.zeros(batch.shape, np.int64)
    vectors = [v.astype(np.float64) for v in (batch.cotangents, batch.tangents)]
    return Rows(batch.scores64, batch.mask, vectors[0], vectors[1], order)


def _batch(case: Climb, rows: Rows, generation: int) -> Batch:
    return Batch(
        key=f"{case.key}/{generation}",
        dtype=case.dtype,
        scores=stored(rows.scores, case.dtype),
        mask=rows.mask,
        cotangents=stored(rows.cotangents, case.dtype),
        tangents=stored(rows.tangents, case.dtype),
        family=np.zeros(len(rows.scores), np.int64),
        families=(SEARCHED,),
    )
