"""The script of a failure on one row."""

from __future__ import annotations

import numpy as np

from ...adapters.recipe import Recipe
from ...adapters.subject import Subject
from ...spec.contracts import Contract
from ..checks import relations
from ..checks.adjoint import JACOBIAN
from ..checks.derivative import GIVEN
from ..finding import IN_COMPANY, Finding, Witness
from ..verification.claims import key_of
from ..verification.claims import numbers as floats
from .literals import array, booleans, exactly, number, numbers
from .verdict import ENTRIES, NOT_NAN, TWO, ending

METHODS = {"weights": "forward", "difference": "forward", "row sum": "forward", "vjp": "vjp", "jvp": "jvp"}


def of_row(subject: Subject, recipe: Recipe, f: Finding, rule: Contract) -> tuple[str, str]:
    """The part of the script that judges, and the method that it calls. Raises ValueError, with a sentence."""
    w = f.minimal or f.witness
    if w is None or w.scores is None or w.mask is None:
        raise ValueError(f"Finding {f.id} holds no row that a script could show. Run 'hardmask replay' on it.")
    if IN_COMPANY in w.note:
        raise ValueError(
            f"The row of finding {f.id} fails only inside its batch, which is too large for a script. "
            f"Run 'hardmask replay CERTIFICATE {f.id}'."
        )
    method = METHODS.get(w.quantity)
    key = key_of(f.declaration)
    if method is None or w.note == JACOBIAN or w.quantity == "valid":
        raise ValueError(
            f"Finding {f.id} compares two methods or a flag ({w.quantity}), which one call does not show. "
            f"Run 'hardmask replay CERTIFICATE {f.id}', or take a finding on the values."
        )
    shape = (1, w.keys)
    lines = [
        f"scores = {array(recipe, floats(w.scores).tolist(), shape, f.dtype)}",
        f"mask = {booleans(recipe, w.mask, shape)}  # True = allowed",
    ]
    vector = w.cotangent if method == "vjp" else w.tangent
    arguments = "scores, mask"
    if method != "forward":
        if vector is None:
            raise ValueError(f"The witness of finding {f.id} does not hold the vector of its derivative.")
        lines.append(f"vector = {array(recipe, floats(vector).tolist(), shape, f.dtype)}")
        arguments += ", vector"
    lines.append(f"returned = {exactly(recipe, f'run({arguments})')}[0]")
    lines += _judged(recipe, f, w, key, rule, method, arguments)
    return "\n".join(lines) + "\n", method


def _judged(recipe: Recipe, f: Finding, w: Witness, key: str, rule: Contract, method: str, arguments: str) -> list[str]:
    budget = (f.budget if f.minimal is None else f.minimal.budget) or 0.0
    assert w.mask is not None
    assert w.scores is not None
    empty = not any(w.mask)
    if w.quantity == "row sum":
        return [f"budget = {number(budget)}", *ending("returned.sum()", "1.0", "the sum of the weights", "budget")]
    if w.other is not None and w.note != GIVEN:
        if key != relations.NON_INTERFERENCE:
            raise ValueError(
                f"Finding {f.id} compares a row with a copy of it that the certificate does not hold. "
                f"Run 'hardmask replay CERTIFICATE {f.id}'."
            )
        called = f"run({arguments.replace('scores', 'clean')})"
        clean = [x if m else 0.0 for x, m in zip(floats(w.scores).tolist(), w.mask, strict=True)]
        return [
            f"clean = {array(recipe, clean, (1, w.keys), f.dtype)}  # 0 where blocked",
            f"other = {exactly(recipe, called)}[0]",
            f"budget = {number(budget)}",
            *TWO,
        ]
    if empty and method == "forward":
        return _empty(w, rule)
    if w.note == GIVEN or w.exact is None:
        raise ValueError(
            f"Finding {f.id} is about the weights that the backward pass was given, not about a true value. "
            f"Run 'hardmask replay CERTIFICATE {f.id}', or take another of its findings."
        )
    true = [float(x.partition(" ")[0]) for x in w.exact]
    at = "slice(None)" if w.index is None else str(w.index)
    if budget == 0.0:
        # Only structure is at stake: blocked keys, whose value is exactly 0.
        blocked = np.flatnonzero(~np.array(w.mask, bool))
        if w.index is None and len(blocked):
            at = str(blocked.tolist())
    return [
        f"true = np.array({numbers(true)})",
        f"budget, at = {number(budget)}, {at}",
        *ENTRIES,
    ]


def _empty(w: Witness, rule: Contract) -> list[str]:
    """What a row without an allowed key has to give."""
    if rule.kind == "nan":
        return NOT_NAN
    if rule.kind not in ("zero", "zero+valid", "uniform") and not rule.zero:
        raise ValueError(f"The contract '{rule}' of empty rows is not one that a script shows. Run 'hardmask replay'.")
    value = 0.0 if rule.zero else 1.0 / max(w.keys, 1)
    return [f"true = np.full({w.keys}, {number(value)})", "budget, at = 0.0, slice(None)", *ENTRIES]
