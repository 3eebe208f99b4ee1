"""What the probes of rows and of attention have in common: which facts are asked for, in which order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...adapters.subject import METHODS, Method
from ...spec.attention.problem import Problem
from ...spec.batch import Array
from ...spec.formats import FORMATS
from ..calls import Fault
from . import policy
from .record import Isolation

KEYS = 4
"""Keys of a row that is probed: enough to tell all policies apart."""

SCORES = np.arange(KEYS, dtype=np.float64)
"""Its scores: 0, 1, 2, 3."""

FULL, PARTIAL, EMPTY = (True,) * KEYS, (True,) * (KEYS - 1) + (False,), (False,) * KEYS
"""Its masks. Every one allows the first keys only, so that a kernel that is told lengths can take it."""

POISONS: tuple[str, ...] = ("NaN", "+inf", "-inf", "largest")
"""What is put where nobody may read: the largest finite number makes a score overflow."""

Answers = Mapping[str, Array] | Fault
"""What a call gave, by quantity, or why not."""


def number(poison: str, dtype: str) -> float:
    """The number that a poison names."""
    return {"NaN": np.nan, "+inf": np.inf, "-inf": -np.inf, "largest": FORMATS[dtype].max, "zero": 0.0}[poison]


def blocked_scores(dtype: str) -> list[float]:
    """Ever larger scores for a blocked key: 0, 1, 10, …, as long as twice that much is a number of the format."""
    limit = FORMATS[dtype].max / 4.0
    return [0.0, *(10.0**k for k in range(309) if 10.0**k <= min(limit, 1e300))]


def printable(array: Array) -> Any:
    """An array as nested lists of text, for a record that may hold NaN and infinity."""
    if array.dtype == np.bool_:
        return array.tolist()
    return np.vectorize(lambda x: text(float(x)), otypes=[object])(array).tolist() if array.size else []


def text(x: float) -> str:
    """A number in as few digits as name it exactly.

    >>> text(0.5), text(2.0), text(0.1 + 0.2), text(float("nan"))
    ('0.5', '2', '0.30000000000000004', 'nan')
    """
    short = f"{x:g}"
    return short if x != x or float(short) == x else repr(x)


def arguments(problem: Problem, method: str) -> dict[str, Any]:
    """The arguments of a call of an attention, for a record."""
    found: dict[str, Any] = {name: printable(getattr(problem, name)) for name in ("q", "k", "v")}
    found["mask"] = problem.full_mask.tolist()
    found["scale"] = f"{problem.scale:g}"
    if method == "vjp":
        found["cotangent"] = printable(problem.cotangent)
    if method == "jvp":
        found["tangents"] = [printable(t) for t in problem.tangents]
    return found


@dataclass
class Errors:
    """The sentences of the calls that failed, each once, in order."""

    sentences: list[str] = field(default_factory=list)

    def of(self, fault: Fault) -> str:
        """Note a fault; returns the word that stands for it."""
        if fault.sentence not in self.sentences:
            self.sentences.append(fault.sentence)
        return "error"


def first_leak(dtype: str, ask: Callable[[float], float | None]) -> float | None:
    """The smallest of the blocked scores at which ``ask`` returns a weight that is not zero; None where there is none.

    Beyond 1e12 only every hundredth power of ten is tried: whatever shifts scores by a constant leaks before, or at
    the constant's own size.
    """
    for score in blocked_scores(dtype):
        if score > 1e12 and round(np.log10(score)) % 19:
            continue
        weight = ask(score)
        if weight is None:
            return None
        if weight != 0.0:
            return score
    return None


def isolation(
    place: str,
    methods: Iterable[Method],
    dtype: str,
    ask: Callable[[Method, str], Answers],
    shown: Callable[[Method, str], dict[str, Any]],
    poisons: Iterable[str] = POISONS,
) -> list[Isolation]:
    """Compare each poison with a zero in its place, method by method.

    ``ask(method, poison)`` calls the subject and returns what may not depend on the poison; ``shown`` the arguments.
    """
    found = []
    for method in methods:
        clean, again = ask(method, "zero"), ask(method, "zero")
        for poison in poisons:
            verdict, detail, shows = "kept", "", False
            if isinstance(clean, Fault) or isinstance(again, Fault):
                verdict, detail = "error", clean.sentence if isinstance(clean, Fault) else str(again)
            elif _apart(clean, again):
                verdict = "not reproducible"
            else:
                spoilt = ask(method, poison)
                if isinstance(spoilt, Fault):
                    verdict, detail, shows = "error", spoilt.sentence, True
                elif apart := _apart(clean, spoilt):
                    verdict, detail, shows = "reached", "; ".join(apart), True
            found.append(
                Isolation(
                    place=place,
                    poison=poison,
                    method=method,
                    verdict=verdict,
                    detail=detail,
                    input=shown(method, poison) if shows else {},
                )
            )
    return found


def _apart(clean: Mapping[str, Array], other: Mapping[str, Array]) -> list[str]:
    """What differs, in words."""
    words = []
    for name, a in clean.items():
        b = other[name]
        differs = ~policy.same_bits(a, b)
        if differs.any():
            at = tuple(int(i) for i in np.argwhere(differs)[0])
            was, now = float(a[at]), float(b[at])
            words.append(f"{name}{list(at)} is {now:g} instead of {was:g}")
    return words


def smallest(*attempts: Callable[[], list[Isolation]]) -> list[Isolation]:
    """Of attempts from the smallest input to the largest, what the first one that shows something has to show; an
    entry that only a later attempt shows, or that alone answers at all, is taken from there."""
    merged: dict[tuple[str, str, str], Isolation] = {}
    for attempt in attempts:
        for one in attempt():
            key = one.place, one.poison, one.method
            old = merged.get(key)
            unanswered = old is None or (old.verdict == "error" and not old.input)
            if unanswered or (old is not None and old.verdict == "kept" and one.verdict != "kept"):
                merged[key] = one
    return list(merged.values())


def inverted(subject: Any, at: int) -> Any:
    """The subject with ``~mask`` for its mask, the argument number ``at``: for one that blocks where True is."""

    def turned(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: function(*arguments[:at], ~arguments[at], *arguments[at + 1 :])

    return replace(subject, **{method: turned(getattr(subject, method)) for method in subject.methods})


def offered(subject: Any) -> dict[str, str]:
    """Which derivatives exist: ``yes``, or the reason why not."""
    return {
        method: "yes"
        if getattr(subject, method) is not None
        else subject.unsupported.get(method, "The subject does not offer it.")
        for method in METHODS[1:]
    }
