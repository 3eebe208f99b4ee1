"""What a rounding model beyond the tiers would let through: its generosity, measured on the mutants of accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..adapters.subject import Method, Subject
from .cases import plan
from .document import CustomModel
from .mutants import Mutant, mutants
from .runner import Policy, Results, judge, merge


def custom_models(subject: Subject, seed: int = 0) -> dict[str, CustomModel]:
    """The model of each ``method:dtype`` that admits more than its tier: the changes, and what they let through.

    Every mutant of accuracy is judged as if it had declared that model, on rows of a smoke run with this seed; listed
    are those that are caught under their own tier and not under the model.

    >>> from hardmask.adapters.numpy_rows import softmax_where
    >>> wide = Subject("mine.wide", lambda s, m: softmax_where(s, m).weights, dtypes=("float32",), model={"alpha": 1e4})
    >>> found = custom_models(wide)["forward:float32"]
    >>> found.changes, "fast-exp-1e-4" in found.lets_through
    ('alpha=10000.0', True)
    """
    return {
        f"{method}:{dtype}": CustomModel(
            changes=changes, lets_through=sorted(m.name for m in _let_through(subject, method, dtype, seed))
        )
        for dtype in subject.dtypes
        for method in subject.methods
        if (changes := subject.custom(method, dtype))
    }


def _let_through(subject: Subject, method: Method, dtype: str, seed: int) -> Iterator[Mutant]:
    chosen = [m for m in mutants() if m.numeric and dtype in m.subject.dtypes and method in m.subject.methods]
    lax = [replace(m.subject, tier=subject.tier, model=subject.model) for m in chosen]
    own, custom = (_failing([m.subject for m in chosen], method, dtype, seed), _failing(lax, method, dtype, seed))
    yield from (m for m in chosen if m.subject.id in own and m.subject.id not in custom)


def _failing(subjects: list[Subject], method: Method, dtype: str, seed: int) -> set[str]:
    """Ids of the subjects that fail on what one method decides."""
    only = [
        replace(s, vjp=s.vjp if method == "vjp" else None, jvp=s.jvp if method == "jvp" else None) for s in subjects
    ]
    results: Results = {}
    for case in plan("smoke", seed, (dtype,)):
        merge(results, judge(case, only, Policy(measure=False)))
    return {id for (id, _), tallies in results.items() if any(t.failed or t.errors for t in tallies.values())}
