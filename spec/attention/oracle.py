r"""The exact values of an attention problem, with rigorous enclosures: output, weights, derivatives.

All heads of a group read the same keys, so the queries of a group are stacked: a problem is ``N = B G`` independent
ones with ``M = (H / G) Lq`` queries each. Products are those of :mod:`.matmul`, the rest is arithmetic in two words.

**Weights.** Let ``t`` be the largest computed score of a row, two words, taken exactly: any shift gives the same
weights. The computed ``s_j - t`` is off by the error of the score and ``3 u^2`` of itself, its exponential by
``2^-92.8`` more (:mod:`~hardmask.spec.oracle.dd_exp`); call the sum ``delta_j``. Then the true numerator is the
computed one times a factor in ``exp(±delta_j)``, the true sum the computed one times ``1 ± D`` with ``D = sum w_j
(exp(delta_j) - 1)``, and the weight is off by at most ``w_i (exp(delta_i) - 1 + D) / (1 - D)``, beside the roundings of
sum and quotient. Scores further than 746 below the maximum get weight 0; theirs is below ``2^-1070``.

Blocked pairs have weight 0 exactly. Keys that no query sees, and queries that see none, are replaced by zeros before
any arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..batch import Bools, Floats
from ..oracle.columns import chunks, columns
from ..oracle.dd_engine import softmax_of_gaps
from ..oracle.doubledouble import add
from ..oracle.exact import Exact, ExactWeights
from ..oracle.exp64 import LOWEST
from .enclosed import MARGIN, exact, minus, plus, row_sum, times, transposed, where
from .matmul import product
from .problem import Problem

_RELATIVE = 2.0**-91
"""Exponential, sum and quotient of two words together."""

_UU = 2.0**-106


@dataclass(frozen=True, eq=False)
class Heads:
    """A problem as ``N`` stacks of ``M`` queries that share ``Lk`` keys, in float64, exact and finite.

    ``q``, ``dq``: ``(N, M, d)``; ``k``, ``dk``: ``(N, Lk, d)``; ``v``, ``dv``: ``(N, Lk, dv)``; ``cotangent``:
    ``(N, M, dv)``; ``mask``: ``(N, M, Lk)``; ``real``: ``(N, M)``, queries all of whose numbers are real; ``firm``:
    ``(N, Lk)``, keys that are seen by no other queries. Of queries that are not real the mask is False everywhere.
    """

    q: Floats
    k: Floats
    v: Floats
    cotangent: Floats
    dq: Floats
    dk: Floats
    dv: Floats
    mask: Bools
    real: Bools
    firm: Bools


def heads_of(problem: Problem) -> Heads:
    """The stacks of a problem."""
    batch, heads, groups, queries, keys, d, width = problem.sizes
    n, m = batch * groups, heads // max(groups, 1) * queries
    mask = np.ascontiguousarray(problem.full_mask).reshape(n, m, keys)
    tq, tk, tv = (t.astype(np.float64) for t in problem.tangents)
    q, dq = (x.reshape(n, m, d) for x in (problem.wide("q"), tq))
    k, dk = (x.reshape(n, keys, d) for x in (problem.wide("k"), tk))
    v, dv = (x.reshape(n, keys, width) for x in (problem.wide("v"), tv))
    cotangent = problem.wide("cotangent").reshape(n, m, width)
    query_real = _all_finite(q, dq, cotangent)
    key_real = _all_finite(k, dk, v, dv)
    real = query_real & ~np.any(mask & ~key_real[:, None, :], axis=2)
    firm = ~np.any(mask & ~real[:, :, None], axis=1)
    mask = mask & real[:, :, None]
    live, seen = np.any(mask, axis=2)[:, :, None], np.any(mask, axis=1)[:, :, None]
    left = (np.where(live, x, 0.0) for x in (q, cotangent, dq))
    right = (np.where(seen, x, 0.0) for x in (k, v, dk, dv))
    (q, cotangent, dq), (k, v, dk, dv) = left, right
    return Heads(q, k, v, cotangent, dq, dk, dv, mask, real, firm)


def _all_finite(*arrays: Floats) -> Bools:
    out = np.ones(arrays[0].shape[:2], bool)
    for array in arrays:
        out &= np.isfinite(array).all(axis=2)
    return out


class AttentionTruth:
    """The truth about one problem: every quantity is an enclosure in the problem's own shape, computed when asked for.

    ``output``, ``jvp``: ``(B, H, Lq, dv)``; ``dq``: ``(B, H, Lq, d)``; ``dk``: ``(B, G, Lk, d)``; ``dv``: ``(B, G, Lk,
    dv)``; ``weights``: ``(B, H, Lq, Lk)``. Queries that see a number that is not real are treated as empty
    (:attr:`real`), and what they would add to a key's derivative is missing (:attr:`real_keys`): nobody judges those.
    Source: extension; the bounds are derived in the module docstring.

    >>> one = np.ones((1, 1, 1, 1))
    >>> two = np.array([2.0, 4.0]).reshape(1, 1, 2, 1)
    >>> zeros = np.zeros((1, 1, 2, 1))
    >>> mask = np.ones((1, 1, 1, 2), bool)
    >>> problem = Problem("a", "a", "float64", one, zeros, two, mask, 1.0, one, (one, zeros, zeros))
    >>> float(AttentionTruth(problem).output.value[0, 0, 0, 0])
    3.0
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.slices = 5 if problem.dtype == "float64" else 3

    @cached_property
    def heads(self) -> Heads:
        """The problem in stacks of queries that share their keys."""
        return heads_of(self.problem)

    @cached_property
    def real(self) -> Bools:
        """Queries all of whose numbers are real, ``(B, H, Lq)``."""
        batch, heads, _, queries, *_ = self.problem.sizes
        return self.heads.real.reshape(batch, heads, queries)

    @cached_property
    def real_keys(self) -> Bools:
        """Keys that only real queries see, ``(B, G, Lk)``."""
        batch, _, groups, _, keys, *_ = self.problem.sizes
        return self.heads.firm.reshape(batch, groups, keys)

    # What follows is in stacks.

    @cached_property
    def scores(self) -> Exact:
        """``scale q k^T``, ``(N, M, Lk)``, 0 at blocked pairs."""
        h = self.heads
        return where(h.mask, self._scaled(product(exact(h.q), transposed(exact(h.k)), self.slices)))

    @cached_property
    def softmax(self) -> ExactWeights:
        """The masked softmax of the scores as ``N M`` rows."""
        n, m, keys = self.heads.mask.shape
        parts = (part.reshape(n * m, keys) for part in (self.scores.value, self.scores.low, self.scores.error))
        return softmax(Exact(*parts), self.heads.mask.reshape(n * m, keys))

    @cached_property
    def stacked_weights(self) -> Exact:
        """The weights, ``(N, M, Lk)``."""
        shape, w = self.heads.mask.shape, self.softmax.weights
        return Exact(w.value.reshape(shape), w.low.reshape(shape), w.error.reshape(shape))

    @cached_property
    def d_weights(self) -> Exact:
        """``dO V^T``, ``(N, M, Lk)``, 0 at blocked pairs."""
        h = self.heads
        return where(h.mask, product(exact(h.cotangent), transposed(exact(h.v)), self.slices))

    @cached_property
    def moved(self) -> Exact:
        """The tangent of the scores, ``scale (dQ K^T + Q dK^T)``, ``(N, M, Lk)``, 0 at blocked pairs."""
        h = self.heads
        left = product(exact(h.dq), transposed(exact(h.k)), self.slices)
        right = product(exact(h.q), transposed(exact(h.dk)), self.slices)
        return where(h.mask, self._scaled(plus(left, right)))

    @cached_property
    def d_scores(self) -> Exact:
        """``centre(A, dA)``, before it is multiplied by the scale, ``(N, M, Lk)``."""
        return self._centred(self.d_weights)

    @cached_property
    def d_weights_forward(self) -> Exact:
        """The tangent of the weights, ``(N, M, Lk)``."""
        return self._centred(self.moved)

    # What follows is in the shapes of the problem.

    @cached_property
    def weights(self) -> Exact:
        """The attention weights."""
        return self._shaped(self.stacked_weights, "query", self.heads.mask.shape[2])

    @cached_property
    def output(self) -> Exact:
        """``A V``."""
        return self._to_queries(self.stacked_weights, self.heads.v)

    @cached_property
    def dq(self) -> Exact:
        """The derivative by the queries."""
        return self._to_queries(self.d_scores, self.heads.k, scaled=True)

    @cached_property
    def dk(self) -> Exact:
        """The derivative by the keys, summed over the heads of a group."""
        return self._to_keys(self.d_scores, self.heads.q, scaled=True)

    @cached_property
    def dv(self) -> Exact:
        """The derivative by the values, summed over the heads of a group."""
        return self._to_keys(self.stacked_weights, self.heads.cotangent)

    @cached_property
    def jvp(self) -> Exact:
        """The tangent of the output."""
        through = self._to_queries(self.d_weights_forward, self.heads.v)
        return plus(through, self._to_queries(self.stacked_weights, self.heads.dv))

    def _scaled(self, x: Exact) -> Exact:
        return times(x, exact(np.full((1, 1, 1), float(self.problem.scale))))

    def _centred(self, g: Exact) -> Exact:
        w = self.stacked_weights
        return where(self.heads.mask, times(w, minus(g, row_sum(times(w, g)))))

    def _to_queries(self, left: Exact, right: Floats, *, scaled: bool = False) -> Exact:
        out = product(left, exact(right), self.slices, balanced=True)
        out = where(np.any(self.heads.mask, axis=2)[:, :, None], self._scaled(out) if scaled else out)
        return self._shaped(out, "query", right.shape[2])

    def _to_keys(self, left: Exact, right: Floats, *, scaled: bool = False) -> Exact:
        out = product(transposed(left), exact(right), self.slices, balanced=True)
        out = where(np.any(self.heads.mask, axis=1)[:, :, None], self._scaled(out) if scaled else out)
        return self._shaped(out, "key", right.shape[2])

    def _shaped(self, x: Exact, side: str, width: int) -> Exact:
        shape = self.shape(side, width)
        return Exact(x.value.reshape(shape), x.low.reshape(shape), x.error.reshape(shape))

    def shape(self, side: str, width: int) -> tuple[int, int, int, int]:
        """The shape in the problem of what belongs to each query (``side = "query"``) or each key."""
        batch, heads, groups, queries, keys, _, _ = self.problem.sizes
        return (batch, heads, queries, width) if side == "query" else (batch, groups, keys, width)


def softmax(scores: Exact, mask: Bools) -> ExactWeights:
    """The masked softmax of rows of enclosed scores, shape ``(R, n)``."""
    rows, keys = scores.value.shape
    value, low, error, gap = (np.empty((rows, keys)) for _ in range(4))
    total = np.empty(rows)
    for part in chunks(rows, keys):
        allowed = columns(mask[part])
        high, small, wrong = (columns(x[part]) for x in (scores.value, scores.low, scores.error))
        head = np.where(allowed, high, -np.inf).max(axis=0, initial=-np.inf)
        tail = np.where(allowed & (high == head), small, -np.inf).max(axis=0, initial=-np.inf)
        head, tail = np.where(np.isfinite(head), head, 0.0), np.where(np.isfinite(tail), tail, 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            down, rest = add((high, small), (-head, -tail))
        near = allowed & (down >= LOWEST)
        down, rest = np.where(near, np.minimum(down, 0.0), 0.0), np.where(near, rest, 0.0)
        distance = np.where(allowed, np.maximum(head - high, 0.0), 0.0)
        gap[part] = distance.T
        (w, second), sums = softmax_of_gaps(down, rest, near)
        # A score further away, and wrong by so much, may be nearer than it looks.
        delta = np.where(allowed, (wrong + 3.0 * _UU * distance) * MARGIN + _RELATIVE, 0.0)
        factor = np.expm1(np.minimum(delta, 700.0)) * MARGIN
        far = np.exp(np.minimum(delta, 700.0) - np.minimum(distance, 1500.0)) * MARGIN
        factor_sum = ((w * factor).sum(axis=0) + np.where(allowed & ~near, far, 0.0).sum(axis=0)) * MARGIN
        with np.errstate(divide="ignore"):
            relative = np.where(factor_sum < 0.5, (factor + factor_sum) / np.maximum(1.0 - factor_sum, 0.5), np.inf)
        with np.errstate(invalid="ignore"):
            e = np.where(near, np.where(w > 0.0, w * relative, 0.0) * MARGIN + 2.0**-1072, far + 2.0**-1070)
        e = np.minimum(e, 1.0 + 2.0**-50)
        value[part], low[part], error[part] = w.T, second.T, np.where(allowed, e, 0.0).T
        total[part] = sums
    return ExactWeights(Exact(value, low, error), gap, total, mask)
