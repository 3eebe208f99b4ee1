r"""Budgets of masked attention: how far a kernel that obeys a model may be from the exact values.

Notation, for one group of heads: ``A`` the weights, ``S`` the scores, ``|.|`` entry by entry, ``u`` the unit roundoff
of the work on matrices, ``m`` the relative rounding of the inputs of products, ``tiny`` what one operation can lose to
underflow, ``F(k) = (1 - u)^-k (1 + m)^2 - 1`` the relative error of a term that meets ``k`` roundings, in any order
of the additions.

**Scores.** ``E_S = |scale| |Q| |K|^T F(d + 6)``: product, additions, and the scale in up to six roundings (it may be
split over both inputs, or carry the constant of base 2). Scores that are materialised in a half format are rounded up
to three times more, and so may be both scaled inputs.

**Weights.** ``E_A``: :func:`~hardmask.spec.rounding.weights.weights_budget` with scores in error by ``E_S``. An online
softmax rescales numerators, sums and output together, at most ``ceil(Lk / tile)`` times. The backward pass of a fused
kernel may rebuild its weights from a stored log-sum-exp: ``E_B`` is the budget under that model, else ``E_B = E_A``.
Casting weights adds ``(A + E) u_c`` and the underflow of the cast: ``E_A'``, ``E_B'``.

**Output.** ``E_O = E_A' |V| + F(Lk + 2) (A + E_A') |V| + underflow``, then half an ulp of storage.

**Derivative of a softmax**, ``C = A (G - p)``, ``p = sum A G``, where ``G`` is off by ``E_G``, with ``E`` the budget of
the weights, ``P = sum (A + E)(|G| + E_G)``:

    E_p = sum E |G| + sum (A + E) E_G + gamma P + n tiny
    E_C = E |G - p| + (A + E)(E_G + E_p + ((1 + u)^3 - 1)(|G - p| + E_G + E_p)) + tiny

A kernel may take ``p`` from the output, ``sum dO O``, in the precision in which it kept it: then ``E_p = |dO| E_O +
gamma |dO| (|O| + E_O)``; the larger of the two counts. Differentiating operation by operation (exp, sum, division, the
maximum) adds what :mod:`~hardmask.spec.rounding.derivative` derives: ``(A + E)(((1 - u)^-8 - 1)(|G| + E_G + P) + gamma
P)``, and through the maximum the errors of the whole row at each key that may have been the computed maximum, or (in
forward mode) the tangent of the maximum. Where the weights of sum and numerator are not the same numbers, ``E |G - p|``
becomes ``E (|G| + P)``.

**Gradients.** ``G = dA = dO V^T`` with ``E_G = |dO| |V|^T F(dv + 2)``; ``dS`` as ``C``, rounded to the cast or
intermediate format where there is one;

    E_dQ = scale (E_dS |K| + F(Lk + 4)(|dS| + E_dS) |K|),  dK with the M queries of the group,
    E_dV = E_B'^T |dO| + F(M + 2) (A + E_B')^T |dO|

and half an ulp of storage. Adding gradients up in storage, once per block or once per head of a group, adds one ``u_s``
per addition.

**JVP.** ``G = scale (dQ K^T + Q dK^T)`` with ``E_G = scale (|dQ| |K|^T + |Q| |dK|^T) F(d + 8)``, and

    E = E_C |V| + F(Lk + 3)(|C| + E_C) |V| + E_A' |dV| + F(Lk + 3)(A + E_A') |dV|,

with half an ulp of storage for each of the two products where weights are cast: they may be stored before they are
added.

Rows of empty queries, and keys that no query sees, have the budget 0 exactly. The bound of a *difference* of two
evaluations is the sum of their budgets.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Literal

import numpy as np

from ..batch import Bools, Floats
from ..rounding.model import RoundingModel, up
from ..rounding.weights import Disturbance, weights_budget
from .model import AttentionModel
from .oracle import AttentionTruth

Quantity = Literal["output", "dq", "dk", "dv", "jvp", "weights"]
QUANTITIES: tuple[Quantity, ...] = ("output", "dq", "dk", "dv", "jvp", "weights")


def attention_budget(model: AttentionModel, truth: AttentionTruth) -> AttentionBudget:
    """The budgets of one problem under a model (extension; derivation in the module docstring)."""
    return AttentionBudget(model, truth)


class AttentionBudget:
    """Bounds of ``|computed - exact|``, in the shapes of :class:`~hardmask.spec.attention.oracle.AttentionTruth`.

    ``output``, ``dq``, ``dk``, ``dv``, ``jvp``, and ``weights`` for kernels that return them; each is computed when it
    is asked for. Exactly 0 for empty queries, for keys that no query sees, and for weights of blocked keys.
    """

    def __init__(self, model: AttentionModel, truth: AttentionTruth) -> None:
        self.model, self.truth, self.heads = model, truth, truth.heads
        softmax = model.softmax
        self._stored = RoundingModel(model.accumulate, model.storage, model.accumulate, softmax.alpha)
        between = model.intermediate or model.accumulate
        self._between = RoundingModel(model.accumulate, between, model.accumulate, softmax.alpha)
        cast = model.cast or model.accumulate
        self._cast = RoundingModel(model.accumulate, cast, model.accumulate, softmax.alpha)
        self._tiny = 1.5 * model.accumulate.lam
        self._scale = abs(float(truth.problem.scale))

    @cached_property
    def weights(self) -> Floats:
        """Budget of the attention weights."""
        return self._shaped("query", self._store(self._w, self._weights), self.heads.mask)

    @cached_property
    def output(self) -> Floats:
        """Budget of the output."""
        computed = self._output
        return self._shaped("query", self._store(self._output_size, computed), self._live)

    @cached_property
    def dq(self) -> Floats:
        """Budget of the derivative by the queries."""
        keys = self.heads.mask.shape[2]
        error, total = self._gradient(self._d_scores, self.truth.d_scores.value, self.heads.k, keys, keys=False)
        blocks = self._extra_blocks(keys, self.model.key_block)
        return self._finished("query", error, total, blocks, self.truth.dq.value, self._live)

    @cached_property
    def dk(self) -> Floats:
        """Budget of the derivative by the keys."""
        queries = self.heads.mask.shape[1]
        error, total = self._gradient(self._d_scores, self.truth.d_scores.value, self.heads.q, queries, keys=True)
        return self._finished("key", error, total, self._query_blocks, self.truth.dk.value, self._seen)

    @cached_property
    def dv(self) -> Floats:
        """Budget of the derivative by the values."""
        queries, weights = self.heads.mask.shape[1], self._casting(self._w, self._backward)
        g = np.abs(self.heads.cotangent)
        carried, total = _t(weights) @ g, _t(self._w + weights) @ g
        error = carried + self._f(queries + 2) * total + self._tiny * (queries + _t(self._allowed) @ g)
        return self._finished("key", error, total, self._query_blocks, self.truth.dv.value, self._seen, scaled=False)

    @cached_property
    def jvp(self) -> Floats:
        """Budget of the tangent of the output."""
        h, keys = self.heads, self.heads.mask.shape[2]
        left = np.abs(h.dq) @ _t(np.abs(h.k)) + np.abs(h.q) @ _t(np.abs(h.dk))
        moved = self.truth.moved.value
        e_moved = np.where(h.mask, self._rounded(moved, self._scale * left, h.q.shape[2] + 8), 0.0)
        c = self.truth.d_weights_forward.value
        e = self._casting(np.abs(c), self._centred(self._weights, moved, e_moved, forward=True))
        weights = self._casting(self._w, self._weights)
        v, dv = np.abs(h.v), np.abs(h.dv)
        f = self._f(keys + 3)
        error = e @ v + f * ((np.abs(c) + e) @ v) + weights @ dv + f * ((self._w + weights) @ dv)
        error = error + self._tiny * (2.0 * keys + self._allowed @ (v + dv))
        if self.model.cast is not None:
            # Both products, materialised in the half format before they are added.
            through, direct = np.abs(c @ h.v), np.abs(self._w @ h.dv)
            error = error + self._stored.storage_error(through + error) + self._stored.storage_error(direct + error)
        value = np.abs(self.truth.jvp.value.reshape(error.shape))
        return self._shaped("query", self._store(value, error), self._live)

    # What follows is in stacks of queries that share their keys.

    @cached_property
    def _w(self) -> Floats:
        return self.truth.stacked_weights.value

    @cached_property
    def _allowed(self) -> Floats:
        return self.heads.mask.astype(np.float64)

    @cached_property
    def _live(self) -> Bools:
        return np.any(self.heads.mask, axis=2, keepdims=True)

    @cached_property
    def _seen(self) -> Bools:
        return np.any(self.heads.mask, axis=1)[:, :, None]

    @cached_property
    def _count(self) -> Floats:
        return self._allowed.sum(axis=2, keepdims=True)

    @cached_property
    def _scores(self) -> Floats:
        """``E_S``, 0 at blocked pairs."""
        h = self.heads
        sizes = np.abs(h.q).sum(axis=2, keepdims=True) + _t(np.abs(h.k).sum(axis=2, keepdims=True))
        error = self._rounded(
            self.truth.scores.value, self._scale * (np.abs(h.q) @ _t(np.abs(h.k))), h.q.shape[2] + 6, roundings=3
        )
        factor = max(1.0, self._scale, self._scale**0.5)
        return np.where(h.mask, error + self._tiny * factor * (h.q.shape[2] + sizes), 0.0)

    @cached_property
    def _disturbance(self) -> Disturbance:
        keys = self.heads.mask.shape[2]
        tiles = -(-keys // self.model.tile) if self.model.tile else 0
        turns = np.minimum(np.maximum(self._count - 1.0, 0.0), tiles).reshape(self._count.size, 1)
        return Disturbance(self._rows(self._scores), turns, self.model.rescale_alpha)

    @cached_property
    def _weights(self) -> Floats:
        """``E_A``, before anything is stored or cast."""
        return self._softmax_budget(self.model.softmax)

    @cached_property
    def _backward(self) -> Floats:
        """``E_B``."""
        if not self.model.tile:
            return self._weights
        return np.maximum(self._weights, self._softmax_budget(replace(self.model.softmax, argument="lse")))

    @cached_property
    def _output_size(self) -> Floats:
        return np.abs(self.truth.output.value).reshape(self.heads.cotangent.shape)

    @cached_property
    def _output(self) -> Floats:
        """``E_O`` before the last rounding."""
        keys, v = self.heads.mask.shape[2], np.abs(self.heads.v)
        weights = self._casting(self._w, self._weights)
        error = weights @ v + self._f(keys + 2) * ((self._w + weights) @ v)
        return np.where(self._live, error + self._tiny * (keys + self._allowed @ v), 0.0)

    @cached_property
    def _d_scores(self) -> Floats:
        """``E_dS``."""
        h, value = self.heads, self.truth.d_weights.value
        sizes = np.abs(h.cotangent) @ _t(np.abs(h.v))
        e_g = np.where(h.mask, self._rounded(value, sizes, h.v.shape[2] + 2), 0.0)
        e_output = self._output
        if self.model.cast is not None:
            e_output = self._store(self._output_size, e_output)
        g = np.abs(h.cotangent)
        gamma = self._gamma(h.v.shape[2] + 1.0)
        delta = (g * e_output + gamma * g * (self._output_size + e_output)).sum(axis=2, keepdims=True)
        delta = delta + h.v.shape[2] * self._tiny
        error = self._centred(self._backward, value, e_g, delta)
        size = np.abs(self.truth.d_scores.value)
        # It may be multiplied by the scale first: what underflows then is larger before.
        enlarged = max(1.0, 1.0 / self._scale) if self._scale else 1.0
        if self.model.intermediate is not None:
            error = error + 2.0 * self._between.storage_error(size + error)
            error = error + enlarged * self._between.tiny_storage
        return np.where(h.mask, self._casting(size, error, enlarged), 0.0)

    def _centred(
        self, e: Floats, g: Floats, e_g: Floats, delta: Floats | None = None, *, forward: bool = False
    ) -> Floats:
        """``E_C``, 0 at blocked pairs; ``delta``: the error of ``p`` taken from the output."""
        mask, w, n, softmax = self.heads.mask, self._w, self._count, self.model.softmax
        u, tiny = softmax.u, softmax.tiny
        size, bound = np.where(mask, np.abs(g) + e_g, 0.0), w + e
        spread = np.where(mask, np.abs(g - (w * g).sum(axis=2, keepdims=True)), 0.0)
        mean = (bound * size).sum(axis=2, keepdims=True)
        gamma = np.expm1(softmax.log_sum(n) - np.log1p(-u))
        centre = (e * size + bound * e_g).sum(axis=2, keepdims=True) + gamma * mean + n * tiny
        if softmax.u > self.model.u:
            centre = centre + self._between.storage_error(mean + centre)
        if delta is not None:
            centre = np.maximum(centre, delta)
        last = np.expm1(3.0 * np.log1p(u))
        error = e * spread + bound * (e_g + centre + last * (spread + e_g + centre)) + tiny
        eight = np.expm1(-8.0 * np.log1p(-u))
        error = error + bound * (eight * (size + mean) + gamma * mean)
        total = self.truth.softmax.total.reshape(n.shape)
        error = error + tiny * (4.0 * (1.0 + size + mean) + bound * n + w * total * size.sum(axis=2, keepdims=True))
        if self.model.tile:
            error = error + e * (size + mean)
        worst = self._scores.max(axis=2, keepdims=True, initial=0.0)
        gap = self.truth.softmax.gap.reshape(mask.shape)
        top = mask & (gap <= 2.0 * worst)
        if forward:
            lift = np.where(top, size, 0.0).max(axis=2, keepdims=True, initial=0.0)
            error = error + bound * ((2.0 * eight + gamma) * lift) + tiny * lift * (4.0 + w * total * n)
        else:
            error = error + np.where(top, np.where(mask, error, 0.0).sum(axis=2, keepdims=True), 0.0)
        return np.where(mask, error, 0.0)

    def _gradient(
        self, error: Floats, value: Floats, other: Floats, terms: int, *, keys: bool
    ) -> tuple[Floats, Floats]:
        """``E`` of ``scale value other`` and the size of its terms; ``keys``: with ``value`` transposed."""
        x, size, allowed = np.abs(other), np.abs(value) + error, self._allowed
        if keys:
            error, size, allowed = _t(error), _t(size), _t(allowed)
        total = self._scale * (size @ x)
        lost = self._tiny * (1.0 + self._scale) * (terms + 1.0 + allowed @ x)
        return self._scale * (error @ x) + self._f(terms + 4) * total + lost, total

    def _softmax_budget(self, softmax: RoundingModel) -> Floats:
        """Budget of the weights that the softmax inside computes, ``(N, M, Lk)``."""
        scores = self._rows(self.truth.scores.value)
        budget = weights_budget(softmax, scores, self.truth.softmax, self._disturbance)
        return budget.error.reshape(self.heads.mask.shape)

    def _rows(self, x: Floats) -> Floats:
        n, m, keys = x.shape
        return x.reshape(n * m, keys)

    def _rounded(self, value: Floats, size: Floats, roundings_inside: int, roundings: int = 2) -> Floats:
        """Error of a product of matrices whose terms add up to ``size``, materialised where the model says so."""
        error = self._f(roundings_inside) * size + roundings_inside * self._tiny
        if self.model.intermediate is None:
            return error
        error = error + np.expm1(2.0 * np.log1p(self.model.intermediate.u)) * size  # scaled inputs
        for _ in range(roundings):
            error = error + self._between.storage_error(np.abs(value) + error)
        return error

    def _casting(self, size: Floats, error: Floats, enlarged: float = 1.0) -> Floats:
        """The error after the rounding to the cast format, if there is one; ``enlarged``: factor of an underflow."""
        if self.model.cast is None:
            return error
        bound = (size + error) * self.model.cast.u + enlarged * self._cast.tiny_storage
        return np.where(self.heads.mask, error + bound, 0.0)

    def _store(self, size: Floats, error: Floats) -> Floats:
        """The error after the rounding to storage."""
        return error + self._stored.storage_error(size + error)

    @property
    def _query_blocks(self) -> float:
        """Additions in storage to the derivative of a key: per block of queries, and per head of a group."""
        _, heads, groups, queries, *_ = self.truth.problem.sizes
        per_head = heads // groups
        return self._extra_blocks(queries, self.model.query_block) * per_head + (per_head if per_head > 1 else 0)

    @staticmethod
    def _extra_blocks(length: int, block: int) -> int:
        return max(0, -(-length // block) - 1) if block else 0

    def _finished(
        self,
        side: str,
        error: Floats,
        total: Floats,
        blocks: float,
        value: Floats,
        where: Bools,
        *,
        scaled: bool = True,
    ) -> Floats:
        """The budget in the problem's shape, after additions in storage and the last roundings."""
        storage, size = self.model.storage, np.abs(value.reshape(error.shape))
        if storage != self.model.accumulate and blocks:
            error = error + np.expm1(blocks * np.log1p(storage.u)) * total + blocks * self._stored.tiny_storage
        if self.model.intermediate is not None and scaled:
            # Rounded before it is multiplied by the scale, or by its root once more.
            error = error + 2.0 * self._between.storage_error(size + error)
            error = error + (1.0 + self._scale) * self._between.tiny_storage
        return self._shaped(side, self._store(size, error), where)

    def _shaped(self, side: str, error: Floats, where: Bools) -> Floats:
        """A finished budget: rounded up, 0 where nothing is computed, in the problem's shape.

        What overflowed on the way bounds nothing.
        """
        error = np.where(np.isnan(error), np.inf, error)
        return np.where(where, up(error), 0.0).reshape(self.truth.shape(side, error.shape[2]))

    def _f(self, roundings: float) -> float:
        """``F``."""
        return float(np.expm1(-roundings * np.log1p(-self.model.u) + 2.0 * np.log1p(self.model.inputs)))

    def _gamma(self, roundings: float) -> float:
        return float(np.expm1(-roundings * np.log1p(-self.model.u)))


def _t(x: Floats) -> Floats:
    return x.swapaxes(-1, -2)
