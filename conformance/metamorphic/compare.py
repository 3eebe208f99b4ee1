"""Two answers that the theorems make equal: how far apart they are, and how far they may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...adapters.subject import Method
from ...spec.batch import Bools, Floats
from ..calls import Fault
from ..finding import Verdict
from ..judgement import used
from ..promises import declared
from .asked import SIDE, Asked, ask
from .record import Comparison
from .rows import Rows
from .variants import DECLARATIONS, Codes, Variant, truncated, variants

BITS = "bits differ, within the bound"


def compared(base: Asked, seed: int) -> Iterator[Comparison]:
    """Every relation between the answers to some rows and the answers to their variants.

    The first variant is the same call again. Where it gives the same bits, other bits after a change of blocked scores
    alone are a fault, however few: the weights do not depend on those scores.
    """
    subject, rows = base.subject, base.rows
    repeatable: dict[Method, bool] = {}
    for variant in variants(rows, seed, finite=bool(subject.finite_scores)):
        for method in subject.methods[:1] if variant.forward_only else subject.methods:
            found = _variant(base, variant, method, repeatable.get(method, False))
            if variant.kind == "repeat":
                repeatable[method] = found.verdict == "pass" and found.identical == found.rows
            yield found
    pair = truncated(rows)
    if pair is not None:
        short = Asked(subject, pair[0])
        for method in subject.methods:
            yield _variant(short, pair[1], method, False)


def _variant(base: Asked, variant: Variant, method: Method, repeatable: bool) -> Comparison:
    keys = base.rows.shape[1]
    here: dict[str, Any] = {
        "subject": base.subject.id,
        "dtype": base.rows.dtype,
        "keys": variant.scores.shape[1] if variant.kind == "truncation" else keys,
        "method": method,
        "relation": variant.kind,
        "variant": variant.name,
        "declaration": declared(DECLARATIONS[variant.kind]).name,
    }
    vector = None if method == "forward" else getattr(variant, SIDE[method])
    first, answer = base.answer(method), ask(base.subject, method, variant.scores, variant.mask, vector)
    for given in (first, answer):
        if isinstance(given, Fault):
            return Comparison(**here, verdict="error", diagnosis=given.sentence, rows=len(variant.rows))
    assert not isinstance(first, Fault)
    assert not isinstance(answer, Fault)
    beyond = variant.beyond(answer.values, keys)
    if beyond.size and not np.all(beyond == 0.0):
        row, key = np.unravel_index(int(np.argmax(beyond != 0.0)), beyond.shape)
        value = float(beyond[row, key])
        leak = "a blocked key has weight" if method == "forward" else "a blocked key has a derivative"
        return Comparison(
            **here,
            verdict="fail",
            diagnosis=leak if np.isfinite(value) else "not a number",
            rows=len(variant.rows),
            failed=int(np.any(beyond != 0.0, axis=1).sum()),
            row=int(variant.rows[row]),
            key=keys + int(key),
            first=(0.0).hex(),
            second=value.hex(),
            difference=abs(value) if np.isfinite(value) else None,
            bound=0.0,
        )
    mine, other = first.values[variant.rows], variant.back(answer.values, keys)
    exact = variant.kind == "non-interference" and repeatable

    def allowed(differ: Bools) -> Floats:
        if exact:
            return np.zeros((int(differ.sum()), keys))
        bound = base.bound(method)[variant.rows[differ]]
        if variant.kind == "shift" and base.moves(method):
            return bound + _shifted(base, variant).bound(method)[differ]
        return 2.0 * bound

    words = {
        "repeat": "the same call gives another answer",
        "non-interference": "blocked scores change the answer",
    }.get(variant.kind, "answers differ")
    return judged(here, variant.rows, mine, other, allowed, words, base.blind if method == "forward" else None)


def _shifted(base: Asked, variant: Variant) -> Asked:
    """The variant as rows of their own, for a tier whose bounds depend on where the scores are."""
    rows = base.rows
    moved = Rows(rows.dtype, variant.scores, rows.mask, rows.cotangents, rows.tangents, rows.grid, rows.constant)
    return Asked(base.subject, moved)


def judged(
    here: dict[str, Any],
    rows: Codes,
    mine: Floats,
    other: Floats,
    allowed: Callable[[Bools], Floats],
    words: str,
    blind: Bools | None = None,
) -> Comparison:
    """Compare two answers to ``rows``, shape ``(len(rows), keys)``; ``allowed(differ)`` bounds the rows that differ."""
    numbers = np.isfinite(mine) & np.isfinite(other)
    differ = ~np.all((mine == other) & numbers, axis=1)
    counts: dict[str, Any] = {"rows": len(rows), "identical": int((~differ).sum())}
    if not differ.any():
        return Comparison(**here, **counts, verdict="pass", diagnosis="bits agree", share=0.0)
    bound = allowed(differ)
    with np.errstate(invalid="ignore"):
        distance = np.abs(mine[differ] - other[differ])
    bad = ~(distance <= bound) | ~numbers[differ]
    share = used(np.where(numbers[differ], distance, np.nan), bound)
    worst, key = np.unravel_index(int((share + bad).argmax()), share.shape)
    failed = int(bad.any(axis=1).sum())
    row = int(np.flatnonzero(differ)[worst])
    verdict: Verdict = "fail" if failed else "pass"
    if not failed and blind is not None and blind[rows].all():
        verdict = "vacuous"
    pair = float(mine[row, key]), float(other[row, key])
    apart = float(distance[worst, key])
    if failed and not np.isfinite(pair).all():
        words = "not a number"
    return Comparison(
        **here,
        **counts,
        verdict=verdict,
        diagnosis=words if failed else BITS,
        failed=failed,
        share=float(share[worst, key]) if np.isfinite(share[worst, key]) else None,
        row=int(rows[row]),
        key=int(key),
        first=pair[0].hex(),
        second=pair[1].hex(),
        difference=apart if np.isfinite(apart) else None,
        bound=float(bound[worst, key]),
    )
