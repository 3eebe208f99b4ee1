"""Judge rows that somebody gives, in one call: what a user's own property test asserts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..adapters.subject import Subject
from ..adapters.user_code import FORWARD_ONLY
from ..spec.batch import Batch
from ..spec.contracts import contract as contract_named
from ..spec.formats import DTYPES
from .cases import Case
from .cases.build import GIVEN
from .cases.vectors import HUGE
from .finding import Finding

Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Given(Case):
    """A case whose batch is at hand instead of being built from a seed."""

    batch: Batch = field(kw_only=True)

    @property
    def key(self) -> str:
        """Names the batch."""
        return self.batch.key

    def build(self) -> Batch:
        """The batch."""
        return self.batch


def check_row(
    target: Subject | Callable[[Array, npt.NDArray[np.bool_]], Any],
    scores: npt.ArrayLike,
    mask: npt.ArrayLike,
    cotangents: npt.ArrayLike | None = None,
    tangents: npt.ArrayLike | None = None,
    *,
    contract: str | None = None,
) -> list[Finding]:
    """Assert that a masked softmax keeps every declaration on the given row or rows, and return the findings.

    ``target``: a :class:`~hardmask.adapters.subject.Subject`, or a function ``f(scores, mask) -> weights`` over arrays
    of shape ``(rows, keys)``, True = allowed. ``scores``: shape ``(keys,)`` or ``(rows, keys)``, in one of the dtypes
    float64, float32, float16, bfloat16, which is the dtype that is judged; ``mask``: Boolean, the same shape. The
    derivatives are judged along ``cotangents`` (VJP) and ``tangents`` (JVP), of the shape of the scores; without them,
    along ``1, -2, 3, -4, …``, which no Jacobian sends to zero. Empty rows are judged by the subject's contract
    (``zero`` for a function), or by ``contract``.

    The list holds the :class:`~hardmask.conformance.finding.Finding` of every declaration that the rows meet: verdict,
    error, budget, and the share of the budget that was used.

    Raises AssertionError, whose message shows the failing row beside the true values, when a declaration fails or the
    call raises; ValueError for arrays that do not fit together, for another dtype, or for one that the subject does not
    offer.

    >>> def softmax(scores, mask):
    ...     e = np.where(mask, np.exp(scores), 0)
    ...     return e / e.sum(axis=-1, keepdims=True)
    >>> found = check_row(softmax, np.float32([0.0, 1.0, 5.0]), [True, True, False])
    >>> {f.verdict for f in found}
    {'pass'}
    >>> check_row(softmax, np.float32([0.0, 100.0]), [True, True])
    Traceback (most recent call last):
    ...
    AssertionError: user.softmax · extension:row-sum · float32 · given
      diagnosis  NaN: exp without subtracting the largest allowed score overflows, or inf - inf was computed
    ...
    """
    from .checks import SERVED_BY
    from .promises import declared
    from .runner import Policy, judge
    from .terminal.witness import grouped, text
    from .verdicts import findings

    if contract is not None:
        contract_named(contract)
    batch = _batch(scores, mask, cotangents, tangents)
    subject = target if isinstance(target, Subject) else _subject(target, batch.dtype)
    if batch.dtype not in subject.dtypes:
        offered = ", ".join(subject.dtypes) or "nothing"
        raise ValueError(f"'{subject.id}' offers {offered}, and the scores are {batch.dtype}. Convert the scores.")
    case = Given(batch.dtype, GIVEN, *batch.shape, 0, 0, batch=batch)
    results = judge(case, [subject], Policy(contract, measure=False))
    found = [f for f in findings([subject], [batch.dtype], results) if f.checked or f.verdict == "error"]
    failures = grouped(found)
    if failures:
        known = {d.name: {"statement": d.statement, "plain": d.plain} for d in map(declared, SERVED_BY)}
        raise AssertionError("\n\n".join(text(group, known) for group in failures))
    return found


def _subject(function: Callable[..., Any], dtype: str) -> Subject:
    if not callable(function):
        raise ValueError(f"check_row judges a Subject or a function f(scores, mask), not a {type(function).__name__}.")
    name = "".join(c for c in getattr(function, "__name__", "") if c.isalnum() or c == "_") or "function"
    reasons = {method: FORWARD_ONLY.format(method=method) for method in ("vjp", "jvp")}
    return Subject(f"user.{name}", function, dtypes=(dtype,), unsupported=reasons)


def _batch(
    scores: npt.ArrayLike, mask: npt.ArrayLike, cotangents: npt.ArrayLike | None, tangents: npt.ArrayLike | None
) -> Batch:
    s, m = np.asarray(scores), np.asarray(mask)
    if s.dtype.name not in DTYPES:
        raise ValueError(f"The scores are {s.dtype}; hardmask judges {', '.join(DTYPES)}. Convert them with astype.")
    if m.dtype != np.bool_ and m.size:
        raise ValueError(f"The mask is {m.dtype}; give Booleans, True = allowed.")
    if s.ndim not in (1, 2) or m.shape != s.shape:
        raise ValueError(
            f"The scores have shape {s.shape} and the mask {m.shape}; give both one shape, (keys,) or (rows, keys)."
        )
    if not s.shape[0] and s.ndim == 2:
        raise ValueError("There is no row to judge: the scores have shape " + f"{s.shape}. Give at least one row.")
    vectors = []
    for name, given in (("cotangents", cotangents), ("tangents", tangents)):
        keys = np.arange(s.shape[-1])
        v = np.broadcast_to((keys + 1) * (-1.0) ** keys, s.shape) if given is None else np.asarray(given)
        if v.shape != s.shape:
            raise ValueError(f"The {name} have shape {v.shape}, the scores {s.shape}; give both one shape.")
        stored = v.astype(s.dtype)
        if given is not None and not np.array_equal(stored.astype(np.float64), v.astype(np.float64), equal_nan=True):
            raise ValueError(f"Not all {name} are numbers of {s.dtype}, in which the row is judged. Round them first.")
        if (np.isfinite(stored) & (np.abs(stored.astype(np.float64)) > HUGE)).any():
            raise ValueError(f"Some {name} are beyond 2^400, where their products overflow. Scale them down.")
        vectors.append(np.atleast_2d(stored))
    s, m = np.atleast_2d(s), np.atleast_2d(m).astype(bool)
    return Batch(
        key=GIVEN,
        dtype=s.dtype.name,
        scores=s,
        mask=m,
        cotangents=vectors[0],
        tangents=vectors[1],
        family=np.zeros(len(s), np.int64),
        families=(GIVEN,),
    )
