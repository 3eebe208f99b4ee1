"""Which tier a subject declares for a declaration, and which one it was found to keep."""

from __future__ import annotations

from ..adapters.subject import Subject
from ..spec.rounding import ladder
from .checks import SERVED_BY
from .judgement import Tally
from .measure import strongest
from .tally import Tallies
from .view import declared_tier


def families(tallies: Tallies, key: str) -> dict[str, Tally]:
    """The tallies of one declaration, by family."""
    return {family: tally for (name, family), tally in tallies.items() if name == key}


def declared_for(subject: Subject, key: str, dtype: str) -> str:
    """The tier that a subject declares for a declaration: the weakest of those of the methods that decide it."""
    methods = {m for served in SERVED_BY[key] for m in served.split("+")}
    tiers = {declared_tier(subject, m, dtype) for m in subject.methods if m in methods}
    steps = ladder(dtype)
    # A custom model is in no order; it is the declared one wherever it is used.
    return max(sorted(tiers), key=lambda t: steps.index(t) if t in steps else len(steps))


def held(subject: Subject, key: str, dtype: str, mine: dict[str, Tally]) -> str:
    """The strongest tier under which a declaration was found to hold, over all families."""
    failing = {tier for tally in mine.values() for tier in tally.failing}
    return strongest(declared_for(subject, key, dtype), failing, dtype)
