"""Where a subject is less accurate than the strongest tier: by how much, and on which row."""

from __future__ import annotations

from collections.abc import Iterator

from ...spec.rounding import ladder
from ..cases.build import SEARCHED
from ..document import Certificate, Measured
from .matrix import short_name, used, weakest_by_dtype
from .witness import row

GROWING = ("exp2", "online", "lse")
"""Tiers whose errors grow with the scores: there the row that shows it is printed."""


def losses(certificate: Certificate) -> Iterator[str]:
    """One line for every subject and dtype that keeps a weaker tier only, with the row where digits are lost."""
    for subject in certificate.subjects:
        for m in weakest_by_dtype(certificate, subject.id).values():
            if m.growth and m.strongest not in ("", ladder(m.dtype)[0]):
                yield "\n".join(_lines(m))


def _lines(m: Measured) -> Iterator[str]:
    best = ladder(m.dtype)[0]
    yield f"{m.subject} · {m.dtype} · keeps {m.strongest}, not {best} (declared: {m.declared})"
    sizes = ", ".join(f"< {size}: {used(ratio)}" for size, ratio in m.growth.items())
    yield f"  largest error of {short_name(m.declaration)}, in budgets of {best}, by the largest score: {sizes}"
    if m.strongest in GROWING and m.witness is not None:
        yield f"  it loses digits as the scores grow; the worst row is {m.error:.3g} off, {best} allows {m.budget:.3g}:"
        yield from row(m.witness)


def searched(certificate: Certificate) -> Iterator[str]:
    """The worst row that the directed search of a deep run bred for each subject, where no failure shows one."""
    for subject in certificate.subjects:
        mine = [f for f in certificate.findings if f.subject == subject.id and f.family == SEARCHED]
        if any(f.verdict in ("fail", "error") for f in mine):
            continue
        worst = max((f for f in mine if f.ratio is not None), key=lambda f: f.ratio or 0.0, default=None)
        if worst is not None and worst.witness is not None and worst.witness.scores is not None:
            head = f"{subject.id} · {worst.dtype} · directed search: at most {used(worst.ratio or 0.0)} of a budget"
            yield "\n".join([f"{head}, that of {short_name(worst.declaration)}", *row(worst.witness)])


def generosity(certificate: Certificate) -> Iterator[str]:
    """What is judged by a custom model, and which wrong softmaxes that model would let through."""
    for subject in certificate.subjects:
        for where, model in subject.custom.items():
            wrong = ", ".join(model.lets_through) or "none of the wrong softmaxes that the tier catches"
            yield f"{subject.id} · {where} · custom model: {model.changes}\n  it lets through: {wrong}"
