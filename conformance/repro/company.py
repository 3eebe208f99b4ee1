"""Scripts of rows that fail only beside others: the fewest other rows that show it are found by shrinking the batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...adapters.subject import Method, Subject
from ...spec.batch import Batch, Floats
from ...spec.rounding import Mode
from ..calls import Returned, call
from ..checks import relations
from ..finding import Witness
from ..judgement import Codes
from ..truth import Side, Truth
from ..view import View
from .literals import number, numbers
from .told import Body, Told
from .verdict import ENTRIES, apart

CALLS = 80
"""Calls for one batch that is shrunk, at most."""

LARGEST = 600
"""Scores of a batch that a script may hold."""

SIDE: dict[Method, Side] = {"vjp": "cotangents", "jvp": "tangents"}


@dataclass(frozen=True)
class Shown:
    """What one row of a batch shows: the entry at fault, what is true of it, and how far from it is allowed."""

    index: int
    true: Floats
    budget: float


@dataclass(eq=False)
class _Company:
    """Whether a row still fails in a smaller batch. ``beside``: compared with the row alone, not with the truth."""

    told: Told
    subject: Subject
    method: Method
    beside: bool
    left: int = CALLS

    def shows(self, batch: Batch, at: int) -> Shown | None:
        """What is wrong with a row of a batch; None where nothing is, or the calls are spent."""
        if self.left <= 0:
            return None
        self.left -= 1
        view = View(self.subject, self.told.rule, Truth(batch), frozenset())
        side = SIDE.get(self.method)
        if side is None:
            values, true, budget = view.values, view.truth.weights.weights.value, view.budget().error
        else:
            mode: Mode = "vjp" if self.method == "vjp" else "jvp"
            values, true = view.derivative_values(mode, side), view.truth.derivative(side).value
            budget = view.derivative_budget(mode, side)
        if values is None:
            return None
        row, exact, limit = values[at], true[at], budget[at]
        if self.beside:
            arrays = [batch.scores, batch.mask] + ([] if side is None else [getattr(batch, side)])
            answer = call(self.subject, self.method, *(a[at : at + 1] for a in arrays))
            if not isinstance(answer, Returned):
                return None
            exact, limit = answer.values[0], 2.0 * limit
        with np.errstate(invalid="ignore"):
            error = np.abs(row - exact)
        excess = np.where(error <= limit, -1.0, np.where(np.isnan(error), np.inf, error - limit))
        if not (excess >= 0.0).any():
            return None
        index = int(excess.argmax())
        return Shown(index, exact, float(limit[index]))

    def fewest(self, batch: Batch, at: int) -> tuple[Batch, int]:
        """The batch with as few other rows, and then as few keys, as still show it."""
        others = [r for r in range(batch.shape[0]) if r != at]
        step = len(others)
        while step > 1:
            step = (step + 1) // 2
            for start in range(0, len(others), step):
                kept = others[:start] + others[start + step :]
                if kept and self.shows(*_rows(batch, kept, at)) is not None:
                    others, step = kept, min(step, max(len(kept), 1)) * 2
                    break
            if self.left <= CALLS // 2:
                break
        smaller, place = _rows(batch, others, at)
        for keys in _halves(smaller.shape[1]):
            cut = _keys(smaller, keys)
            if self.shows(cut, place) is not None:
                return cut, place
        return smaller, place


def _rows(batch: Batch, others: list[int], at: int) -> tuple[Batch, int]:
    kept = np.array(sorted([*others, at]), np.int64)
    parts = {n: getattr(batch, n)[kept] for n in ("scores", "mask", "cotangents", "tangents")}
    bare = replace(batch, relations={}, permutation=None, family=np.zeros(len(kept), np.int64), families=("row",))
    return replace(bare, **parts), int(np.searchsorted(kept, at))


def _halves(keys: int) -> Iterator[Codes]:
    """The first few keys, fewest first."""
    yield from (np.arange(n) for n in (2, 3, 4, 8) if n < keys)


def _keys(batch: Batch, keys: Codes) -> Batch:
    return replace(batch, **{n: getattr(batch, n)[:, keys] for n in ("scores", "mask", "cotangents", "tangents")})


def of_company(told: Told, subject: Subject, key: str, w: Witness) -> Body:
    """The script of a row that fails in its batch, with the fewest other rows that were found to be needed."""
    beside = key == relations.NAMES["position"]
    method: Method = "forward"
    if w.quantity in ("vjp", "jvp"):
        method = "vjp" if w.quantity == "vjp" else "jvp"
    elif beside and w.cotangent is not None:
        method = "vjp"
    elif beside and w.tangent is not None:
        method = "jvp"
    elif w.quantity not in ("weights", "row sum") and not beside:
        raise told.refused(f"compares two answers ({w.quantity}) about a row that fails only inside its batch.")
    case = told.case(w.batch)
    if case is None or case.layout is not None:
        raise told.refused("speaks of a row that fails only inside its batch, which the seed does not give here.")
    company = _Company(told, subject, method, beside)
    whole = case.build()
    for at in _candidates(whole, w.row):
        batch, place = _rows(whole, [r for r in range(whole.shape[0]) if r != at], at)
        if company.shows(batch, place) is not None:
            batch, place = company.fewest(batch, place)
            break
    else:
        raise told.refused(
            "speaks of a row that fails neither alone nor in one call with its batch here: it takes the calls before."
        )
    if batch.scores.size > LARGEST:
        rows, keys = batch.shape
        raise told.refused(f"takes {rows} rows of {keys} keys to show, which is too large for a script.")
    company.left = 1
    shown = company.shows(batch, place)
    if shown is None:
        raise told.refused("speaks of a row that does not fail every time.")
    return _written(told, method, beside, batch, place, shown), (method,)


def _candidates(batch: Batch, row: int) -> Iterator[int]:
    if row < batch.shape[0]:
        yield row
    pairs = batch.relations.get("position")
    if pairs is not None:
        yield from (b if row == a else a for a, b in pairs.tolist() if row in (a, b))


def _written(told: Told, method: Method, beside: bool, batch: Batch, at: int, shown: Shown) -> list[str]:
    side = SIDE.get(method)
    lines = [told.given("scores", batch.scores), told.allowed(batch.mask)]
    lines += [] if side is None else [told.given("vector", getattr(batch, side))]
    names = ["scores", "mask"] + ([] if side is None else ["vector"])
    first = "[0]" if told.recipe.several and method == "forward" else ""
    whole = ", ".join(names)
    lines.append(f"returned = {told.exactly(f'run({whole}){first}')}[{at}]")
    if not beside:
        return [
            *lines,
            f"true = np.array({numbers(shown.true.tolist())})",
            f"budget, at = {number(shown.budget)}, {shown.index}",
            *ENTRIES,
        ]
    alone = ", ".join(f"{n}[{at} : {at + 1}]" for n in names)
    return [
        *lines,
        f"other = {told.exactly(f'run({alone}){first}')}[0]",
        *apart(told.finding.diagnosis, "in its batch", "alone", str(shown.index), shown.budget),
    ]
