"""``path_agreement``: subjects of one group are told one mask in different ways, or take different paths to one answer.

Two paths disagree where their answers differ by more than the sum of their budgets, or where one gives a number and the
other none. Of the two, the one that departs from the definitions is at fault: both may keep what they declare, a zero
and a NaN on a query that may see nothing, and still a caller who changes one for the other gets another answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...adapters.attention import Attention
from ...spec.batch import Bools, Floats
from ..judgement import Comparison, used
from .checks.values import ARRAYS
from .judgement import Judged, flat, named, of_entries
from .view import AttentionView

NAME = "path_agreement"


def agreement(views: Sequence[AttentionView]) -> Iterator[tuple[Attention, list[Judged]]]:
    """For every subject that belongs to a group, what its answers say beside those of the others of the group."""
    groups: dict[str, list[AttentionView]] = {}
    for view in views:
        if view.subject.group:
            groups.setdefault(view.subject.group, []).append(view)
    for members in groups.values():
        for view in members:
            others = [o for o in members if o is not view]
            if others:
                yield view.subject, list(_beside(view, others))


def _beside(view: AttentionView, others: Sequence[AttentionView]) -> Iterator[Judged]:
    for quantity, method in ARRAYS:
        ours = view.values(quantity)
        if ours is None:
            continue
        a = flat(ours)
        true = flat(view.known.exact(quantity).value)
        ratio = np.zeros(a.shape)
        error, budget = np.zeros(a.shape), np.zeros(a.shape)
        partner = ""
        for other in others:
            theirs = other.values(quantity)
            if theirs is None:
                continue
            b = flat(theirs)
            limit = flat(view.budget(quantity)) + flat(other.budget(quantity))
            with np.errstate(invalid="ignore", over="ignore"):
                apart = np.abs(a - b)
            apart[np.isnan(a) & np.isnan(b)] = 0.0
            # A difference counts against the answer that is farther from the truth.
            share = np.where(_farther(a, b, true), used(apart, limit), 0.0)
            worse = share > ratio
            if (share > 1.0).any() and not partner:
                partner = other.subject.id
            ratio, error = np.where(worse, share, ratio), np.where(worse, apart, error)
            budget = np.where(worse, limit, budget)
        yield of_entries(
            (NAME,),
            "difference",
            Comparison(error, budget, ratio, ratio > 1.0),
            ours.shape,
            np.ones(len(ratio), bool),
            a,
            view.tier(method),
            named(f"unlike {partner}"),
            remark=quantity,
        )


def _farther(a: Floats, b: Floats, true: Floats) -> Bools:
    """Where ``a`` is at least as far from the truth as ``b``; NaN is farther than any number."""
    with np.errstate(invalid="ignore", over="ignore"):
        mine, other = np.abs(a - true), np.abs(b - true)
    mine[np.isnan(mine)] = np.inf
    other[np.isnan(other)] = np.inf
    return np.asarray(mine >= other)
