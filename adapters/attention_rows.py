"""An attention kernel as a masked softmax: what it does to rows, seen through the identity.

With one query of length ``d`` per row, ``q = (1, 0, …)``, keys ``k_j = (s_j, 0, …)`` and the scale 1, the score of key
``j`` is ``s_j`` exactly, whatever stands at other keys: every product but one is a product with 0. With the identity
for values, the output is the row of weights, plus exact zeros. So is the VJP of the keys' first entries that of the
scores, and their tangent that of the scores. Every theorem about rows is thereby checked through the kernel itself.

A kernel that fixes its scale to ``1 / sqrt d`` gets ``d = 16^k``, whose root and its root are powers of two, and
``q = (sqrt d, 0, …)``: all products stay exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .attention import Attention, AttentionAnswer
from .subject import Array, Bools, Subject

ENTRIES = 1 << 21
"""Entries of the keys of one call, at most: rows go to the kernel in parts."""


def rows_through(attention: Attention) -> Subject:
    """The masked softmax that an attention kernel contains, as a subject of rows; its id ends in ``rows]``.

    Declared fields of Subject stand in ``attention.rows``, where that is a mapping. The subject must take a Boolean
    mask for every query, in its own encoding.

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
    through = _Through(attention)
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
            **declared,
        },
    )


@dataclass(frozen=True)
class _Through:
    attention: Attention

    def forward(self, scores: Array, mask: Bools) -> Array:
        """The outputs, which are the weights."""

        def part(rows: slice) -> Array:
            answer = self.attention.forward(*self._problem(scores[rows], mask[rows]))
            return answer.output if isinstance(answer, AttentionAnswer) else answer

        return self._joined(scores, part, lambda found, keys: np.asarray(found)[:, 0, 0, :keys])

    def vjp(self, scores: Array, mask: Bools, cotangents: Array) -> Array:
        """The pullback onto the first entries of the keys."""
        assert self.attention.vjp is not None
        pull = self.attention.vjp

        def part(rows: slice) -> Array:
            problem = self._problem(scores[rows], mask[rows])
            g = np.zeros((*problem[2].shape[:2], 1, problem[2].shape[3]), scores.dtype)
            g[:, 0, 0, : scores.shape[1]] = cotangents[rows]
            return pull(*problem, g)[1]

        # The score is the entry times 1, so that the two have one gradient.
        return self._joined(scores, part, lambda found, _: np.asarray(found)[:, 0, :, 0])

    def jvp(self, scores: Array, mask: Bools, tangents: Array) -> Array:
        """The pushforward of the first entries of the keys."""
        assert self.attention.jvp is not None
        push = self.attention.jvp

        def part(rows: slice) -> Array:
            problem = self._problem(scores[rows], mask[rows])
            moved = np.zeros_like(problem[1])
            moved[:, 0, :, 0] = tangents[rows]
            return push(*problem, (np.zeros_like(problem[0]), moved, np.zeros_like(problem[2])))

        return self._joined(scores, part, lambda found, keys: np.asarray(found)[:, 0, 0, :keys])

    def _width(self, keys: int) -> int:
        width = max(1, keys)
        return next(16**k for k in range(5) if 16**k >= width) if "scale" in self.attention.limits else width

    def _problem(self, scores: Array, mask: Bools) -> tuple[Array, Array, Array, Bools, float]:
        rows, keys = scores.shape
        width = self._width(keys)
        scale = width**-0.5 if "scale" in self.attention.limits else 1.0
        q = np.zeros((rows, 1, 1, width), scores.dtype)
        q[..., 0] = 1.0 / scale
        k = np.zeros((rows, 1, keys, width), scores.dtype)
        k[:, 0, :, 0] = scores
        v = np.zeros((rows, 1, keys, width), scores.dtype)
        v[:, 0, np.arange(keys), np.arange(keys)] = 1.0
        return q, k, v, mask[:, None, None, :], scale

    def _joined(self, scores: Array, part: Callable[[slice], Any], weights: Callable[[Any, int], Array]) -> Array:
        rows, keys = scores.shape
        if not keys and "no keys" in self.attention.limits:
            return np.zeros((rows, 0), scores.dtype)
        parts = [weights(part(rows), keys) for rows in self._parts(rows, keys)]
        return np.concatenate(parts) if parts else np.zeros((0, keys), scores.dtype)

    def _parts(self, rows: int, keys: int) -> Iterator[slice]:
        step = max(1, ENTRIES // max(1, keys * self._width(keys)))
        for start in range(0, rows, step):
            yield slice(start, min(rows, start + step))
