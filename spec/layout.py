"""How rows lie in an array of any rank: the axis of the softmax, the order in memory, and what the mask leaves out.

A batch is a list of rows. A layout says as what array those rows are handed to a function that takes any axis, and
brings the answer back to rows, so that one truth serves all layouts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Memory = Literal["contiguous", "transposed", "strided", "reversed", "repeated"]


@dataclass(frozen=True)
class Layout:
    """One arrangement of rows in an array, with the softmax along one axis.

    - ``shape``: of the scores and vectors. ``axis``: of the softmax, as the function is told, negative or not.
    - ``mask_shape``: the shape that the mask is handed over in; it broadcasts to ``shape`` and may have a lower rank.
    - ``memory``: ``contiguous``; ``transposed`` (Fortran order); ``strided`` (every second element along each axis of a
      larger array, whose other elements are NaN, or True in a mask); ``reversed`` (negative strides along each axis);
      ``repeated`` (the scores have stride 0 along the first axis that is not the softmax axis).

    Raises ValueError for an axis that the shape has not, and for a mask that does not broadcast.

    >>> middle = Layout((2, 3, 4), 1, (3, 1), "transposed")
    >>> middle.rows, middle.keys, str(middle)
    (8, 3, 'axis 1 of 3, transposed, mask broadcast')
    """

    shape: tuple[int, ...]
    axis: int
    mask_shape: tuple[int, ...]
    memory: Memory = "contiguous"

    def __post_init__(self) -> None:
        rank = len(self.shape)
        if not -rank <= self.axis < rank:
            raise ValueError(f"A shape {self.shape} has no axis {self.axis}.")
        if self.memory == "repeated" and rank < 2:
            raise ValueError("Scores of one row cannot be repeated along another axis. Give them two axes.")
        if np.broadcast_shapes(self.shape, self.mask_shape) != self.shape:
            raise ValueError(f"A mask of shape {self.mask_shape} does not broadcast to scores of shape {self.shape}.")

    def __str__(self) -> str:
        parts = [f"axis {self.axis} of {len(self.shape)}"]
        if self.keys < 2:
            parts.append(f"length {self.keys}")
        if self.memory != "contiguous":
            parts.append(self.memory)
        if self.mask_shape != self.shape:
            parts.append("mask broadcast")
        return ", ".join(parts)

    @property
    def along(self) -> int:
        """The softmax axis, counted from 0."""
        return self.axis % len(self.shape)

    @property
    def last(self) -> bool:
        """Whether the softmax runs along the last axis."""
        return self.along == len(self.shape) - 1

    @property
    def keys(self) -> int:
        """Length of a row."""
        return self.shape[self.along]

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The shape without the softmax axis."""
        return tuple(n for i, n in enumerate(self.shape) if i != self.along)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return prod(self.others)

    def lifted(self, rows: Array) -> Array:
        """Rows of shape ``(rows, keys)`` as an array of the layout's shape; may share memory with them."""
        return np.moveaxis(rows.reshape(*self.others, self.keys), -1, self.along)

    def lowered(self, array: Array) -> Array:
        """The inverse of :meth:`lifted`."""
        return np.moveaxis(array, self.along, -1).reshape(self.rows, self.keys)

    def shared_mask(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """The rows of a mask made equal wherever the handed-over mask is shared between them."""
        return self.lowered(np.broadcast_to(self._mask(mask), self.shape))

    def shared_scores(self, scores: Array) -> Array:
        """The rows of scores made equal wherever their memory is shared."""
        if self.memory != "repeated":
            return scores
        once = self._once(self.lifted(scores))
        return self.lowered(np.broadcast_to(once, self.shape))

    def arrange(self, scores: Array, mask: npt.NDArray[np.bool_], *vectors: Array) -> list[Array]:
        """Fresh, writable arrays in the layout: the scores, the mask in its own shape, and the vectors.

        All arguments have shape ``(rows, keys)``; equal rows as :meth:`shared_mask` and :meth:`shared_scores` make
        them are expected. What is repeated is repeated in the scores alone.
        """
        return [
            self._placed(self.lifted(scores), self.memory),
            self._placed(self._mask(mask), "contiguous" if self.memory == "repeated" else self.memory),
            *(
                self._placed(self.lifted(v), "contiguous" if self.memory == "repeated" else self.memory)
                for v in vectors
            ),
        ]

    def _mask(self, mask: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        lifted = self.lifted(mask)[(0,) * (len(self.shape) - len(self.mask_shape))]
        shared = tuple(slice(0, m) for m in self.mask_shape)
        return np.asarray(lifted[shared])

    def _once(self, array: Array) -> Array:
        repeated = next(i for i in range(len(self.shape)) if i != self.along)
        return array[(slice(None),) * repeated + (slice(0, 1),)]

    def _placed(self, array: Array, memory: Memory) -> Array:
        if memory == "transposed":
            return array.copy(order="F")
        if memory == "strided":
            between = True if array.dtype == np.bool_ else np.nan
            larger = np.full([2 * n for n in array.shape], between, array.dtype)
            view = larger[(slice(None, None, 2),) * array.ndim]
        elif memory == "reversed":
            view = np.empty_like(array, order="C")[(slice(None, None, -1),) * array.ndim]
        elif memory == "repeated":
            once = self._once(array).copy(order="C")
            strides = tuple(0 if n == 1 else s for n, s in zip(once.shape, once.strides, strict=True))
            # Unlike broadcast_to, this gives an array that may be written to, so that a function which does is seen.
            return np.lib.stride_tricks.as_strided(once, array.shape, strides)
        else:
            return array.copy(order="C")
        view[...] = array
        return view
