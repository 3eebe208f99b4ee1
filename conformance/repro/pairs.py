"""Scripts of failures that two answers about one row show: copies, derivatives of two modes, given weights."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations

import numpy as np

from ...adapters.recipe import Which
from ...adapters.subject import Subject
from ...spec.batch import Batch
from ..cases.build import SHORT
from ..checks import relations
from ..checks.adjoint import JACOBIAN
from ..finding import Finding, Witness
from ..judgement import Codes, Worst
from ..minimise.report import copy_of
from ..minimise.rows import Rows
from ..minimise.trial import CheckTrial
from ..replay.rows import worst_of
from ..verification.claims import numbers as floats
from .literals import number
from .told import Body, Told
from .verdict import ENTRIES, apart, small

SOME = 24
"""Orders of the keys that are tried, where the certificate does not hold the one that failed."""

MODES: dict[str, tuple[Which, Which]] = {
    "VJP with itself": ("vjp", "vjp"),
    "JVP with itself": ("jvp", "jvp"),
    "JVP with VJP": ("jvp", "vjp"),
}
"""Which derivative is taken of the tangent, and which of the cotangent, by the note of the witness."""


def budget_of(f: Finding, w: Witness) -> float:
    """The budget of a finding's smallest row, or of its own."""
    return (w.budget if w is f.minimal else f.budget) or 0.0


def row_of(told: Told, w: Witness) -> list[str]:
    """The lines that give scores and mask."""
    assert w.scores is not None
    assert w.mask is not None
    return [told.given("scores", floats(w.scores)[None]), told.allowed(np.array(w.mask)[None])]


def inner_products(told: Told, w: Witness) -> Body:
    """``<J u, g> = <u, J g>``, summed without rounding."""
    if w.note not in MODES or w.tangent is None or w.cotangent is None:
        raise told.refused("compares two inner products, and does not hold their vectors.")
    forth, back = MODES[w.note]
    same = forth == back
    names = ("run", "run") if same else (f"run_{forth}", f"run_{back}")
    lines = [
        "from fractions import Fraction",
        "",
        *row_of(told, w),
        told.given("u", floats(w.tangent)[None]),
        told.given("g", floats(w.cotangent)[None]),
        f"forth = {told.exactly(f'{names[0]}(scores, mask, u)')}[0]",
        f"back = {told.exactly(f'{names[1]}(scores, mask, g)')}[0]",
        f'print("J u by the {forth.upper()}", forth)',
        f'print("J g by the {back.upper()}", back)',
        f"vectors = [*{told.exactly('g')}[0], *-{told.exactly('u')}[0]]",
        "terms = zip([*forth, *back], vectors, 2 * mask[0].tolist())",
        "finite = np.isfinite(forth).all() and np.isfinite(back).all()",
        "exact = sum(Fraction(x) * Fraction(y) for x, y, allowed in terms if allowed) if finite else np.nan",
        "apart = abs(float(exact))",
        *small(told.finding.diagnosis, "<J u, g> - <u, J g>", budget_of(told.finding, w)),
    ]
    return lines, (forth,) if same else (forth, back)


def jacobian(told: Told, w: Witness) -> Body:
    """One entry of the Jacobian by reverse and by forward mode."""
    if w.cotangent is None or w.index is None:
        raise told.refused("compares two Jacobians, and does not say in which entry.")
    unit, at = int(np.argmax(floats(w.cotangent))), w.index
    every = np.eye(w.keys)
    lines = [
        *row_of(told, w),
        told.given("pulled", every[unit][None]),
        told.given("pushed", every[at][None]),
        f"returned = {told.exactly('run_vjp(scores, mask, pulled)')}[0, {at} : {at} + 1]",
        f"other = {told.exactly('run_jvp(scores, mask, pushed)')}[0, {unit} : {unit} + 1]",
        *apart(told.finding.diagnosis, "by the VJP", "by the JVP", "0", budget_of(told.finding, w)),
    ]
    return lines, ("vjp", "jvp")


def given_weights(told: Told, w: Witness) -> Body:
    """The VJP against ``w (g - <w, g>)`` at the very weights that the forward pass returns."""
    if w.cotangent is None or w.index is None:
        raise told.refused("does not hold the cotangent or the entry at fault.")
    first = "[0]" if told.recipe.several else ""
    lines = [
        "from fractions import Fraction",
        "",
        *row_of(told, w),
        told.given("vector", floats(w.cotangent)[None]),
        f"weights = {told.exactly(f'run_forward(scores, mask){first}')}[0]",
        f"returned = {told.exactly('run_vjp(scores, mask, vector)')}[0]",
        'print("weights ", weights)',
        "pairs = zip(weights.tolist(), vector[0].tolist(), mask[0].tolist())",
        "pairs = [(Fraction(x), Fraction(y)) if allowed else (0, 0) for x, y, allowed in pairs]",
        "inner = sum(x * y for x, y in pairs)",
        "true = np.array([float(x * (y - inner)) for x, y in pairs])  # at these weights, right or wrong",
        f"budget, at = {number(budget_of(told.finding, w))}, {w.index}",
        *ENTRIES,
    ]
    return lines, ("forward", "vjp")


def cleaned(told: Told, w: Witness) -> Body:
    """A row beside the same row with zeros at the blocked keys."""
    assert w.scores is not None
    assert w.mask is not None
    scores, first = floats(w.scores), "[0]" if told.recipe.several else ""
    lines = [
        *row_of(told, w),
        f"{told.given('clean', np.where(w.mask, scores, 0.0)[None])}  # 0 where blocked",
        f"returned = {told.exactly(f'run(scores, mask){first}')}[0]",
        f"other = {told.exactly(f'run(clean, mask){first}')}[0]",
        *apart(
            told.finding.diagnosis,
            "as it is",
            "with zeros",
            str(w.index or 0),
            budget_of(told.finding, w),
            nan=not any(w.mask),
        ),
    ]
    return lines, ("forward",)


def truncated(told: Told, w: Witness) -> Body:
    """A row beside the same row without its blocked tail."""
    first = "[0]" if told.recipe.several else ""
    lines = [
        *row_of(told, w),
        f"returned = {told.exactly(f'run(scores, mask){first}')}[0]",
        "other = np.zeros_like(returned)",
        f"other[:{SHORT}] = {told.exactly(f'run(scores[:, :{SHORT}], mask[:, :{SHORT}]){first}')}[0]",
        *apart(told.finding.diagnosis, "with its tail", "without it", str(w.index or 0), budget_of(told.finding, w)),
    ]
    return lines, ("forward",)


def copied(told: Told, subject: Subject, key: str) -> Body:
    """A row and its shifted or permuted copy, in one call."""
    for w, order, shift in _copies(told, key):
        found = failing(told, subject, key, w, order, shift)
        if found is not None and found[0].index >= 0:
            return _of_copies(told, key, *found, order)
    raise told.refused("compares a row with a copy of it, and no copy that could be made here shows the difference.")


def _copies(told: Told, key: str) -> Iterator[tuple[Witness, Codes, float]]:
    """Rows with what made their copies: the smallest first, whose copy has to be guessed, then the one of the seed."""
    f = told.finding
    case = None if f.witness is None else told.case(f.witness.batch)
    if f.witness is None or case is None:
        return
    whole = case.build()
    if f.witness.row >= whole.shape[0]:
        return
    order, shift = copy_of(whole, f.witness.row)
    w = f.minimal
    if w is not None and w.scores is not None and key == relations.NAMES["shift"]:
        yield from ((w, np.arange(w.keys), s) for s in (shift, -shift))
    elif w is not None and w.scores is not None and w.keys:
        every = permutations(range(w.keys)) if w.keys <= 4 else _turned(w.keys)
        yield from ((w, np.array(o), 0.0) for o in islice(every, 1 if w.keys <= 4 else 0, SOME))
    yield f.witness, order, shift


def _turned(keys: int) -> Iterator[tuple[int, ...]]:
    every = tuple(range(keys))
    yield every[::-1]
    yield from (every[by:] + every[:by] for by in range(1, keys))


def failing(
    told: Told, subject: Subject, key: str, w: Witness, order: Codes | None = None, shift: float = 0.0
) -> tuple[Worst, Batch] | None:
    """The row in a call of its own, beside the copies that its check needs, and the batch of these; None where it does
    not fail."""
    if w.scores is None or w.mask is None or (order is not None and len(order) != w.keys):
        return None
    f = told.finding
    worst = worst_of(w, f)
    trial = CheckTrial(subject, told.rule, told.policy.required, f.dtype, key, f.family, worst, f.diagnosis, 1, shift)
    g, u = (np.zeros(w.keys) if v is None or w.note == JACOBIAN else floats(v) for v in (w.cotangent, w.tangent))
    order = np.arange(w.keys) if order is None else order
    rows = Rows(floats(w.scores)[None], np.array([w.mask], bool), g[None], u[None], order[None])
    found = trial.alone(rows)
    return None if found is None else (found, trial.batch_of(rows)[0])


def _of_copies(told: Told, key: str, found: Worst, batch: Batch, order: Codes) -> Body:
    at = found.index
    words, copy = ("as it is", "shifted"), ""
    lines = [told.given("scores", batch.scores), told.allowed(batch.mask)]
    if key == relations.NAMES["permutation"]:
        back = np.argsort(order)  # where each key of the row stands in the copy
        words, copy = ("as it is", "permuted"), f"[{back.tolist()}]"
        at = int(order[at]) if found.row == 1 else at
    first = "[0]" if told.recipe.several else ""
    lines += [
        f"both = {told.exactly(f'run(scores, mask){first}')}  # the row, and its copy",
        f"returned, other = both[0], both[1]{copy}",
        *apart(told.finding.diagnosis, *words, str(at), found.budget),
    ]
    return lines, ("forward",)


def of_pair(told: Told, subject: Subject, key: str, w: Witness) -> Body | None:
    """The script of a finding that compares two answers about one row; None for one that does not."""
    if w.quantity == "inner product":
        return inner_products(told, w)
    if w.note == JACOBIAN:
        return jacobian(told, w)
    if key in (relations.NAMES["shift"], relations.NAMES["permutation"]):
        return copied(told, subject, key)
    if key == relations.NON_INTERFERENCE:
        return cleaned(told, w)
    if key == relations.TRUNCATION:
        return truncated(told, w)
    return None
