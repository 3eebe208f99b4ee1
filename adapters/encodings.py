"""A Boolean mask in the forms that entry points take instead of one: lengths, a causal flag."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..spec.attention.problem import Alignment
from ..spec.batch import Bools


def lengths_of(mask: Bools, batch: int, keys: int) -> npt.NDArray[np.int32]:
    """How many keys each batch entry allows, for a mask that allows exactly the first keys of each.

    ``mask``: Boolean, four axes, of a shape that broadcasts to ``(batch, H, Lq, keys)``. Returns int32, ``(batch,)``.

    >>> lengths_of(np.array([[1, 1, 0], [0, 0, 0]], bool)[:, None, None, :], 2, 3)
    array([2, 0], dtype=int32)
    """
    allowed = np.broadcast_to(mask.any(axis=(1, 2)), (batch, keys))
    return np.asarray(allowed.sum(axis=-1), np.int32)


def first_keys(lengths: npt.NDArray[np.int32], keys: int) -> Bools:
    """The mask ``(batch, keys)`` that allows so many of the first keys.

    >>> first_keys(np.array([1, 0], np.int32), 2)
    array([[ True, False],
           [False, False]])
    """
    return np.asarray(np.arange(keys) < lengths[:, None])


def causal_mask(queries: int, keys: int, alignment: Alignment) -> Bools:
    """The mask ``(queries, keys)`` of a causal flag: query ``i`` sees the keys up to ``i``, counted from the first pair
    of the two (top-left) or from the last (bottom-right).

    >>> causal_mask(1, 2, "bottom-right"), causal_mask(1, 2, "top-left")
    (array([[ True,  True]]), array([[ True, False]]))
    """
    offset = keys - queries if alignment == "bottom-right" else 0
    return np.tri(queries, keys, offset, dtype=bool)
