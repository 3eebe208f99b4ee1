"""Output, gradients and tangents against the definitions; empty queries against the contract."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ....adapters.subject import Method
from ....spec.batch import Bools, Floats
from ....spec.contracts import Contract
from ...contracted import EmptyRows, keep_derivative
from ..diagnosis import fault
from ..judgement import Judged, Quantity, flat, named, of_bits, of_entries
from ..view import AttentionView

FORWARD = ("scaledDotProductAttention",)
VJP = ("scaledDotProductAttentionBackward", "attention_differentiability")
JVP = ("scaledDotProductAttentionJvp", "attention_differentiability")
ALL_TRUE = {
    "forward": "scaledDotProductAttention_allTrueMask",
    "vjp": "scaledDotProductAttentionBackward_allTrueMask",
    "jvp": "scaledDotProductAttentionJvp_allTrueMask",
}
APART, GRADIENTS_APART = "attention_non_interference", "attention_gradient_non_interference"
EMPTY, UNSEEN = "attention_empty_row", "attention_blocked_gradient_zero"
BLOCKED = "hardMaskedSoftmaxSpec_blocked_eq_zero"

ARRAYS: tuple[tuple[Quantity, Method], ...] = (
    ("output", "forward"),
    ("dq", "vjp"),
    ("dk", "vjp"),
    ("dv", "vjp"),
    ("tangent", "jvp"),
)
"""Every array that a subject returns, with the method that returns it."""


def check(view: AttentionView) -> Iterator[Judged]:
    """Everything that is returned, entry by entry."""
    for quantity, method in ARRAYS:
        values = view.values(quantity)
        if values is not None:
            yield from _array(view, quantity, method, values)
    if view.weights is not None:
        yield from _weights(view, view.weights)
    yield from _flags(view)


def _array(view: AttentionView, quantity: Quantity, method: Method, values: Floats) -> Iterator[Judged]:
    comparison = view.compared(quantity, values)
    rows = flat(values)
    every = np.ones(len(rows), bool)
    of_queries = quantity in ("output", "dq", "tangent")
    silent = view.empty if of_queries else view.problem.unseen.reshape(-1)
    shared = view.contract.kind == "nan" and not of_queries and bool(view.empty.any())
    permitted = np.any(np.isnan(rows), axis=1) if shared else np.zeros(len(rows), bool)
    applies = every & ~silent & ~permitted if shared else every & ~silent

    def diagnose(vectors: np.ndarray) -> np.ndarray:
        return fault(view, quantity, comparison, vectors)

    names = list({"forward": FORWARD, "vjp": VJP, "jvp": JVP}[method])
    if view.known.all_allowed:
        names.append(ALL_TRUE[method])
    if view.known.poison:
        names.append(APART if method == "forward" else GRADIENTS_APART)
    blind = _blind(view, flat(view.budget(quantity))) if quantity == "output" else None
    yield of_entries(
        tuple(names),
        quantity,
        comparison,
        values.shape,
        applies,
        rows,
        view.tier(method),
        diagnose,
        blind=blind,
        failing=view.failing(quantity, comparison, applies, None),
        remark=quantity,
        entries=comparison.entries(view.problem.dtype),
        bits=view.bits(quantity, method),
    )
    if of_queries:
        if silent.any():
            kept = keep_output(view, flat(values)) if quantity == "output" else keep_derivative(view.contract, rows)
            if quantity != "output" and view.contract.kind == "fallback":
                return  # the gradient of a fallback is that of another function
            zero = np.zeros(len(rows))
            yield Judged(
                (EMPTY,),
                quantity,
                values.shape,
                silent,
                silent & ~kept.kept,
                np.where(kept.kept, 0.0, np.inf),
                np.abs(rows).max(axis=1, initial=0.0),
                zero,
                np.full(len(rows), -1),
                rows,
                view.tier(method),
                diagnose,
                permitted=kept.permitted,
                remark=f"{quantity} of queries that may see nothing",
            )
        return
    if permitted.any():
        yield Judged(
            (EMPTY,),
            quantity,
            values.shape,
            permitted,
            np.zeros(len(rows), bool),
            np.zeros(len(rows)),
            np.zeros(len(rows)),
            np.zeros(len(rows)),
            np.full(len(rows), -1),
            rows,
            view.tier(method),
            named("NaN"),
            permitted=permitted,
            fact=f"NaN in the shared gradient {quantity}",
        )
    if silent.any():
        wrong = np.any(rows != 0.0, axis=1)
        if shared:
            wrong &= ~np.all(np.isnan(rows) | (rows == 0.0), axis=1)
        yield of_bits(
            (UNSEEN,),
            quantity,
            wrong,
            silent,
            values,
            view.tier(method),
            "leak",
            remark=f"{quantity} of keys that no query may see",
            permitted=np.any(np.isnan(rows), axis=1) & silent if shared else None,
        )


def keep_output(view: AttentionView, rows: Floats) -> EmptyRows:
    """Judge the outputs of queries that may see nothing; meaningful at those vectors only.

    ``zero`` asks for exact zeros, ``nan`` for NaN in the whole vector, ``fallback(k)`` for the value of key ``k``.
    Without a single key the output is an empty sum, which is 0 even where its weights would be NaN.
    """
    contract: Contract = view.contract
    if contract.kind == "nan":
        kept = np.all(np.isnan(rows), axis=1)
        if not view.problem.sizes[4]:
            kept |= np.all(rows == 0.0, axis=1)
        return EmptyRows(kept, kept)
    if contract.kind == "fallback" and contract.key is not None:
        problem = view.problem
        batch, heads, groups, queries, keys, _, width = problem.sizes
        if contract.key >= keys:
            return EmptyRows(np.zeros(len(rows), bool), np.zeros(len(rows), bool))
        value = np.repeat(problem.wide("v")[:, :, contract.key], heads // groups, axis=1)[:, :, None]
        wanted = flat(np.broadcast_to(value, (batch, heads, queries, width)))
        kept = np.all(rows == wanted, axis=1)
        return EmptyRows(kept, kept)
    return EmptyRows(np.all(rows == 0.0, axis=1), np.zeros(len(rows), bool))


def _blind(view: AttentionView, budget: Floats) -> Bools:
    """Vectors of the output whose budget could not tell them from zeros."""
    true = flat(view.known.truth.output.value)
    return np.asarray(np.all(np.abs(true) <= budget, axis=1) & np.any(true != 0.0, axis=1))


def _weights(view: AttentionView, values: Floats) -> Iterator[Judged]:
    """Where the entry point returns its weights: their values, and exact zeros at blocked keys."""
    mask = flat(view.problem.full_mask.astype(np.float64)) > 0.0
    rows = flat(values)
    comparison = view.compared("weights", values)
    seen = ~view.empty
    tier = view.tier("forward")
    yield of_entries(
        FORWARD,
        "weights",
        comparison,
        values.shape,
        seen,
        rows,
        tier,
        lambda vectors: fault(view, "weights", comparison, vectors),
        failing=view.failing("weights", comparison, seen, None),
        remark="returned weights",
        entries=comparison.entries(view.problem.dtype),
        bits=view.bits("weights", "forward"),
    )
    if not mask.all():
        nan = view.contract.kind == "nan"
        wrong = np.any((rows != 0.0) & ~mask, axis=1)
        if nan:
            wrong &= ~(view.empty & np.all(np.isnan(rows), axis=1))
        permitted = view.empty & np.all(np.isnan(rows), axis=1) if nan else None
        blocked = np.asarray(~mask.all(axis=1))
        remark = "returned weights of blocked keys"
        yield of_bits((BLOCKED,), "weights", wrong, blocked, values, tier, "leak", remark=remark, permitted=permitted)


def _flags(view: AttentionView) -> Iterator[Judged]:
    """The flag is False exactly for the queries that may see nothing; ``zero+valid`` demands it."""
    answer = view.answer("forward")
    flags = getattr(answer, "valid", None)
    if view.values("output") is None or (view.contract.kind != "zero+valid" and flags is None):
        return
    expected = ~view.empty
    wrong = np.ones(len(expected), bool) if flags is None else flags.reshape(-1) != expected
    shown = np.zeros((*view.problem.empty.shape, 1)) if flags is None else flags[..., None].astype(np.float64)
    name = "no valid flag" if flags is None else "wrong valid flag"
    every = np.ones(len(expected), bool)
    yield of_bits((EMPTY,), "valid", wrong, every, shown, view.tier("forward"), name, remark="valid flag")
