"""Known answers: the smallest inputs of faults that users reported publicly, with what is right.

Every case is a problem in float32 that any attention subject can be put to, as far as its encoding and its limits let
it. What is right follows from the definitions; where a case has an answer that can be written down, it is here too, and
the tests hold the oracle against it. The family of a finding names the report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...spec.attention.problem import Alignment, Problem
from ...spec.batch import Floats
from ...spec.formats import FORMATS
from .masks import causal

DTYPE = "float32"
Nested = Sequence[Any]


@dataclass(frozen=True, eq=False)
class KnownCase:
    """One reported fault: where it was reported, what is right in a sentence, the problem, and answers as numbers.

    ``answers``: quantity -> the true values, in the shape of the quantity, as far as they are short to write.
    """

    reference: str
    right: str
    made: Callable[[], Problem]
    answers: dict[str, Nested] = field(default_factory=dict)

    def build(self) -> Problem:
        """The problem, named after the report."""
        return replace(self.made(), key=f"{DTYPE}/reported/{self.reference}", family=f"reported: {self.reference}")


@dataclass(frozen=True)
class Reported:
    """A known case as a case of a run: small, picklable, the same for every seed."""

    reference: str
    dtype: str = DTYPE
    seed: int = 0
    related: bool = False
    few: bool = True

    @property
    def key(self) -> str:
        """Names the problem."""
        return f"{DTYPE}/reported/{self.reference}"

    def build(self) -> Problem:
        """The problem."""
        return next(case for case in KNOWN if case.reference == self.reference).build()


def _of(
    q: Any,
    k: Any,
    v: Any,
    mask: Any,
    *,
    cotangent: Any = None,
    scale: float | None = None,
    causal: Alignment | None = None,
    lengths: bool = False,
) -> Problem:
    """A problem from arrays with two to four axes; the cotangent is 1, 2, 3, … where none is given."""

    def stored(array: Any) -> Any:
        wide = np.asarray(array, dtype=np.float64)
        return np.array(wide.reshape((1,) * (4 - wide.ndim) + wide.shape), FORMATS[DTYPE].dtype, order="C")

    q, k, v = stored(q), stored(k), stored(v)
    allowed = np.asarray(mask, dtype=bool)
    output = (*q.shape[:3], v.shape[3])
    counted = np.arange(1.0, np.prod(output) + 1).reshape(output) if cotangent is None else cotangent
    rng = np.random.default_rng(7)
    tangents = tuple(stored(rng.standard_normal(a.shape)) for a in (q, k, v))
    return Problem(
        key="",
        family="",
        dtype=DTYPE,
        q=q,
        k=k,
        v=v,
        mask=allowed.reshape((1,) * (4 - allowed.ndim) + allowed.shape),
        scale=q.shape[3] ** -0.5 if scale is None else scale,
        cotangent=stored(np.broadcast_to(stored(counted), output)),
        tangents=tangents,
        causal=causal,
        lengths=lengths,
    )


def _normal(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape)


def _lengths(keys: int, *lengths: int) -> Any:
    return (np.arange(keys) < np.array(lengths)[:, None])[:, None, None]


def _padded_sample() -> Problem:
    x = _normal(4, 1, 2, 3)
    mask = np.array([[True, True], [False, True], [False, False], [False, False]])[:, None, None]
    return _of(x, x, x, mask)


def _extra_row() -> Problem:
    mask = np.zeros((6, 10), bool)
    mask[:5, :5] = causal(5, 5, "top-left")
    return _of(_normal(1, 2, 6, 8), _normal(1, 2, 10, 8, seed=1), _normal(1, 2, 10, 8, seed=2), mask, scale=0.125)


def _row_of(queries: int, keys: int, width: int, mask: Any, **more: Any) -> Problem:
    arrays = _normal(1, 1, queries, width), _normal(1, 1, keys, width, seed=1), _normal(1, 1, keys, width, seed=2)
    return _of(*arrays, mask, **more)


def _far_below() -> Problem:
    """The mask of the report, and a row whose allowed scores are far below what a clamped maximum would let through."""
    mask = causal(4, 4, "top-left")
    mask[:, 0] = False
    q = np.array([[1.0], [1.0], [1.0], [-20000.0]])
    k = np.array([[0.0], [1.0], [2.0], [1.5]])
    return _of(q, k, np.array([[1.0], [2.0], [4.0], [8.0]]), mask)


def _band() -> Problem:
    """Two samples under a band of two; the padding of the second empties a row that the loss does not read."""
    band = np.eye(3, dtype=bool) | np.eye(3, k=-1, dtype=bool)
    mask = np.stack([band, band & np.array([True, False, False])])[:, None]
    x = _normal(2, 1, 3, 1)
    cotangent = np.zeros((2, 1, 3, 1))
    cotangent[:, :, 0] = 1.0
    return _of(x, x, x, mask, cotangent=cotangent)


def _one_head_blocked() -> Problem:
    mask = np.ones((1, 3, 5, 5), bool)
    mask[:, 2] = False
    x = _normal(1, 3, 5, 1)
    return _of(x, x, x, mask)


def _rows(scores: Any, mask: Any, cotangent: Any) -> Problem:
    """A masked softmax of given scores, through the identity: rows become batch entries."""
    scores = np.asarray(scores, dtype=np.float64)
    count, keys = scores.shape
    q = np.zeros((count, 1, 1, keys))
    q[..., 0] = 1.0
    k = np.zeros((count, 1, keys, keys))
    k[:, 0, :, 0] = scores
    v = np.broadcast_to(np.eye(keys), k.shape)
    g = np.asarray(cotangent, dtype=np.float64)[:, None, None]
    return _of(q, k, v, np.asarray(mask)[:, None, None], cotangent=g, scale=1.0)


def _packed() -> Problem:
    """Three documents packed together, the second without a query, so that nobody reads its keys."""
    queries, keys = np.repeat([0, 2], 3), np.repeat([0, 1, 2], 2)
    return _row_of(6, 6, 4, queries[:, None] == keys)


def _short_of_padding() -> Problem:
    """Both queries and keys are shorter than the buffers."""
    mask = np.zeros((2, 1, 4, 4), bool)
    mask[0, :, :3, :2] = True
    mask[1, :, :2, :3] = True
    return _of(_normal(2, 1, 4, 4), _normal(2, 1, 4, 4, seed=1), _normal(2, 1, 4, 4, seed=2), mask)


def _blocked_giant() -> Problem:
    x = np.arange(8.0).reshape(2, 4)
    k = x.copy()
    k[1, 0] = 1e10
    return _of(x, k, x, np.array([[True, False], [True, False]]))


def _asymmetric() -> Problem:
    """Each query sees a set of keys that differs from its complement, with distinct values."""
    mask = causal(3, 3, "top-left")
    return _of(np.zeros((3, 2)), np.zeros((3, 2)), [[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]], mask, causal="top-left")


def _decoding(alignment: Alignment) -> Callable[[], Problem]:
    mask = causal(1, 4, alignment)
    return lambda: _of([[0.0]], np.zeros((4, 1)), [[0.0], [1.0], [2.0], [3.0]], mask, causal=alignment)


def _more_queries(alignment: Alignment) -> Callable[[], Problem]:
    mask = causal(4, 2, alignment)
    return lambda: _of(np.zeros((4, 1)), np.zeros((2, 1)), [[1.0], [3.0]], mask, causal=alignment)


def _documented() -> Problem:
    return _of(
        [[0.0], [0.0]], [[1.0], [-1.0]], [[2.0], [4.0]], [[True, True], [False, False]], cotangent=[[1.0], [7.0]]
    )


KNOWN: tuple[KnownCase, ...] = (
    KnownCase(
        "pytorch/pytorch#24816", "A sample that is all padding gives zeros and leaves the others.", _padded_sample
    ),
    KnownCase("pytorch/pytorch#103749", "A row that is all blocked is zero.", _extra_row),
    KnownCase(
        "pytorch/pytorch#156707",
        "The empty row is zero, with and without gradients.",
        lambda: _row_of(2, 2, 4, [[False, False], [True, True]]),
    ),
    KnownCase(
        "iree-org/iree#24175",
        "One query, two blocked keys: the zero vector.",
        lambda: _row_of(1, 2, 2, [[False, False]]),
        {"output": [[[[0.0, 0.0]]]]},
    ),
    KnownCase(
        "openvinotoolkit/openvino#35959",
        "Nothing is allowed anywhere: all zeros.",
        lambda: _row_of(3, 3, 4, np.zeros((3, 3), bool)),
        {"output": np.zeros((1, 1, 3, 4)).tolist()},
    ),
    KnownCase(
        "tracel-ai/burn#4694",
        "Two masks that are each legal empty the first row; scores below any clamp keep their weights.",
        _far_below,
        {"output": [[[[0.0], [2.0], [3.4621171572600098], [2.0]]]]},
    ),
    KnownCase(
        "microsoft/onnxruntime#4129",
        "The sample without a key is zero, the other is not touched.",
        lambda: _of(
            _normal(2, 1, 3, 4),
            _normal(2, 1, 3, 4, seed=1),
            _normal(2, 1, 3, 4, seed=2),
            _lengths(3, 3, 0),
            lengths=True,
        ),
    ),
    KnownCase(
        "patrick-kidger/equinox#274",
        "The last of three rows is empty.",
        lambda: _of(
            [[1.0, 2.0], [0.0, 1.0], [3.0, 1.0]],
            [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]],
            [[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]],
            [[True, True, False], [True, True, False], [False, False, False]],
        ),
    ),
    KnownCase(
        "keras-team/keras#21123",
        "A softmax over nothing is zero, not uniform.",
        lambda: _rows([[1.0, 2.0, 3.0, 4.0]], np.zeros((1, 4), bool), [[1.0, 2.0, 3.0, 4.0]]),
        {"output": [[[[0.0, 0.0, 0.0, 0.0]]]]},
    ),
    KnownCase(
        "NVIDIA/apex#1390",
        "Blocked keys share no weight.",
        lambda: _of([[0.0]], np.zeros((3, 1)), [[1.0], [2.0], [6.0]], [[False, False, False]], lengths=True),
        {"output": [[[[0.0]]]]},
    ),
    KnownCase(
        "NVIDIA/TensorRT-LLM#17477",
        "A causal row without a key is zero, also when the flag alone says so.",
        _more_queries("bottom-right"),
    ),
    KnownCase(
        "ml-explore/mlx#2395",
        "The empty row among four is zero, and its cotangent reaches no value.",
        lambda: _row_of(4, 4, 2, np.arange(4)[:, None] != np.full(4, 1)),
    ),
    KnownCase(
        "chengchingwen/Transformers.jl#146",
        "A mask that allows nothing is not one that allows everything.",
        lambda: _of(
            np.stack([_normal(1, 4, 4)] * 2),
            np.stack([_normal(1, 4, 4, seed=1)] * 2),
            np.stack([_normal(1, 4, 4, seed=2)] * 2),
            np.array([True, False])[:, None, None, None] & np.ones((2, 1, 4, 4), bool),
        ),
    ),
    KnownCase(
        "microsoft/onnxruntime#28958",
        "The blocked row is zero; one constant on all scores of a row is a shift, however large.",
        lambda: _of(
            [[1.0, -200.0], [1.0, -200.0]],
            [[0.0, 200.0], [1.0, 200.0]],
            [[1.0, 0.0], [0.0, 1.0]],
            [[True, True], [False, False]],
            scale=1.0,
        ),
        {"output": [[[[0.2689414213699951, 0.7310585786300049], [0.0, 0.0]]]]},
    ),
    KnownCase("pytorch/pytorch#41508", "A row that no loss reads leaves all gradients finite.", _band),
    KnownCase(
        "pytorch/pytorch#160064",
        "The blocked head is zero, whether or not the weights are asked for.",
        _one_head_blocked,
    ),
    KnownCase(
        "pytorch/pytorch#31829",
        "The gradient of a row over nothing is zero, for a zero cotangent too.",
        lambda: _rows([[0.0, 0.0], [1.0, 0.0]], [[False, False], [True, True]], [[0.0, 0.0], [1.0, 0.0]]),
    ),
    KnownCase(
        "Xilinx/brevitas#1591",
        "Both derivatives of the empty row are zero, and the other row keeps its own.",
        lambda: _rows([[0.3, 0.7], [0.0, 1.0]], [[False, False], [True, True]], [[1.0, 2.0], [1.0, 2.0]]),
        {"dk": [[[[0.0, 0.0], [0.0, 0.0]]], [[[-0.19661193324148185, 0.0], [0.19661193324148185, 0.0]]]]},
    ),
    KnownCase("Dao-AILab/flash-attention#2421", "Keys that no query reads get zero gradients.", _packed),
    KnownCase("openxla/xla#44867", "Gradients in the padding are zero.", _short_of_padding),
    KnownCase(
        "pytorch/pytorch#136232",
        "Gradients are finite when the mask was made for longer sequences.",
        lambda: _row_of(33, 33, 8, causal(33, 33, "top-left"), causal="top-left"),
    ),
    KnownCase(
        "pytorch/pytorch#101967",
        "A blocked key of 1e10 does not matter.",
        _blocked_giant,
        {"output": [[[[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]]]]},
    ),
    KnownCase(
        "keras-team/keras#23038",
        "A causal mask holds on every path.",
        lambda: _row_of(5, 5, 4, causal(5, 5, "top-left"), causal="top-left"),
    ),
    KnownCase(
        "pytorch/pytorch#99282",
        "A causal mask holds when the weights are asked for.",
        lambda: _of(
            _normal(4, 2, 3, 4),
            _normal(4, 2, 3, 4, seed=1),
            _normal(4, 2, 3, 4, seed=2),
            causal(3, 3, "top-left"),
            causal="top-left",
        ),
    ),
    KnownCase(
        "pytorch/pytorch#170415",
        "True means allowed, or blocked, but one of the two.",
        _asymmetric,
        {"output": [[[[1.0, 0.0], [1.5, 0.0], [2.3333333333333335, 0.0]]]]},
    ),
    KnownCase(
        "pytorch/pytorch#103963",
        "Zeros and ones that mean blocked and allowed are no bias.",
        lambda: _of([[0.0]], [[0.0], [0.0]], [[1.0], [0.0]], [[True, False]], lengths=True),
        {"output": [[[[1.0]]]]},
    ),
    KnownCase(
        "NVIDIA/TransformerEngine#614",
        "Three keys of eight are padding, and no path attends to them instead.",
        lambda: _of(
            _normal(1, 1, 8, 4), _normal(1, 1, 8, 4, seed=1), _normal(1, 1, 8, 4, seed=2), _lengths(8, 5), lengths=True
        ),
    ),
    KnownCase(
        "pytorch/pytorch#103082",
        "Aligned top-left, a single query sees the first key alone.",
        _decoding("top-left"),
        {"output": [[[[0.0]]]]},
    ),
    KnownCase(
        "microsoft/onnxruntime#29020",
        "Aligned bottom-right, a single query sees every key.",
        _decoding("bottom-right"),
        {"output": [[[[1.5]]]]},
    ),
    KnownCase(
        "ml-explore/mlx#2835",
        "Aligned top-left, later queries see all of the shorter keys.",
        _more_queries("top-left"),
        {"output": [[[[1.0], [2.0], [2.0], [2.0]]]]},
    ),
    KnownCase(
        "Dao-AILab/flash-attention#1778",
        "Aligned bottom-right, the first queries see nothing, and are zero.",
        _more_queries("bottom-right"),
        {"output": [[[[0.0], [0.0], [1.0], [2.0]]]]},
    ),
    KnownCase(
        "leanprover/TorchLean: empty row gradient",
        "The empty row's cotangent reaches nothing.",
        _documented,
        {
            "output": [[[[3.0], [0.0]]]],
            "dq": [[[[-1.0], [0.0]]]],
            "dk": [[[[0.0], [0.0]]]],
            "dv": [[[[0.5], [0.5]]]],
        },
    ),
)
"""The cases, in the order of their kinds."""


def reported() -> list[Reported]:
    """The cases for a run.

    >>> len({case.key for case in reported()}) == len(KNOWN)
    True
    """
    return [Reported(case.reference) for case in KNOWN]
