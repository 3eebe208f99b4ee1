"""Measure the strongest accuracy tier under which each declaration holds, whatever the subject declares.

The answers of a subject are judged again under other tiers. A tier that some row exceeds is out for the whole run, and
so is not tried again: :class:`Measures` remembers. A subject that declares the strongest tier and keeps it costs
nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ..spec.batch import Batch
from ..spec.rounding import ladder, weaker
from .checks import CHECKS
from .judgement import Outcome
from .view import View

SIZES: tuple[float, ...] = (1.0, 16.0, 256.0, 4096.0, 65536.0, np.inf)
"""Rows are grouped by their largest allowed score: below 1, below 16, ..., and all others."""

NONE = ""
"""The strongest tier of a declaration that holds under none."""

Check = Callable[[View], Iterator[Outcome]]
Measures = dict[tuple[str, str], dict[str, set[str]]]
"""What is known in the course of a run: subject and dtype -> declaration -> tiers that some row exceeded."""


def measured(view: View, judged: Sequence[tuple[Check, Outcome]], known: Measures) -> list[Outcome]:
    """The outcomes with the tiers under which they fail, as far as these are not yet known to fail.

    ``judged``: what the checks said, in their order, each outcome with the check that it comes from.

    Tiers stronger than the declared one are tried from the strongest on until one holds, which includes those that
    contain it; weaker ones only if the declared one fails. Adds to ``known``.
    """
    steps = ladder(view.batch.dtype)
    out = known.setdefault((view.subject.id, view.batch.dtype), defaultdict(set))
    checks = [check for check, _ in judged]
    found = [_Found(outcome, view.batch.dtype) for _, outcome in judged]
    for tier in steps:
        mine = [f.wants(tier, out) for f in found]
        if not any(mine):
            continue
        needed = {check for check, wanted in zip(checks, mine, strict=True) if wanted}
        again = (o for check in CHECKS if check in needed for o in check(view.at(tier)))
        for f, check, wanted in zip(found, checks, mine, strict=True):
            if check in needed:
                outcome = next(again)
                if wanted:
                    f.judge(tier, outcome)
    for f in found:
        for name in f.outcome.declarations:
            out[name] |= f.failing
    return [f.result() for f in found]


class _Found:
    """What is known about one outcome under each tier."""

    def __init__(self, outcome: Outcome, dtype: str) -> None:
        self.outcome, self.dtype = outcome, dtype
        self.sharpest: Outcome | None = None
        self.holds: set[str] = set()
        self.failing: set[str] = set()
        self.candidates: set[str] = set()
        steps = ladder(dtype)
        failed = outcome.failed
        if not np.any(outcome.budget[outcome.applies] > 0.0):
            # Nothing but exact values is allowed, whatever the tier.
            self.failing = set(steps) if failed.any() else set()
        elif not failed.any() and not np.any(outcome.error[outcome.applies] != 0.0):
            self.holds = set(steps)  # no error at all
        elif outcome.tier not in steps:  # a custom model
            self.candidates = set(steps)
        else:
            self.candidates = set(steps[: steps.index(outcome.tier)])
            self._declared(steps)

    def _declared(self, steps: tuple[str, ...]) -> None:
        tier, failed = self.outcome.tier, self.outcome.failed
        if not failed.any():
            self.holds.add(tier)
            return
        self.failing.add(tier)
        if tier == steps[0]:
            self.sharpest = self.outcome
        if np.isfinite(self.outcome.ratio[failed]).all():
            self.candidates |= set(weaker(tier, self.dtype))
        else:
            self.failing |= set(steps)

    def wants(self, tier: str, out: dict[str, set[str]]) -> bool:
        """Whether this outcome has yet to be judged under a tier; under the strongest always, to tell how far it is."""
        if tier not in self.candidates:
            return False
        if tier != ladder(self.dtype)[0] and all(tier in out[name] for name in self.outcome.declarations):
            return False
        return tier not in self.failing and not any(tier in weaker(held, self.dtype) for held in self.holds)

    def judge(self, tier: str, again: Outcome) -> None:
        """Take in the outcome under another tier."""
        assert again.declarations == self.outcome.declarations
        if not again.failed.any():
            self.holds.add(tier)
            return
        self.failing.add(tier)
        if tier == ladder(self.dtype)[0]:
            self.sharpest = again

    def result(self) -> Outcome:
        """The outcome with what was found."""
        if not self.failing:
            return self.outcome
        return replace(self.outcome, failing=frozenset(self.failing), sharpest=self.sharpest)


def sizes(batch: Batch) -> npt.NDArray[np.int64]:
    """The group of each row by its largest allowed score, as an index into :data:`SIZES`."""
    largest = np.abs(np.where(batch.mask, batch.scores64, 0.0)).max(axis=1, initial=0.0)
    return np.searchsorted(SIZES, largest, side="right").clip(max=len(SIZES) - 1)


def strongest(declared: str, failing: Collection[str], dtype: str) -> str:
    """The strongest tier that no row exceeded; :data:`NONE` where all that were tried failed.

    ``declared``: the tier that was declared, or the words of a custom model.

    >>> strongest("half-ops", {"mixed", "exp2", "online", "lse", "mixed-2"}, "float16")
    'half-ops'
    >>> strongest("strict", {"strict", "exp2"}, "float32")
    'online'
    """
    steps = ladder(dtype)
    if declared not in steps:
        return next((t for t in steps if t not in failing), declared)
    tried = (*steps[: steps.index(declared) + 1], *weaker(declared, dtype))
    return next((t for t in steps if t in tried and t not in failing), NONE)
