"""Problems of attention: those that a certificate holds in full, and those that the seed gives again by their names."""

from __future__ import annotations

import math
import re

import numpy as np

from ...spec.attention.problem import Problem
from ...spec.batch import Array
from ...spec.formats import FORMATS
from ..attention.known import Reported, reported
from ..attention.parts import alone, padded, prefix
from ..attention.plan import AttentionCase, plan_attention
from ..cases import EFFORTS
from ..finding import AttentionWitness
from .asked import Asked
from .claims import near, numbers

WHOLE = re.compile(
    r"^(?P<whole>.*?)(?:"
    r", entry (?P<entry>\d{1,6}), head (?P<head>\d{1,6}), alone"
    r"|, the first (?P<first>\d{1,6})"
    r"|(?P<more>, \d{1,6} blocked keys appended))$"
)
"""The name of a part of a problem."""


class Planned:
    """The problems of a run by their names, parts of them included."""

    def __init__(self, asked: Asked | None, seed: int) -> None:
        self.ambiguous = asked is not None and asked.rounds not in (None, 1)
        self._cases: dict[str, AttentionCase | Reported] = {}
        self._built: dict[str, Problem | None] = {}
        if asked is not None and asked.effort in EFFORTS and not self.ambiguous:
            cases: list[AttentionCase | Reported] = [*plan_attention(asked.effort, seed, asked.judged), *reported()]
            self._cases = {case.key: case for case in cases}

    def of(self, name: str) -> Problem | None:
        """The problem of a name, None for one that the run does not have."""
        if name not in self._built:
            self._built[name] = self._made(name)
        return self._built[name]

    def whole(self, name: str) -> Problem | None:
        """The problem that a part was made from; None for a problem that is no part."""
        found = WHOLE.match(name)
        return None if found is None else self.of(found["whole"])

    def _made(self, name: str) -> Problem | None:
        case = self._cases.get(name)
        if case is not None:
            return case.build()
        found, whole = WHOLE.match(name), self.whole(name)
        if found is None or whole is None:
            return None
        batch, heads, _, queries, *_ = whole.sizes
        if found["more"]:
            made = padded(whole)
        elif found["first"]:
            if int(found["first"]) > queries:
                return None
            made = prefix(whole, int(found["first"]))
        else:
            entry, head = int(found["entry"]), int(found["head"])
            if entry >= batch or head >= heads:
                return None
            made = alone(whole, entry, head)
        return made if made.key == name else None


def shape_of(problem: Problem, quantity: str) -> tuple[int, ...] | None:
    batch, heads, groups, queries, keys, width, values = problem.sizes
    return {
        "output": (batch, heads, queries, values),
        "tangent": (batch, heads, queries, values),
        "weights": (batch, heads, queries, keys),
        "dq": (batch, heads, queries, width),
        "dk": (batch, groups, keys, width),
        "dv": (batch, groups, keys, values),
    }.get(quantity)


def problem_of(w: AttentionWitness, dtype: str, family: str) -> Problem:
    """The problem of a witness. Raises ValueError, KeyError, TypeError or OverflowError where it is malformed."""
    batch, heads, groups, queries, keys, width, values = w.sizes
    stored = FORMATS[dtype].dtype

    def array(texts: list[str] | None, *shape: int) -> Array:
        if texts is None or len(texts) != math.prod(shape):
            raise ValueError
        wide = numbers(texts)
        with np.errstate(all="ignore"):
            made: Array = wide.astype(stored).reshape(shape)
        if not np.array_equal(made.astype(np.float64).reshape(-1), wide, equal_nan=True):
            raise ValueError
        return made

    q, k, v = (batch, heads, queries, width), (batch, groups, keys, width), (batch, groups, keys, values)
    tangents = w.tangents or []
    if len(tangents) != 3 or w.mask is None or w.scale is None or len(w.mask) != batch * heads * queries * keys:
        raise ValueError
    scale = float.fromhex(w.scale)
    if not math.isfinite(scale):
        raise ValueError
    return Problem(
        key=w.problem,
        family=family,
        dtype=dtype,
        q=array(w.q, *q),
        k=array(w.k, *k),
        v=array(w.v, *v),
        mask=np.array(w.mask, bool).reshape(batch, heads, queries, keys),
        scale=scale,
        cotangent=array(w.cotangent, batch, heads, queries, values),
        tangents=(array(tangents[0], *q), array(tangents[1], *k), array(tangents[2], *v)),
    )


def alike(a: Problem, b: Problem) -> bool:
    """Whether two problems are the same, but for a few units in the last place."""
    if a.sizes != b.sizes or a.scale != b.scale or not np.array_equal(a.full_mask, b.full_mask):
        return False
    pairs = [(getattr(a, n), getattr(b, n)) for n in ("q", "k", "v", "cotangent")]
    pairs += list(zip(a.tangents, b.tangents, strict=True))
    return all(near(x.astype(np.float64), y.astype(np.float64), a.dtype) for x, y in pairs)
