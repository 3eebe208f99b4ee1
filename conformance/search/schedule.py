"""Which searches a deep run makes, and where each of them starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor

import numpy as np

from ...adapters.remote import Source
from ...adapters.subject import Subject
from ...spec.oracle.audit import Audit
from ..cases.build import SHORT
from ..cases.plan import SIZES
from ..judgement import Worst
from ..minimise.rows import Rows, joined
from ..runner import CaseJudged, CaseStarted, Event, Policy, Results, merge, resolved
from ..tally import Tallies
from .climb import OBJECTIVES, Climb, climb


def searches(
    subjects: Sequence[Subject],
    dtypes: Sequence[str],
    seed: int,
    policy: Policy,
    results: Results,
    *,
    executor: Executor | None = None,
    source: Source | None = None,
) -> Iterator[Event]:
    """Search for every subject in every dtype, and add what comes out to ``results``.

    Each search starts from the worst rows that ``results`` holds when it is begun, and from random ones. With an
    ``executor`` the subjects are resolved again from ``source``, in its processes.
    """
    size = SIZES["deep"]
    cases = [
        Climb(
            dtype, "search", size.rows, SHORT, 0, seed, subject=subject.id,
            start=_worst_rows(results.get((subject.id, dtype), {})),
        )
        for dtype in dtypes
        for subject in subjects
        if dtype in subject.dtypes
    ]  # fmt: skip
    by_id = {s.id: s for s in subjects}
    futures = [executor.submit(climb_by_name, case, source, policy) for case in cases] if executor and source else []
    try:
        for index, case in enumerate(cases):
            yield CaseStarted(case, index, len(cases))
            found, audit = futures[index].result() if futures else climb(case, by_id[case.subject], policy)
            merge(results, found)
            yield CaseJudged(case, index, len(cases), audit)
    finally:
        for future in futures:
            future.cancel()


def climb_by_name(case: Climb, source: Source, policy: Policy) -> tuple[Results, Audit]:
    """:func:`~hardmask.conformance.search.climb` in another process: subjects do not travel, their names do."""
    (subject,) = (s for s in resolved(source) if s.id == case.subject)
    return climb(case, subject, policy)


def _worst_rows(tallies: Tallies) -> Rows | None:
    """The worst rows of what is climbed, as rows of ``SHORT`` keys; None when there are none."""
    names = {o.declaration for o in OBJECTIVES}
    worst = [t.worst for (name, _), t in sorted(tallies.items()) if name in names and t.worst is not None]
    fitted = [_fitted(w) for w in worst if w.mask.any() and np.isfinite(w.scores[w.mask]).all()]
    return joined(fitted) if fitted else None


def _fitted(worst: Worst) -> Rows:
    """A row cut or filled up to ``SHORT`` keys: the offending key and the largest scores stay; blocked keys fill up."""
    keys = len(worst.mask)
    rank = np.where(worst.mask, -worst.scores, np.inf)
    if worst.index >= 0:
        rank[worst.index] = -np.inf
    kept = np.sort(np.argsort(rank, kind="stable")[:SHORT])

    def part(values: np.ndarray) -> np.ndarray:
        filled = np.zeros((1, SHORT), values.dtype)
        filled[0, : min(keys, SHORT)] = values[kept]
        return filled

    mask = part(worst.mask)
    scores = np.where(mask, part(worst.scores), 0.0)
    vectors = [np.nan_to_num(part(v), posinf=0.0, neginf=0.0) for v in (worst.cotangent, worst.tangent)]
    return Rows(scores, mask, vectors[0], vectors[1], np.zeros((1, SHORT), np.int64))
