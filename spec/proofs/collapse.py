"""The collapse lemma: the shipped code reads the rest of a row through its sums alone.

Take a row ``(i, j, a, b)`` with ``a`` and ``b`` allowed, and merge them into one key ``r`` with

    N_r = R = N_a + N_b,   u_r = U / R,   g_r = G / R,      U = N_a u_a + N_b u_b,  G = N_a g_a + N_b g_b.

Then the denominator, and the entries at ``i`` and ``j`` of the weights, the implementation, the derivative, the
backward helper and the code's own derivatives, are unchanged; the merged weight is the sum of the two. For the second
derivative the merged score also bends: its exponential is ``R + U e1 + V e2 + X e1 e2``, where
``X = N_a u_a v_a + N_b u_b v_b``.
Merging two keys at a time, a rest of any length becomes one key with the same ``R``, ``G``, ``U``, ``V``, ``X``; so the
entries at ``i`` and ``j`` are functions of these sums, which is what the generic proof in
:mod:`~hardmask.spec.proofs.symbolic` needs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from ..arithmetic import Arithmetic
from .definitions_record import Definitions
from .dual import Dual, along, dual_arithmetic
from .polynomials import Log, arithmetic, space

_KEPT = 2


@dataclass(frozen=True)
class Collapse:
    """The number of identities proved, and the first false one, if any."""

    identities: int
    failure: str | None = None


@dataclass(frozen=True)
class _Side:
    """One of the two rows: mask, scores, tangents, cotangent."""

    mask: Sequence[bool]
    x: Sequence[Any]
    u: Sequence[Any]
    v: Sequence[Any]
    g: Sequence[Any]
    twice: Sequence[Any]


@cache
def prove_collapse(definitions: Definitions) -> Collapse:
    """Prove the lemma for the given definitions: every mask of the kept keys, every choice of the maximum."""
    count = 0
    for kept in itertools.product((False, True), repeat=_KEPT):
        whole, merged, numbers = _sides(kept)
        for k, l in itertools.product(range(sum(kept) + 2), range(sum(kept) + 1)):
            try:
                left = _entries(whole, definitions, arithmetic(numbers, k))
                right = _entries(merged, definitions, arithmetic(numbers, l))
            except Exception as error:  # whatever broken definitions raise, they are not what the lemma says
                return Collapse(count, f"{type(error).__name__} in the collapse lemma, mask {kept}: {error}")
            for name, value in left.items():
                if not (value - right[name]).is_zero():
                    return Collapse(count, f"the {name} changes when two keys of the rest are merged, mask {kept}")
                count += 1
    return Collapse(count)


def _sides(kept: Sequence[bool]) -> tuple[_Side, _Side, Any]:
    names = [tuple(f"{letter}{i}" for i in range(4)) for letter in "tuvg"]
    numbers = space(names[0], (*names[1], *names[2], *names[3]))
    t = [numbers.positive[name] for name in names[0]]
    u, v, g = ([numbers.free[name] for name in group] for group in names[1:])
    rest = (2, 3)
    total = t[2] + t[3]
    weighted = [sum((t[k] * vector[k] for k in rest), numbers.zero) for vector in (u, v, g)]
    mean_u, mean_v, mean_g = (value / total for value in weighted)
    pairing = sum((t[k] * u[k] * v[k] for k in rest), numbers.zero)

    def twice(scores: Sequence[Log], bend: Any) -> list[Any]:
        last = len(scores) - 1
        tangents_u, tangents_v = ([*u[:2], mean_u], [*v[:2], mean_v]) if last == _KEPT else (u, v)
        return [
            Dual(Dual(s, a), Dual(b, bend if i == last else numbers.zero))
            for i, (s, a, b) in enumerate(zip(scores, tangents_u, tangents_v, strict=True))
        ]

    scores = [Log(value) for value in t]
    merged = [*scores[:2], Log(total)]
    return (
        _Side([*kept, True, True], scores, u, v, g, twice(scores, numbers.zero)),
        _Side(
            [*kept, True],
            merged,
            [*u[:2], mean_u],
            [*v[:2], mean_v],
            [*g[:2], mean_g],
            twice(merged, pairing / total - mean_u * mean_v),
        ),
        numbers,
    )


def _entries(side: _Side, d: Definitions, ar: Arithmetic) -> dict[str, Any]:
    """Everything at the kept keys, and the sums."""
    spec = d.hardMaskedSoftmaxVecSpec(side.x, side.mask, ar)
    w = d.weights(side.mask, side.x, ar)
    vectors = {
        "weights": w,
        "implementation": spec,
        "derivative": d.derivative(side.mask, side.x, side.u, ar),
        "backward": d.softmaxBackwardFromWeightsSpec(spec, side.g, ar),
        "slope of the weights": along(lambda y, inner: d.weights(side.mask, y, inner), side.x, side.u, ar),
        "slope of the implementation": along(_spec(side, d), side.x, side.u, ar),
        "second slope of the implementation": _second(side, d, ar),
    }
    out = {f"{name} at key {i}": values[i] for name, values in vectors.items() for i in range(_KEPT)}
    out["denominator"] = d.denominator(side.mask, side.x, ar)
    out["weight of the rest"] = sum(w[_KEPT:], ar.zero)
    out["implementation's weight of the rest"] = sum(spec[_KEPT:], ar.zero)
    return out


def _spec(side: _Side, d: Definitions) -> Callable[[Sequence[Any], Arithmetic], list[Any]]:
    return lambda y, inner: d.hardMaskedSoftmaxVecSpec(y, side.mask, inner)


def _second(side: _Side, d: Definitions, ar: Arithmetic) -> list[Any]:
    """The mixed second derivative along the path that the doubly dual scores describe."""
    doubly = dual_arithmetic(dual_arithmetic(ar))
    return [out.tangent.tangent for out in d.hardMaskedSoftmaxVecSpec(side.twice, side.mask, doubly)]
