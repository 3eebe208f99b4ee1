"""Turn tallies into findings: the verdict, its diagnosis, and a witness that the referee has confirmed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from ..adapters.subject import Method, Subject
from ..spec.batch import Floats
from ..spec.oracle.referee import Decision, decide, decide_backward, decide_sum, enclose
from ..spec.rounding import TIERS, ladder
from .accuracy import declared_for, families, held
from .cases.build import SEARCHED
from .checks import SERVED_BY
from .checks.derivative import GIVEN
from .diagnosis import INVERTED, ROUNDED
from .document import Measured
from .finding import Finding, Verdict, Witness
from .judgement import Counts, Tally, Worst, finite
from .measure import NONE, SIZES
from .promises import declared
from .runner import Results, methods_of
from .suite_fault import SuiteFault
from .tally import Tallies

UNMET = "(hypothesis unmet)"
NOT_RUN = "(not run)"
POLICIES = frozenset({"raw softmax", "uniform", "one key"})
"""Diagnoses that say what a backend does with an empty row."""

VAGUE = frozenset({"not zero", "not rejected"})
"""Diagnoses that only say that it is not what was declared."""

INEXACT = frozenset({ROUNDED, "wrong weights", "wrong derivative"})
"""Diagnoses of errors that a weaker tier may admit."""

CUSTOM = "pass under a custom model"

TRUE_OF_ROWS = {"row sum": ["1.0", "1.0"], "inner product": ["0.0", "0.0"], "difference": ["0.0", "0.0"]}
"""The true value where it is the same for every row: of a row sum, and of a difference that a theorem says is zero."""


def findings(subjects: Sequence[Subject], dtypes: Sequence[str], results: Results) -> Iterator[Finding]:
    """Every finding of a run, subject by subject; what was not judged is there with its reason.

    Raises SuiteFault when the referee contradicts a reported failure.
    """
    for subject in subjects:
        mine = [f for dtype in dtypes for f in _of_dtype(subject, dtype, results.get((subject.id, dtype), {}))]
        failing = [f.diagnosis for f in mine if f.verdict == "fail"]
        if 10 * failing.count(INVERTED) > len(failing):
            # One cause behind all of them: full rows look empty, empty rows look full. By chance a few look so.
            mine = [msgspec.structs.replace(f, diagnosis=INVERTED) if f.verdict == "fail" else f for f in mine]
        yield from mine


def _of_dtype(subject: Subject, dtype: str, tallies: Tallies) -> Iterator[Finding]:
    for key in SERVED_BY:
        mine = families(tallies, key)
        yield from _of_declaration(subject, dtype, key, mine)


def _of_declaration(subject: Subject, dtype: str, key: str, mine: dict[str, Tally]) -> Iterator[Finding]:
    name = declared(key).name
    here: dict[str, Any] = {"subject": subject.id, "declaration": name, "dtype": dtype}
    reason = _unsupported(subject, dtype, key)
    if reason:
        yield Finding(**here, family=NOT_RUN, verdict="unsupported", diagnosis=reason)
        return
    if not mine:
        why = "no row of this run meets its hypotheses"
        yield Finding(**here, family=NOT_RUN, verdict="hypothesis-unmet", diagnosis=why)
        return
    unmet = 0
    claimed, holds = declared_for(subject, key, dtype), held(subject, key, dtype, mine)
    for family, tally in mine.items():
        if not tally.checked and not tally.errors and not tally.facts:
            unmet += tally.unmet
            continue
        finding = finding_of(subject.id, name, dtype, family, tally)
        if finding.verdict == "fail" and finding.diagnosis in INEXACT and holds not in (NONE, claimed):
            finding = msgspec.structs.replace(finding, diagnosis=f"{ROUNDED}: holds under {holds}")
        elif finding.verdict == "pass" and finding.tier not in TIERS:
            finding = msgspec.structs.replace(finding, verdict="permitted", diagnosis=CUSTOM)
        yield finding
    if unmet:
        yield Finding(**here, family=UNMET, verdict="hypothesis-unmet", diagnosis="", unmet=unmet)


def _unsupported(subject: Subject, dtype: str, key: str) -> str:
    """Why a subject cannot be judged on a declaration in a dtype; empty if it can."""
    if dtype not in subject.dtypes:
        return subject.unsupported.get(dtype, f"the subject does not offer {dtype}")
    if methods_of(subject, key):
        return ""
    needed: list[Method] = [m for served in SERVED_BY[key] for m in served.split("+")]  # type: ignore[misc]
    missing = next(m for m in needed if m not in subject.methods)
    return subject.unsupported.get(missing, f"the subject offers no {missing}")


def accuracies(subjects: Sequence[Subject], dtypes: Sequence[str], results: Results) -> Iterator[Measured]:
    """The strongest tier of every subject, declaration and dtype that was judged, with the row that shows it."""
    for subject in subjects:
        for dtype in (d for d in dtypes if d in subject.dtypes):
            for key in SERVED_BY:
                mine = families(results.get((subject.id, dtype), {}), key)
                if methods_of(subject, key) and any(t.checked for t in mine.values()):
                    yield _accuracy(subject, key, dtype, mine)


def _accuracy(subject: Subject, key: str, dtype: str, mine: dict[str, Tally]) -> Measured:
    merged = Tally(tier="")
    for tally in mine.values():
        merged.merge(tally)
    growth = merged.growth
    # Rows of the largest numbers of a format show little: the row with most excess below that, if there is one.
    usual = {size: row for size, row in merged.sharpest.items() if SIZES[size] < np.inf} or merged.sharpest
    worst = max(usual.values(), key=lambda row: row.rank, default=None)
    holds = held(subject, key, dtype, mine)
    fine = holds == ladder(dtype)[0] or worst is None
    return Measured(
        subject=subject.id,
        declaration=declared(key).name,
        dtype=dtype,
        declared=declared_for(subject, key, dtype),
        strongest=holds,
        growth={} if fine else {f"{SIZES[size]:g}": ratio for size, ratio in sorted(growth.items())},
        error=None if worst is None or fine else finite(worst.error),
        budget=None if worst is None or fine else finite(worst.budget),
        witness=None if worst is None or fine else _full(worst)[1],
    )


def verdict_of(tally: Counts) -> Verdict:
    """The verdict of one tally; see the order of severity in ``finding``."""
    if tally.errors:
        return "error"
    if tally.failed:
        return "fail"
    if tally.tellable and tally.blind == tally.tellable:
        return "vacuous"
    if tally.permitted:
        return "permitted"
    return "pass" if tally.checked else "hypothesis-unmet"


def diagnosis_of(tally: Counts) -> str:
    """The most frequent fault, with two exceptions. A softmax of the raw scores outranks "uniform": a penalty that
    swallows small scores looks uniform on most rows, while a replacement never shows the raw scores. And any name of a
    policy outranks "not zero" and "not rejected", which are all that can be said of some of its consequences. An
    inverted mask shows on every other row: a row or two look like one by chance."""
    if tally.errors:
        return tally.errors[0]
    if not tally.diagnoses:
        return "; ".join(f for f in tally.facts if f)
    counts = dict(tally.diagnoses)
    if 4 * counts.get(INVERTED, 0) >= tally.failed:
        return INVERTED
    if POLICIES & counts.keys():
        counts = {name: count for name, count in counts.items() if name not in VAGUE}
    most = max(sorted(counts), key=lambda name: counts[name])
    return "raw softmax" if most == "uniform" and "raw softmax" in counts else most


def finding_of(subject: str, name: str, dtype: str, family: str, tally: Tally) -> Finding:
    """The finding of one tally. Raises SuiteFault when the referee does not confirm a failure."""
    verdict, diagnosis = verdict_of(tally), diagnosis_of(tally)
    worst = tally.witnesses.get(diagnosis, tally.worst)
    enclosure = None
    witness = None
    if worst is not None:
        if verdict == "fail":
            enclosure, witness = confirmed(worst, subject, name)
        elif verdict != "error" and family == SEARCHED:
            enclosure, witness = _full(worst)  # such a row is in no batch that the seed alone gives
        elif verdict != "error":
            witness = Witness(batch=worst.batch, row=worst.row, keys=len(worst.mask), index=_index(worst))
    failing = verdict == "fail" and worst is not None
    ratio = worst.ratio if failing and worst is not None else tally.ratio
    return Finding(
        subject=subject,
        declaration=name,
        dtype=dtype,
        family=family,
        verdict=verdict,
        diagnosis=diagnosis,
        checked=tally.checked,
        failed=tally.failed,
        unmet=tally.unmet,
        elements=tally.elements,
        tier=worst.tier if worst is not None else tally.tier,
        ratio=ratio if tally.checked and math.isfinite(ratio) else None,
        error=finite(worst.error) if worst is not None else None,
        budget=finite(worst.budget) if worst is not None else None,
        enclosure=enclosure,
        witness=witness,
    )


def _index(worst: Worst) -> int | None:
    return worst.index if worst.index >= 0 else None


def confirmed(worst: Worst, subject: str, name: str) -> tuple[list[str] | None, Witness]:
    """The full witness of a failure, confirmed by the referee, and the enclosure of the true value."""
    decision = confirm(worst)
    if decision is not None and not decision.exceeds:
        raise SuiteFault(
            f"The fast engine fails {subject} on {name} ({worst.batch}, row {worst.row}), the referee does not: "
            f"{decision} Please report this as a fault of hardmask."
        )
    return _full(worst)


def _full(worst: Worst) -> tuple[list[str] | None, Witness]:
    """The enclosure of the true value at the worst entry, and the whole row."""
    enclosure, exact, index = TRUE_OF_ROWS.get(worst.quantity), None, _index(worst)
    # A promise speaks of rows with an allowed number that is not real: nothing is true of them.
    vector = _vector(worst)
    numbers = [worst.scores, *([] if vector is None else [np.asarray(vector)])]
    real = all(np.isfinite(values[worst.mask]).all() for values in numbers)
    if real and worst.quantity != "valid":
        true = enclose(worst.scores.tolist(), worst.mask.tolist(), vector)
        exact = [str(x) for x in true]
        if index is None and worst.quantity in ("weights", "vjp", "jvp") and true:
            # The row as a whole is at fault: show the entry that is farthest off, or no number.
            middle = np.array([sum(x.floats()) / 2.0 for x in true])
            with np.errstate(invalid="ignore"):
                off = np.abs(worst.returned - middle)
            index = int(np.where(np.isnan(off), np.inf, off).argmax())
        if enclosure is None and index is not None:
            enclosure = [repr(x) for x in true[index].floats()]
    both = worst.quantity == "inner product"
    return enclosure, Witness(
        batch=worst.batch,
        row=worst.row,
        keys=len(worst.mask),
        index=index,
        quantity=worst.quantity,
        scores=_hex(worst.scores),
        mask=worst.mask.tolist(),
        cotangent=_hex(worst.cotangent) if both or worst.side == "cotangents" else None,
        tangent=_hex(worst.tangent) if both or worst.side == "tangents" else None,
        returned=_hex(worst.returned),
        other=None if worst.second is None else _hex(worst.second),
        exact=exact,
        note=worst.remark,
    )


def _hex(values: Floats) -> list[str]:
    return [x.hex() for x in values.tolist()]


def confirm(worst: Worst) -> Decision | None:
    """The referee's word on a failure, None where there is nothing to compute: the error is not a number, or
    the budget is 0 by structure."""
    if worst.budget <= 0.0 or not math.isfinite(worst.error):
        return None
    if worst.quantity == "row sum":
        return decide_sum(worst.returned.tolist(), 1.0, worst.budget)
    if worst.quantity == "inner product" and worst.second is not None:
        # <J u, g> - <u, J g>, as one sum of products of the returned values.
        u, g = (np.where(worst.mask, v, 0.0) for v in (worst.tangent, worst.cotangent))
        values, factors = np.concatenate([worst.returned, -worst.second]), np.concatenate([g, u])
        return decide_sum(values.tolist(), 0.0, worst.budget, factors.tolist())
    if worst.quantity == "difference" and worst.second is not None and worst.index >= 0:
        apart = [float(worst.returned[worst.index]), -float(worst.second[worst.index])]
        return decide_sum(apart, 0.0, worst.budget)
    if worst.quantity in ("weights", "vjp", "jvp") and worst.index >= 0:
        returned = float(worst.returned[worst.index])
        if worst.remark == GIVEN:
            assert worst.second is not None
            vector = np.where(worst.mask, np.asarray(_vector(worst)), 0.0).tolist()
            return decide_backward(worst.second.tolist(), vector, worst.index, returned, worst.budget)
        row = worst.scores.tolist(), worst.mask.tolist()
        return decide(*row, worst.index, returned, worst.budget, _vector(worst))
    return None


def _vector(worst: Worst) -> list[float] | None:
    """The cotangent or tangent of a derivative."""
    if worst.side is None:
        return None
    vector: list[float] = (worst.cotangent if worst.side == "cotangents" else worst.tangent).tolist()
    return vector
