"""Scripts of failures of attention that two answers show, of related problems, paths or modes; and of errors."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

import numpy as np

from ...adapters.attention import Attention
from ...adapters.recipe import IMPORTS, Which
from ...adapters.subject import METHODS
from ...spec.attention.problem import Problem
from ..attention.agreement import agreement
from ..attention.calls import call_attention, limit_of, takes
from ..attention.checks import pairing, relations
from ..attention.judgement import Judged
from ..attention.view import AttentionView, Known
from ..calls import Fault
from ..finding import AttentionWitness
from ..minimise.trial import kind
from ..replay.choice import company
from ..replay.problems import problem_of
from .problem import arguments, place_of, shrunk
from .raised import RAISES
from .told import Body, Told
from .verdict import apart, small


def of_related(told: Told, subject: Attention, key: str, w: AttentionWitness | None) -> Body | None:
    """The script of a finding that compares two answers, or of one that raised; None for one that one call shows."""
    if told.finding.verdict == "error":
        return _raised(told, subject)
    if w is None or w.quantity not in ("difference", "pairing"):
        return None
    if key == "path_agreement":
        return _paths(told, subject, w)
    if key == pairing.NAME:
        return _pairing(told, subject, w)
    return _relation(told, subject, key, w)


def _first(outcomes: Iterator[Judged], key: str, note: str) -> tuple[Judged, int] | None:
    """The first failed outcome of a declaration, and its worst vector."""
    for o in outcomes:
        if key in o.declarations and o.remark == note and o.failed.any():
            return o, int(np.where(o.failed, o.ratio, -1.0).argmax())
    return None


def _place(outcome: Judged, at: int) -> list[int]:
    return [int(i) for i in np.unravel_index(at, outcome.shape[:-1])]


def _relation(told: Told, subject: Attention, key: str, w: AttentionWitness) -> Body:
    """A head alone, the first queries, or more keys, beside the problem that they are a part of."""

    def failing(problem: Problem) -> tuple[Judged, int] | None:
        if limit_of(subject, problem) or not takes(subject, problem) or not problem.q.size:
            return None
        return _first(relations.check(AttentionView(subject, told.rule, Known(problem), frozenset())), key, w.note)

    whole = shrunk(told, lambda p: failing(p) is not None)
    found = failing(whole)
    if found is None or found[0].problem is None:
        raise told.refused("does not fail every time.")
    outcome, vector = found
    method, place = place_of(told, w.note.partition(" ")[0])
    part, here = outcome.problem, _place(outcome, vector)
    assert part is not None
    there = here if ", entry " not in part.key else [whole.sizes[0] - 1, _last(whole, w.note), here[2]]
    lines, given = arguments(told, whole, method)
    more, other = arguments(told, part, method, "_2")
    return [
        *lines,
        f"# {part.key.removeprefix(whole.key).removeprefix(', ')}:",
        *more,
        f"returned = {told.exactly(f'run({other}){place}')}[{', '.join(map(str, here))}]",
        f"other = {told.exactly(f'run({given}){place}')}[{', '.join(map(str, there))}]",
        *apart(
            told.finding.diagnosis,
            "in this problem",
            "in the whole one",
            str(int(outcome.index[vector])),
            float(outcome.budget[vector]),
            nan=True,
        ),
    ], (method,)


def _last(whole: Problem, note: str) -> int:
    return whole.sizes[2 if note.startswith(("dk", "dv")) else 1] - 1


def _paths(told: Told, subject: Attention, w: AttentionWitness) -> Body:
    """The same problem by two entry points."""
    name = told.finding.diagnosis.removeprefix("unlike ")
    partner = next((s for s in company(told.certificate, subject, told.asked.targets) if s.id == name), None)
    if partner is None or partner.recipe is None:
        raise told.refused(f"compares two paths, and '{name}' declares no recipe here.")
    if partner.recipe.library != told.recipe.library:
        raise told.refused(f"compares two paths of two libraries, {told.recipe.library} and {partner.recipe.library}.")

    def failing(problem: Problem) -> tuple[Judged, int] | None:
        if any(limit_of(s, problem) or not takes(s, problem) for s in (subject, partner)):
            return None
        views = [AttentionView(s, told.rule, Known(problem), frozenset()) for s in (subject, partner)]
        mine = [o for s, outcomes in agreement(views) if s is subject for o in outcomes]
        return _first(iter(mine), "path_agreement", w.note)

    problem = shrunk(told, lambda p: failing(p) is not None)
    found = failing(problem)
    if found is None:
        raise told.refused("does not fail every time.")
    outcome, vector = found
    method, place = place_of(told, w.note)
    theirs = "[0]" if partner.recipe.several and w.note == "output" else "" if w.note == "output" else place
    source = partner.recipe.script(method).removeprefix(IMPORTS[partner.recipe.library]).strip()
    compact = "\n".join(line for line in source.splitlines() if line.strip())
    lines, given = arguments(told, problem, method)
    at = ", ".join(map(str, _place(outcome, vector)))
    return [
        "def other_path():",
        *textwrap.indent(compact, "    ").splitlines(),
        "    return run",
        "",
        "",
        *lines,
        f"returned = {told.exactly(f'run({given}){place}')}[{at}]",
        f"other = {told.exactly(f'other_path()({given}){theirs}')}[{at}]",
        *apart(
            told.finding.diagnosis,
            f"by {subject.id}",
            f"by {partner.id}",
            str(int(outcome.index[vector])),
            float(outcome.budget[vector]),
            nan=True,
        ),
    ], (method,)


def _pairing(told: Told, subject: Attention, w: AttentionWitness) -> Body:
    """``<JVP(dQ, dK, dV), g> = <dQ, gQ> + <dK, gK> + <dV, gV>``, summed without rounding."""

    def failing(problem: Problem) -> float | None:
        if limit_of(subject, problem) or not takes(subject, problem):
            return None
        for o in pairing.check(AttentionView(subject, told.rule, Known(problem), frozenset())):
            if o.failed.any():
                return float(o.budget[0])
        return None

    held = None if w.q is None else problem_of(w, told.finding)
    problem = shrunk(told, lambda p: failing(p) is not None) if held is None or failing(held) is None else held
    budget = failing(problem) or 0.0
    lines, given = arguments(told, problem, "jvp")
    back = given.removesuffix("vector") + "g"
    return [
        "from fractions import Fraction",
        "",
        *lines,
        told.given("g", problem.cotangent),
        f"forth = {told.exactly(f'run_jvp({given})')}.ravel()",
        f"back = [{told.exactly('x')}.ravel() for x in run_vjp({back})]",
        f"terms = np.concatenate([forth, *back]), np.concatenate([{told.exactly('g')}.ravel(), "
        f"*(-{told.exactly('x')}.ravel() for x in vector)])",
        "exact = np.nan if not np.isfinite(terms[0]).all() else sum(Fraction(x) * Fraction(y) for x, y in zip(*terms))",
        "apart = abs(float(exact))",
        *small(told.finding.diagnosis, "<JVP, g> - <tangents, VJP>", budget),
    ], ("jvp", "vjp")


def _raised(told: Told, subject: Attention) -> Body:
    """A call that raised."""
    f = told.finding
    name = f.diagnosis.removeprefix(f"{f.subject}.").partition(" ")[0]
    method: Which | None = next((m for m in METHODS if m == name and m in subject.methods), None)
    if method is None or "it raised " not in f.diagnosis:
        raise told.refused("is about a call whose answer cannot be used, which a script would have to explain.")
    wanted = kind(Fault(f.diagnosis, True))

    def raises(problem: Problem) -> bool:
        if limit_of(subject, problem) or not takes(subject, problem):
            return False
        answer = call_attention(subject, method, problem)
        return isinstance(answer, Fault) and answer.raised and kind(answer) == wanted

    lines, given = arguments(told, shrunk(told, raises), method)
    return [
        *lines,
        "try:",
        f"    returned = run({given})",
        *RAISES,
        'print("returned", returned)',
        'print("The fault does not show.")',
    ], (method,)
