"""A problem of attention once more: the smallest, and the one that the seed gives, beside the other paths."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from ...adapters.attention import Attention
from ...adapters.remote import Options
from ...spec.attention.problem import Problem
from ...spec.batch import Array
from ...spec.formats import FORMATS
from ..attention.known import reported
from ..attention.masks import causal
from ..attention.minimised import judged
from ..attention.plan import plan_attention
from ..attention.runner import AnyCase, judge_all, prepare, wanted
from ..attention.verdicts import finding_of
from ..cases import EFFORTS
from ..document import Certificate
from ..finding import AttentionWitness, Finding
from ..runner import Policy
from ..text import printable
from ..verification.asked import Asked
from ..verification.claims import numbers
from .choice import company


def again_problem(
    certificate: Certificate,
    subject: Attention,
    f: Finding,
    key: str,
    policy: Policy,
    asked: Asked,
    workers: Options | None,
) -> tuple[Finding, str]:
    """The finding of today, and what it rests on in words. Raises ValueError where its problem cannot be had."""
    cases = planned_problems(asked, certificate.seed, f)
    last: tuple[Finding, str] | None = None
    if f.smallest is not None and f.smallest.q is not None:
        problem = problem_of(f.smallest, f, cases.get(f.smallest.problem))
        tally = judged(subject, key, problem, policy)
        if tally is not None:
            now = finding_of(subject, f.declaration, f.dtype, f.family, tally)
            now = msgspec.structs.replace(now, smallest=now.attention)
            last = now, "the smallest problem"
            if now.verdict in ("fail", "error"):
                return last
    chosen = whole_of(f, cases)
    for case in chosen:
        subjects = company(certificate, subject, asked.targets, workers) if key == "path_agreement" else [subject]
        if not wanted(case, [subject]):
            continue
        results = judge_all(case, subjects, policy, prepare(case, subjects))
        found = results.get((subject.id, f.dtype), {}).get((key, f.family))
        if found is None:
            continue
        last = finding_of(subject, f.declaration, f.dtype, f.family, found), f"problem {case.key}"
        if last[0].verdict in ("fail", "error"):
            return last
    if last is None:
        raise ValueError(
            f"The problem of finding {f.id} ({printable(f.family)}) cannot be had again: it is none that this version "
            "plans for the certificate's request, and the certificate does not hold it."
        )
    return last


def planned_problems(asked: Asked, seed: int, f: Finding) -> dict[str, AnyCase]:
    if asked.effort not in EFFORTS:
        return {}
    rounds = None if asked.rounds is None else min(asked.rounds, 200)
    cases: list[AnyCase] = [c for c in plan_attention(asked.effort, seed, asked.dtypes, rounds) if c.dtype == f.dtype]
    found = {c.key: c for c in [*cases, *(c for c in reported() if c.dtype == f.dtype)]}
    return found


def whole_of(f: Finding, cases: dict[str, AnyCase]) -> list[AnyCase]:
    """The problem of the witness, which may be a part of one; those of the family where the finding names none."""
    if f.attention is None:
        return [c for c in cases.values() if _family(c) == f.family]
    name = f.attention.problem
    return [c for key, c in cases.items() if name == key or name.startswith(f"{key}, ")]


def _family(case: AnyCase) -> str:
    return str(getattr(case, "mask", "")) or case.build().family


def problem_of(w: AttentionWitness, f: Finding, case: AnyCase | None = None) -> Problem:
    """The problem that a witness holds. ``case``: what it was made from, whose mask may have been a flag or lengths.

    Raises ValueError where the arrays do not have the sizes that it states.
    """
    if len(w.sizes) != 7 or w.q is None or w.k is None or w.v is None or w.mask is None or w.cotangent is None:
        raise ValueError(f"The witness of finding {f.id} does not hold its problem.")
    batch, heads, groups, queries, keys, width, value_width = w.sizes
    shapes = {
        "q": (batch, heads, queries, width),
        "k": (batch, groups, keys, width),
        "v": (batch, groups, keys, value_width),
        "g": (batch, heads, queries, value_width),
        "mask": (batch, heads, queries, keys),
    }
    stored = FORMATS[f.dtype].dtype

    def array(values: list[str], name: str) -> Array:
        with np.errstate(all="ignore"):
            return numbers(values).reshape(shapes[name]).astype(stored)

    try:
        tangents = [array(t, n) for t, n in zip(w.tangents or (), "qkv", strict=True)]
        mask = np.array(w.mask, bool).reshape(shapes["mask"])
        whole = None if case is None else case.build()
        if whole is not None:  # broadcast again where that loses nothing: a path may depend on it
            for axis in (0, 1, 2):
                if mask.shape[axis] > 1 and whole.mask.shape[axis] == 1:
                    mask = mask.take([0], axis=axis)
        problem = Problem(
            key=w.problem,
            family=f.family,
            dtype=f.dtype,
            q=array(w.q, "q"),
            k=array(w.k, "k"),
            v=array(w.v, "v"),
            mask=mask,
            scale=float.fromhex(w.scale or "0x1.0000000000000p+0"),
            cotangent=array(w.cotangent, "g"),
            tangents=(tangents[0], tangents[1], tangents[2]),
        )
    except ValueError:
        raise ValueError(f"The arrays in finding {f.id} do not have the sizes that it states.") from None
    full = problem.full_mask
    first = full[:, :1, :1]
    prefix = bool((full == first).all()) and bool((np.diff(first.astype(int), axis=-1) <= 0).all())
    alignment = None if whole is None else whole.causal
    flag = alignment if alignment and bool((full == causal(queries, keys, alignment)).all()) else None
    return replace(problem, causal=flag, lengths=prefix and (whole is None or whole.lengths))
