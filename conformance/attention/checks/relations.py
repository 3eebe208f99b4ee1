"""Answers of one subject on related problems, compared with each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....adapters.subject import Method
from ....spec.attention.problem import Problem
from ....spec.batch import Floats
from ...calls import Fault
from ...judgement import Comparison, used
from ..calls import limit_of, takes
from ..judgement import Judged, Quantity, flat, named, of_bits, of_entries
from ..parts import EXTRA, alone, padded, prefix
from ..view import AttentionView, Known
from .values import ARRAYS

BATCH, PREFIX, PADDING = "attention_batch_invariance", "attention_prefix_invariance", "attention_padding_invariance"
FORWARD_ROWS, BACKWARD_ROWS = "unstack_hardMaskedSoftmaxSpec", "unstack_softmaxBackwardFromWeightsSpec"


def check(view: AttentionView) -> Iterator[Judged]:
    """A head alone and in company; the first queries of a causal problem without the later ones; padding."""
    problem = view.problem
    batch, heads, _, queries, keys, *_ = problem.sizes
    entry, head = batch - 1, heads - 1
    if problem.causal is not None and queries == keys:
        count = queries // 2
        part = prefix(problem, count)
        # Later queries reach the gradients of the keys, but not the output nor the gradient of earlier queries.
        yield from _compared(
            view, part, (PREFIX,), "prefix dependent", lambda name, a: a[:, :, :count] if name in _OF_QUERIES else None
        )
        return
    rows: dict[Method, str] = {"forward": FORWARD_ROWS, "vjp": BACKWARD_ROWS}
    group = head // (heads // problem.sizes[2])
    single = heads == problem.sizes[2]

    def mine(name: Quantity, a: Floats) -> Floats | None:
        if name in _OF_QUERIES:
            return a[entry : entry + 1, head : head + 1]
        return a[entry : entry + 1, group : group + 1] if single else None

    yield from _compared(view, alone(problem, entry, head), (BATCH,), "batch dependent", mine, rows)
    yield from _compared(view, padded(problem), (PADDING,), "padding dependent", lambda name, a: a)


_OF_QUERIES: tuple[Quantity, ...] = ("output", "dq", "tangent")


def _compared(
    view: AttentionView,
    part: Problem,
    names: tuple[str, ...],
    diagnosis: str,
    select: object,
    further: dict[Method, str] | None = None,
) -> Iterator[Judged]:
    """The subject's answers on a related problem beside the corresponding part of those on its own.

    Each may be off by its own budget, so that the two may differ by the sum.
    """
    if limit_of(view.subject, part) or not takes(view.subject, part):
        return
    assert callable(select)
    other = AttentionView(view.subject, view.contract, Known(part), frozenset())
    for quantity, method in ARRAYS:
        ours = view.values(quantity)
        if ours is None:
            continue
        theirs = other.values(quantity)
        selected = select(quantity, ours)
        if selected is None:
            continue
        declared = names if further is None or method not in further else (*names, further[method])
        if theirs is None:
            failure = other.answer(method)
            assert isinstance(failure, Fault)
            view.related_faults.setdefault(names[0], failure)
            continue
        keys = selected.shape[2]
        budget = flat(select(quantity, view.budget(quantity))) + flat(other.budget(quantity)[:, :, :keys])
        a, b = flat(selected), flat(theirs[:, :, :keys])
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(a - b)
        error[np.isnan(a) & np.isnan(b)] = 0.0  # one policy in both
        ratio = used(error, budget)
        yield of_entries(
            declared,
            "difference",
            Comparison(error, budget, ratio, ratio > 1.0),
            theirs[:, :, :keys].shape,
            np.ones(len(ratio), bool),
            b,
            view.tier(method),
            named(diagnosis),
            remark=f"{quantity} beside that of the whole",
            fact=f"{quantity} differs in bits" if np.any(error != 0.0) else "",
            problem=part,
        )
        if keys + EXTRA == theirs.shape[2] and quantity in ("dk", "dv"):
            rest = theirs[:, :, keys:]
            wrong = np.any(flat(rest) != 0.0, axis=1)
            if view.contract.kind == "nan":
                wrong &= ~np.any(np.isnan(flat(rest)), axis=1)
            every = np.ones(len(wrong), bool)
            remark = f"{quantity} of appended keys"
            yield of_bits(names, quantity, wrong, every, rest, view.tier(method), "leak", remark=remark, problem=part)
