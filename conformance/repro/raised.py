"""Scripts of calls that raise, return what cannot be used, or do not raise where they have to."""

from __future__ import annotations

import re

import numpy as np

from ...adapters.errors import DIDS
from ...adapters.recipe import Which
from ...adapters.subject import METHODS, Subject
from ...spec.formats import FORMATS
from ..calls import Fault, call
from ..finding import Witness
from ..minimise.report import raising
from ..minimise.trial import kind
from ..verification.claims import numbers as floats
from .told import Body, Told

SHAPE = re.compile(r"(?:rows of shape|scores of shape) \((\d+), (\d+)\)")
LARGEST = 4096
"""Scores of a batch of zeros, at most."""

RAISES = [
    "except Exception as problem:",
    '    raise SystemExit(f"The fault shows: it raised {type(problem).__name__}: {problem}") from None',
]


def of_error(told: Told, subject: Subject) -> Body:
    """A call that raised, or whose answer has another shape or dtype than it should."""
    f = told.finding
    name = f.diagnosis.removeprefix(f"{f.subject}.").partition(" ")[0]
    method: Which | None = next((m for m in METHODS if m == name), None)
    if method is None:
        raise told.refused("does not say which call went wrong.")
    if any(f" {did} on " in f.diagnosis for did in DIDS):
        raise told.refused(
            "is about a call that ended its process or never came back, so that a script could not say so.",
            f"Call the entry point in a process of its own, with the case of `hardmask replay CERTIFICATE {f.id}`.",
        )
    lines, arguments = _arguments(told, subject, method)
    if "it raised " in f.diagnosis:
        calls = ["try:", f"    returned = run({arguments})", *RAISES]
        return [*lines, *calls, 'print("returned", returned)', 'print("The fault does not show.")'], (method,)
    if "returned" not in f.diagnosis:
        raise told.refused("is about what a call does to its arguments, which no answer shows.")
    first = "[0]" if told.recipe.several and method == "forward" else ""
    return [
        *lines,
        f"returned = run({arguments}){first}",
        'shape, dtype = getattr(returned, "shape", None), getattr(returned, "dtype", type(returned))',
        'print("returned", returned)',
        "if shape != scores.shape or dtype != scores.dtype:",
        '    raise SystemExit(f"The fault shows: {shape} of {dtype} came back, not {scores.shape} of {scores.dtype}.")',
        'print("The fault does not show.")',
    ], (method,)


def _arguments(told: Told, subject: Subject, method: Which) -> tuple[list[str], str]:
    """The lines that give the arguments: of the smallest row, or zeros in the shape that raised."""
    f = told.finding
    w = _smallest(told, subject)
    names = "scores, mask" + ("" if method == "forward" else ", vector")
    if w is not None and w.scores is not None and w.mask is not None:
        lines = [told.given("scores", floats(w.scores)[None]), told.allowed(np.array(w.mask, bool)[None])]
        vector = w.cotangent if method == "vjp" else w.tangent
        none = np.zeros((1, w.keys))
        values = none if vector is None else floats(vector)[None]
        return lines + ([] if method == "forward" else [told.given("vector", values)]), names
    found = SHAPE.search(f.diagnosis)
    shape = None if found is None else (int(found[1]), int(found[2]))
    if shape is not None and shape[0] * shape[1] <= LARGEST:
        zeros, every = np.zeros(shape, FORMATS[f.dtype].dtype), np.ones(shape, bool)
        answer = call(subject, method, zeros, every, *([] if method == "forward" else [zeros]))
        if isinstance(answer, Fault) and kind(answer) == kind(Fault(f.diagnosis, "it raised " in f.diagnosis)):
            return _zeros(told, shape, method), names
    raise told.refused("is about a call that raises on its whole batch, and on no row of it that could be found.")


def _smallest(told: Told, subject: Subject) -> Witness | None:
    """The smallest row that the call raises on: of this finding, of another of the same cause, or found now."""
    f = told.finding
    for other in (f, *told.certificate.findings):
        same = other is f or (other.subject, other.dtype, other.verdict) == (f.subject, f.dtype, "error")
        if same and other.minimal is not None and _cause(other.diagnosis) == _cause(f.diagnosis):
            return other.minimal
    return raising(subject, f, f.diagnosis, told.cases)


def _cause(sentence: str) -> tuple[str, str]:
    """The method, and what went wrong with it."""
    return sentence.partition(" ")[0], kind(Fault(sentence, "it raised " in sentence))


def _zeros(told: Told, shape: tuple[int, int], method: Which) -> list[str]:
    module = {"numpy": "np", "torch": "torch", "jax": "jnp"}[told.recipe.library]
    one = told.given("one", np.zeros((1, 1))).partition("dtype=")[2].partition(")")[0]
    kind_ = {"numpy": "bool", "torch": "torch.bool", "jax": "bool"}[told.recipe.library]
    lines = [f"scores = {module}.zeros({shape}, dtype={one})", f"mask = {module}.ones({shape}, dtype={kind_})"]
    return lines + ([] if method == "forward" else [f"vector = {module}.zeros({shape}, dtype={one})"])


def of_rejection(told: Told) -> Body:
    """Under the contract ``reject``: a row without an allowed key, which the call has to refuse."""
    return [
        told.given("scores", np.zeros((1, 2))),
        told.allowed(np.zeros((1, 2), bool)),
        "try:",
        "    returned = run(scores, mask)",
        "except Exception as problem:",
        '    print("It was refused:", problem)',
        '    print("The fault does not show.")',
        "else:",
        '    print("returned", returned)',
        '    raise SystemExit("The fault shows: a row without an allowed key was not refused.")',
    ], ("forward",)
