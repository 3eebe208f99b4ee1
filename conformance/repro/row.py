"""The script of a failure on one row."""

from __future__ import annotations

import numpy as np

from ...adapters.recipe import Which
from ...adapters.subject import Subject
from ...spec.batch import Array, Batch, Floats
from ...spec.rounding import Mode
from ..checks import facts, forward, relations
from ..checks.derivative import GIVEN
from ..finding import IN_COMPANY, Witness
from ..judgement import Codes
from ..minimise.trial import stored
from ..truth import Truth
from ..verification.claims import key_of
from ..verification.claims import numbers as floats
from ..view import View
from .company import SIDE, of_company
from .literals import number, numbers
from .pairs import budget_of, failing, given_weights, of_pair, row_of
from .raised import of_error, of_rejection
from .told import Body, Told
from .verdict import ENTRIES, MANY, NOT_NAN, NOT_NAN_OR_ZERO, ending

METHODS: dict[str, Which] = {
    "weights": "forward",
    "row sum": "forward",
    "valid": "forward",
    "vjp": "vjp",
    "jvp": "jvp",
}

COPIED = (relations.NAMES["shift"], relations.NAMES["permutation"])
"""Declarations about a row and a copy of it, which are put to the subject together anyway."""


def of_row(told: Told, subject: Subject) -> Body:
    """The lines of the script that judge, and the methods that they call. Raises ValueError, with a sentence."""
    f = told.finding
    key = key_of(f.declaration)
    if f.verdict == "error":
        return of_error(told, subject)
    if told.rule.kind == "reject" and key == "empty_row":
        return of_rejection(told)
    w = f.minimal or f.witness
    if w is None or w.scores is None or w.mask is None:
        raise told.refused("holds no row that a script could show.")
    if f.minimal is None and w.quantity != "valid" and key not in COPIED:
        alone = key != relations.NAMES["position"] and IN_COMPANY not in w.note
        if not alone or failing(told, subject, key, w) is None:
            return of_company(told, subject, key, w)
    pair = of_pair(told, subject, key, w)
    if pair is not None:
        return pair
    if w.note == GIVEN:
        return given_weights(told, w)
    return _alone(told, subject, key, w)


def _alone(told: Told, subject: Subject, key: str, w: Witness) -> Body:
    """One call about one row, and what is true of it."""
    method = METHODS.get(w.quantity)
    if method is None:
        raise told.refused(f"compares two answers ({w.quantity}), which one call does not show.")
    lines, arguments, first = row_of(told, w), "scores, mask", ""
    vector = w.cotangent if method == "vjp" else w.tangent
    if method != "forward":
        if vector is None:
            raise told.refused("does not hold the vector of its derivative.")
        lines.append(told.given("vector", floats(vector)[None]))
        arguments += ", vector"
    elif told.recipe.several:
        first = "[0]"
    if w.quantity == "valid":
        return [*lines, *_flag(told, w)], (method,)
    lines.append(f"returned = {told.exactly(f'run({arguments}){first}')}[0]")
    return [*lines, *_judged(told, subject, w, key, method)], (method,)


def _judged(told: Told, subject: Subject, w: Witness, key: str, method: Which) -> list[str]:
    budget = budget_of(told.finding, w)
    assert w.mask is not None
    if w.quantity == "row sum":
        return [
            "import math",
            "",
            f"budget = {number(budget)}",
            *ending("math.fsum(returned)", "1.0", "the sum of the weights", "budget"),
        ]
    if key == facts.VISIBLE:
        return [
            'print("returned", returned)',
            "if not np.isnan(returned).any():",
            '    raise SystemExit("The fault shows: a NaN at an allowed key is swallowed.")',
            'print("The fault does not show.")',
        ]
    if key == facts.ISOLATION:
        return _isolated(told, subject, w)
    if not any(w.mask):
        return _empty(told, w, method)
    if w.exact is None:
        raise told.refused("is about numbers that are not real: nothing is true of them.")
    budgets = _budgets(told, subject, w, method)
    if key in forward.RANGE:
        return [
            f"budget = np.array({numbers(budgets.tolist())})",
            'print("returned", returned)',
            "if not np.all((returned >= 0) & (returned <= 1 + budget)):  # NaN is in no interval",
            '    raise SystemExit(f"The fault shows: {returned} is not in [0, 1].")',
            'print("The fault does not show.")',
        ]
    true = [float(x.partition(" ")[0]) for x in w.exact]
    if w.index is None:
        granted, at = f"np.array({numbers(budgets.tolist())})", "slice(None)"
    else:
        granted, at = number(max(budget, float(budgets[w.index]))), str(w.index)
    return [
        f"true = np.array({numbers(true)})",
        f"budget, at = {granted}, {at}",
        *(ENTRIES if w.index is not None else MANY),
    ]


def _view(told: Told, subject: Subject, w: Witness, *, clean: bool = False) -> View:
    """The row of a witness with its truth; ``clean``: with zeros in its vectors where it is blocked."""
    mask, dtype = np.array([w.mask], bool), told.finding.dtype

    def vector(values: list[str] | None) -> Array:
        found = np.zeros((1, w.keys)) if values is None else floats(values)[None]
        return stored(np.where(mask, found, 0.0) if clean else found, dtype)

    scores, family = stored(floats(w.scores or [])[None], dtype), np.zeros(1, np.int64)
    batch = Batch(w.batch, dtype, scores, mask, vector(w.cotangent), vector(w.tangent), family, ("row",))
    return View(subject, told.rule, Truth(batch), frozenset())


def _budgets(told: Told, subject: Subject, w: Witness, method: Which) -> Floats:
    """How far each entry of an answer about the row may be from the truth."""
    view = _view(told, subject, w)
    if method == "forward":
        return np.asarray(view.budget().error[0])
    return np.asarray(view.derivative_budget(method, SIDE[method])[0])


def _isolated(told: Told, subject: Subject, w: Witness) -> list[str]:
    """A derivative along a vector with numbers that are not real, at blocked keys: it is that of zeros there."""
    mode: Mode = "vjp" if w.quantity == "vjp" else "jvp"
    view = _view(told, subject, w, clean=True)
    true = view.truth.derivative(SIDE[mode]).value[0]
    budget = view.derivative_budget(mode, SIDE[mode])[0]
    return [
        f"true = np.array({numbers(true.tolist())})  # that of zeros at the blocked keys",
        f"budget, at = np.array({numbers(budget.tolist())}), slice(None)",
        *MANY,
    ]


def _empty(told: Told, w: Witness, method: Which) -> list[str]:
    """What a row without an allowed key has to give."""
    rule = told.rule
    if rule.kind == "nan":
        return NOT_NAN if method == "forward" else NOT_NAN_OR_ZERO
    if rule.kind == "fallback" and method == "forward" and rule.key is not None:
        true: Codes = (np.arange(w.keys) == rule.key).astype(np.int64)
        return [f"true = np.array({true.tolist()})", "budget, at = 0.0, slice(None)", *ENTRIES]
    return [f"true = np.zeros({w.keys})", "budget, at = 0.0, slice(None)", *ENTRIES]


def _flag(told: Told, w: Witness) -> list[str]:
    """The flag is False exactly on rows without an allowed key."""
    if not told.recipe.several:
        raise told.refused("misses a flag that the entry point does not return: there is nothing to call.", "Add one.")
    expected = any(w.mask or ())
    return [
        "valid = bool(run(scores, mask)[1][0])",
        f'print("valid", valid, "true", {expected})',
        f"if valid != {expected}:",
        f'    raise SystemExit(f"The fault shows: valid is {{valid}} on a row with {sum(w.mask or ())} allowed keys.")',
        'print("The fault does not show.")',
    ]
