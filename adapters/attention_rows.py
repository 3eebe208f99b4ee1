"""An attention kernel as a masked softmax: what it does to rows, seen through the identity.

Every row is a query: ``q`` holds the scores, and keys and values are the identity. With the scale 1 the score of key
``j`` is the ``j``-th score exactly, since every other product is one with 0, and the output is the row of weights, plus
exact zeros. So is the gradient of the query that of the scores, and its tangent theirs. Every theorem about rows is
thereby checked through the kernel itself, tiles of queries and keys included.

A kernel that fixes its scale to ``1 / sqrt d`` gets ``d = 16^k``, and ``sqrt d`` times the identity for keys: the root
of ``d`` and its own root are powers of two, so that all products stay exact wherever the scale is applied.

A blocked score that is not finite is no such thing here: it would meet zeros in every product. What keys that are not
finite do is :mod:`isolation <hardmask.conformance.attention.checks.promises>`, and is asked of the attention itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .attention import Attention, AttentionAnswer
from .subject import Array, Bools, Subject

FINITE = "Through the identity a score that is not finite meets zeros in every product; see attention-isolation."


def rows_through(attention: Attention) -> Subject:
    """The masked softmax that an attention kernel contains, as a subject of rows; its id ends in ``rows]``.

    Declared fields of Subject stand in ``attention.rows``, where that is a mapping. The attention must take any Boolean
    mask, in its own encoding.

    >>> from .attention import Attention
    >>> def sums(q, k, v, mask, scale):
    ...     e = np.where(mask, np.exp(scale * (q @ np.swapaxes(k, -1, -2))), 0)
    ...     return e / e.sum(axis=-1, keepdims=True) @ v
    >>> rows = rows_through(Attention("mine.attention", sums, rows=True))
    >>> rows.id, rows.forward(np.zeros((1, 2)), np.array([[True, True]])).tolist()
    ('mine.attention[rows]', [[0.5, 0.5]])
    """
    declared: dict[str, Any] = dict(attention.rows) if not isinstance(attention.rows, bool) else {}
    name = f"{attention.id[:-1]},rows]" if attention.id.endswith("]") else f"{attention.id}[rows]"
    through, recipe = _Through(attention), attention.recipe
    return Subject(
        name,
        through.forward,
        None if attention.vjp is None else through.vjp,
        None if attention.jvp is None else through.jvp,
        **{
            "adapter": attention.adapter,
            "path": f"{attention.path}, through the identity",
            "role": attention.role,
            "dtypes": attention.dtypes,
            "contract": attention.contract,
            "convention": attention.convention,
            "unsupported": dict(attention.unsupported),
            "opt_in": attention.opt_in,
            "finite_scores": FINITE,
            "recipe": recipe and replace(recipe, rows=True, fixed="scale" in attention.limits),
            **declared,
        },
    )


@dataclass(frozen=True)
class _Through:
    attention: Attention

    def forward(self, scores: Array, mask: Bools) -> Array:
        """The outputs, which are the weights."""

        def weights() -> Any:
            answer = self.attention.forward(*self._problem(scores, mask))
            return answer.output if isinstance(answer, AttentionAnswer) else answer

        return self._rows(scores, weights)

    def vjp(self, scores: Array, mask: Bools, cotangents: Array) -> Array:
        """The gradient of the queries."""
        assert self.attention.vjp is not None
        pull = self.attention.vjp
        g = self._padded(cotangents)
        return self._rows(scores, lambda: pull(*self._problem(scores, mask), g)[0])

    def jvp(self, scores: Array, mask: Bools, tangents: Array) -> Array:
        """The tangent of the outputs along that of the queries."""
        assert self.attention.jvp is not None
        push = self.attention.jvp
        q, k, v, *rest = self._problem(scores, mask)
        moved = self._padded(tangents), np.zeros_like(k), np.zeros_like(v)
        return self._rows(scores, lambda: push(q, k, v, *rest, moved))

    @property
    def _fixed(self) -> bool:
        return "scale" in self.attention.limits

    def _padded(self, rows: Array) -> Array:
        """Rows as queries, with zeros up to the width."""
        keys = rows.shape[1]
        width = next(16**k for k in range(6) if 16**k >= keys) if self._fixed else max(1, keys)
        q = np.zeros((1, 1, len(rows), width), rows.dtype)
        q[0, 0, :, :keys] = rows
        return q

    def _problem(self, scores: Array, mask: Bools) -> tuple[Array, Array, Array, Bools, float]:
        q = self._padded(scores)
        width, keys = q.shape[3], scores.shape[1]
        scale = width**-0.5 if self._fixed else 1.0
        v = np.zeros((1, 1, keys, width), scores.dtype)
        v[0, 0, np.arange(keys), np.arange(keys)] = 1.0
        k = (v * np.asarray(1.0 / scale, scores.dtype)).astype(scores.dtype)
        return q, k, v, mask[None, None], scale

    def _rows(self, scores: Array, call: Callable[[], Any]) -> Array:
        """The part of an answer that belongs to the keys; nothing where the kernel takes no keys and there are none."""
        if not scores.shape[1] and "no keys" in self.attention.limits:
            return np.zeros(scores.shape, scores.dtype)
        return np.asarray(call())[0, 0, :, : scores.shape[1]]
