"""Hypothesis strategies for masked rows, their vectors, batches and attention inputs.

For property tests of your own. Every number is exact in the dtype. Examples shrink towards short, round rows: fewest
keys, everything allowed, zeros first, whole numbers before fractions.

>>> from hypothesis import given, settings
>>> from hardmask.conformance import check_row
>>> from hardmask.conformance.strategies import masked_rows
>>> def softmax(scores, mask):
...     shifted = np.where(mask, scores, -np.inf)
...     e = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
...     return e / e.sum(axis=-1, keepdims=True)
>>> @settings(max_examples=25, derandomize=True, database=None)
... @given(masked_rows("float32"))
... def test_softmax(row):
...     check_row(softmax, row.scores, row.mask)
>>> test_softmax()

They need Hypothesis, which ``pip install 'hardmask[search]'`` brings; nothing else in hardmask imports it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..spec.formats import DTYPES, FORMATS
from .cases.vectors import HUGE

try:
    from hypothesis import strategies as st
    from hypothesis.extra import numpy as hnp
except ModuleNotFoundError as missing:
    raise ImportError(
        "hardmask.conformance.strategies needs Hypothesis, which is not installed. Run: pip install hypothesis"
    ) from missing

Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]

LARGEST = 100.0
"""Scores and vector entries are no larger than this unless ``extremes`` are asked for."""


class Row(NamedTuple):
    """Scores and mask of one row (shape ``(keys,)``) or of several (``(rows, keys)``); True = allowed."""

    scores: Array
    mask: Bools


class RowWithVectors(NamedTuple):
    """A row with a cotangent of its weights and a tangent of its scores, all of one shape and dtype."""

    scores: Array
    mask: Bools
    cotangents: Array
    tangents: Array


class Attention(NamedTuple):
    """Inputs of masked attention.

    ``Q``: shape ``(heads, queries, width)``; ``K``: ``(heads, keys, width)``; ``V``: ``(heads, keys, value_width)``;
    ``mask``: Boolean, ``(heads, queries, keys)``, True = allowed; ``scale``: a float, exact in the dtype.
    """

    Q: Array
    K: Array
    V: Array
    mask: Bools
    scale: float


def numbers(dtype: str = "float32", *, extremes: bool = False) -> st.SearchStrategy[float]:
    """Finite numbers of a dtype, as Python floats: up to ±100, shrinking to 0 and to small whole numbers.

    ``extremes`` adds the whole finite range, subnormal numbers, and zeros of both signs. Raises ValueError for a dtype
    that hardmask does not judge.

    >>> from hypothesis import find
    >>> find(numbers("float16"), lambda x: x > 10)
    11.0
    """
    form = FORMATS[_known(dtype)]
    width = {"float64": 64, "float32": 32, "float16": 16, "bfloat16": 32}[dtype]

    def stored(x: float) -> float:
        return float(np.float64(x).astype(form.dtype))

    plain: list[st.SearchStrategy[float]] = [
        st.integers(-8, 8).map(float),
        st.floats(-LARGEST, LARGEST, width=width, allow_subnormal=False).map(stored),  # type: ignore[arg-type]
    ]
    if extremes:
        edges = [form.max, -form.max, form.max / 2, form.eta, -form.eta, form.lam, -0.0]
        plain += [
            st.sampled_from(edges),
            st.floats(-form.max, form.max, width=width).map(stored),  # type: ignore[arg-type]
        ]
    return st.one_of(plain)


def masked_rows(
    dtype: str = "float32",
    *,
    min_keys: int = 1,
    max_keys: int = 8,
    empty: bool = False,
    poison: bool = False,
    ties: bool = True,
    extremes: bool = False,
) -> st.SearchStrategy[Row]:
    """One row: scores and mask of shape ``(keys,)``, with ``min_keys`` to ``max_keys`` keys.

    ``empty`` lets rows block every key (with ``min_keys=0`` they may have none); otherwise at least one is allowed.
    ``poison`` puts NaN, infinities and the largest numbers at blocked keys. ``ties`` repeats scores. ``extremes`` draws
    from the whole finite range. Raises ValueError for an unknown dtype, and for lengths that leave no row.

    >>> from hypothesis import find
    >>> row = find(masked_rows("float32"), lambda row: len(row.scores) >= 3 and (row.scores > 10).any())
    >>> row.scores, row.mask
    (array([ 0.,  0., 11.], dtype=float32), array([ True,  True,  True]))
    """
    rows = batches(
        dtype,
        min_rows=1,
        max_rows=1,
        min_keys=min_keys,
        max_keys=max_keys,
        empty=empty,
        poison=poison,
        ties=ties,
        extremes=extremes,
    )
    return rows.map(lambda batch: Row(batch.scores[0], batch.mask[0]))


@st.composite
def _batches(
    draw: st.DrawFn, dtype: str, rows: tuple[int, int], keys: tuple[int, int], empty: bool, poison: bool, ties: bool,
    extremes: bool,
) -> Row:  # fmt: skip
    form = FORMATS[dtype]
    length = draw(st.integers(*keys))
    count = draw(st.integers(*rows))
    allowed = numbers(dtype, extremes=extremes)
    blocked = st.one_of(allowed, st.sampled_from([np.nan, np.inf, -np.inf, form.max, -form.max])) if poison else allowed
    s, m = np.zeros((count, length)), np.ones((count, length), bool)
    for r in range(count):
        m[r] = [not draw(st.booleans()) for _ in range(length)]
        if length and not empty and not m[r].any():
            m[r, draw(st.integers(0, length - 1))] = True
        for i in range(length):
            s[r, i] = draw(allowed if m[r, i] else blocked)
        if ties and length > 1 and draw(st.booleans()):
            # A copy of an allowed score at another allowed key: the maximum is often taken twice then.
            places = np.flatnonzero(m[r]).tolist()
            if len(places) > 1:
                s[r, draw(st.sampled_from(places))] = s[r, draw(st.sampled_from(places))]
    return Row(s.astype(form.dtype), m)


def batches(
    dtype: str = "float32",
    *,
    min_rows: int = 1,
    max_rows: int = 4,
    min_keys: int = 1,
    max_keys: int = 8,
    empty: bool = False,
    poison: bool = False,
    ties: bool = True,
    extremes: bool = False,
) -> st.SearchStrategy[Row]:
    """Several rows of one length: scores and mask of shape ``(rows, keys)``. Options as for :func:`masked_rows`.

    >>> from hypothesis import find
    >>> find(batches("float16"), lambda batch: not batch.mask.all()).mask
    array([[ True, False]])
    """
    _known(dtype)
    _between("rows", min_rows, max_rows)
    _between("keys", min_keys, max_keys)
    if min_keys < 1 and not empty:
        raise ValueError("A row of no keys allows none; pass empty=True, or a min_keys of at least 1.")
    return _batches(dtype, (min_rows, max_rows), (min_keys, max_keys), empty, poison, ties, extremes)


def cotangents(row: Row, *, extremes: bool = False) -> st.SearchStrategy[Array]:
    """Cotangents of the weights of a row or batch: an array of its shape and dtype, shrinking to zeros.

    >>> from hypothesis import find
    >>> row = Row(np.float32([0.0, 0.0]), np.array([True, True]))
    >>> find(cotangents(row), lambda g: g.any())
    array([0., 1.], dtype=float32)
    """
    dtype = row.scores.dtype
    elements = numbers(dtype.name, extremes=extremes)
    if extremes:
        # <w, g> and the sums behind it stay finite: what overflows there is no fault of a softmax.
        most = min(FORMATS[dtype.name].max / (4.0 * max(row.scores.shape[-1], 1)), HUGE)
        elements = elements.map(lambda x: float(np.float64(np.clip(x, -most, most)).astype(dtype)))
    size = int(np.prod(row.scores.shape))
    entries = st.lists(elements, min_size=size, max_size=size)
    return entries.map(lambda values: np.array(values, np.float64).reshape(row.scores.shape).astype(dtype))


def tangents(row: Row, *, extremes: bool = False) -> st.SearchStrategy[Array]:
    """Tangents of the scores of a row or batch: an array of its shape and dtype, shrinking to zeros.

    >>> from hypothesis import find
    >>> find(tangents(Row(np.float16([0.0]), np.array([True]))), lambda u: u[0] < -8)
    array([-9.], dtype=float16)
    """
    return cotangents(row, extremes=extremes)


def rows_with_vectors(dtype: str = "float32", **options: Any) -> st.SearchStrategy[RowWithVectors]:
    """One row with a cotangent and a tangent, each of shape ``(keys,)``. Options as for :func:`masked_rows`.

    >>> from hypothesis import find
    >>> found = find(rows_with_vectors("float64"), lambda row: row.tangents.any())
    >>> found.scores, found.tangents
    (array([0.]), array([1.]))
    """
    extremes = bool(options.get("extremes", False))

    def extended(row: Row) -> st.SearchStrategy[RowWithVectors]:
        vectors = st.tuples(cotangents(row, extremes=extremes), tangents(row, extremes=extremes))
        return vectors.map(lambda pair: RowWithVectors(*row, *pair))

    return masked_rows(dtype, **options).flatmap(extended)


@st.composite
def _attention(draw: st.DrawFn, dtype: str, heads: int, length: tuple[int, int], width: int, empty: bool) -> Attention:
    form = FORMATS[dtype]
    h, queries, keys = draw(st.integers(1, heads)), draw(st.integers(*length)), draw(st.integers(*length))
    d, dv = draw(st.integers(1, width)), draw(st.integers(1, width))
    small = numbers(dtype).map(lambda x: float(np.float64(x / 16.0).astype(form.dtype)))

    def array(*shape: int) -> Array:
        drawn = draw(hnp.arrays(np.float64, shape, elements=small, fill=st.just(0.0)))
        return np.asarray(drawn.astype(form.dtype))

    mask = ~draw(hnp.arrays(np.bool_, (h, queries, keys), elements=st.booleans(), fill=st.just(False)))
    if not empty and keys:
        mask[..., 0] |= ~mask.any(axis=-1)
    scale = draw(st.sampled_from([1.0, 0.5, 0.25, 0.125, float(np.float64(d**-0.5).astype(form.dtype))]))
    return Attention(array(h, queries, d), array(h, keys, d), array(h, keys, dv), np.asarray(mask), scale)


def attention_inputs(
    dtype: str = "float32",
    *,
    max_heads: int = 2,
    min_length: int = 1,
    max_length: int = 5,
    max_width: int = 4,
    empty: bool = False,
) -> st.SearchStrategy[Attention]:
    """Queries, keys, values, Boolean mask and scale, all independent in shape: lengths differ, and with
    ``min_length=0`` either may be zero.

    ``empty`` lets a query be allowed no key; otherwise each is allowed one where there is any. Raises ValueError for an
    unknown dtype and for limits that leave no shape.

    >>> from hypothesis import find
    >>> found = find(attention_inputs("float16"), lambda a: a.Q.shape[1] != a.K.shape[1])
    >>> found.Q.shape, found.K.shape, bool(found.mask.all()), found.scale
    ((1, 1, 1), (1, 2, 1), True, 1.0)
    """
    _between("length", min_length, max_length)
    for name, limit in (("heads", max_heads), ("width", max_width)):
        _between(name, 1, limit)
    return _attention(_known(dtype), max_heads, (min_length, max_length), max_width, empty)


def _known(dtype: str) -> str:
    if dtype not in DTYPES:
        raise ValueError(f"There is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
    return dtype


def _between(what: str, least: int, most: int) -> None:
    if not 0 <= least <= most:
        raise ValueError(f"The {what} range from {least} to {most}, which leaves nothing to draw. Swap or widen them.")
