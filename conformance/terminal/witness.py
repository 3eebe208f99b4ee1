"""One failure as a block that a person can read: the theorem, the row, what was returned, what is true."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..document import Certificate
from ..finding import IN_COMPANY, AttentionWitness, Finding, Witness
from .matrix import SHORT, short_name, used

SHAPE = re.compile(r"(\w+ rows of shape |shape |for scores of shape )\([^)]*\)|returned \w+ for \w+ scores")

SHOWN = 8
"""Keys shown of one row."""

HINTS = {
    "uniform": "the scores were replaced by one finite number, so the forbidden keys share the weight",
    "raw softmax": "a finite penalty was added to the scores, and it cancels: the mask has no effect",
    "inverted mask": "the weight lies on the blocked keys: True is read as blocked, or the mask is negated once more",
    "clean forward, NaN VJP": "the NaN is selected away after the softmax, whose backward pass multiplies by it",
    "clean forward, NaN JVP": "the NaN is selected away in the forward pass only",
    "leak": "a key that the mask forbids has weight or gradient",
    "declaration stale": "an empty row gives zeros, which is more than the declared contract promises; declare 'zero'",
    "no valid flag": "the contract 'zero+valid' asks forward to return Answer(weights, valid)",
    "not normalised": "the weights do not sum to 1 within the rounding of the sum and the division",
    "centring lost": "the gradient is w * g, without subtracting <w, g>",
    "mean of values": "every key got the same weight, the forbidden ones too",
    "mask ignored": "the output is that of attention without a mask",
    "scale missing": "the gradient is that of the scores, not multiplied by the scale",
}
"""What a diagnosis usually means."""

NAN_HINTS = {
    "empty": "the softmax of nothing but -inf computes -inf - (-inf)",
    "let through": "what stands at a blocked key was let through",
    "overflow": "exp without subtracting the largest allowed score overflows, or inf - inf was computed",
}
"""What a NaN usually means, by the row that it is in."""

SPECIFIC = (
    "empty-row",
    "score-non-interference",
    "blocked_eq_zero",
    "allowed-nan-visible",
    "blocked-gradient-zero",
    "backward_eq_derivative",
    "derivative_apply",
    "row-sum",
    "spec_eq_weights",
    "attention-empty-row",
    "attention-blocked-gradient-zero",
    "attention-non-interference",
    "scaledDotProductAttentionBackward",
    "scaledDotProductAttention",
)
"""Declarations from the most telling to the least: a fault is explained by the first of these that it violates."""


def failures(certificate: Certificate) -> list[list[Finding]]:
    """Failed and errored findings, grouped by subject and diagnosis; the clearest finding of a group comes first.

    Clearest: one with a minimal row, then the most specific declaration, then the fewest keys (two at least), then
    plain scores, then the largest error.
    """
    return grouped(certificate.findings)


def grouped(findings: Iterable[Finding]) -> list[list[Finding]]:
    """:func:`failures` among findings that are in no certificate."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for f in findings:
        if f.verdict in ("fail", "error"):
            # One error repeats for every dtype and shape.
            cause = SHAPE.sub("", f.diagnosis) if f.verdict == "error" else f.diagnosis
            groups.setdefault((f.subject, cause), []).append(f)
    return [sorted(group, key=_clearness) for group in groups.values()]


def _clearness(f: Finding) -> tuple[float, ...]:
    shown = f.minimal or f.witness
    keys = shown.keys if shown is not None else 0
    scores = shown.scores if shown is not None and shown.scores else []
    plain = sum(map(_far, scores))
    specific = next((i for i, name in enumerate(SPECIFIC) if f.declaration.endswith(name)), len(SPECIFIC))
    return (
        float(f.minimal is None and f.smallest is None),
        float(specific),
        float(keys < 2),
        float(keys),
        float(plain),
        -(f.ratio or 0.0),
    )


def _far(score: str) -> bool:
    try:
        return not abs(float.fromhex(score)) <= 100.0
    except OverflowError:  # in a file that hardmask did not write
        return True


def block(group: Sequence[Finding], certificate: Certificate) -> str:
    """The text of one block."""
    return text(group, certificate.declarations)


def text(group: Sequence[Finding], declarations: Mapping[str, Mapping[str, str]]) -> str:
    """:func:`block` with the statements of the declarations by name."""
    f = group[0]
    entry = declarations[f.declaration]
    lines = [f"{f.subject} · {short_name(f.declaration)} · {f.dtype} · {f.family}"]
    meaning = hint(f)
    lines.append(f"  diagnosis  {f.diagnosis}" + (f": {meaning}" if meaning else ""))
    if f.verdict != "error":
        lines.append(f"  theorem    {entry['statement']}")
        lines.append(f"  in words   {entry['plain']}")
    shown = f.minimal or f.witness
    if shown is not None and shown.scores is not None:
        lines += row(shown, minimal=f.minimal is not None)
    if f.attention is not None:
        lines += problem(f.smallest or f.attention, smallest=f.smallest is not None)
    if f.verdict == "fail":
        lines.append(f"  error      {amount(f)}")
        what = "rows" if f.attention is None else "vectors"
        lines.append(f"  {what:<10} {f.failed} of {f.checked} failed in this family; tier {f.tier}")
    others = sorted({short_name(g.declaration) for g in group} - {short_name(f.declaration)})
    dtypes = [SHORT[d] for d in SHORT if d in {g.dtype for g in group}]
    plural = "s" if len(group) > 1 else ""
    lines.append(
        f"  seen in    {', '.join(dtypes)}; {len(group)} finding{plural}"
        + (f", also on {', '.join(others)}" if others else "")
    )
    return "\n".join(lines)


def hint(f: Finding) -> str | None:
    """What the diagnosis of a finding usually means, in a sentence; None where it speaks for itself."""
    w = f.minimal or f.witness
    if f.diagnosis != "NaN" or w is None or w.mask is None or w.scores is None:
        return HINTS.get(f.diagnosis)
    if not any(w.mask):
        return NAN_HINTS["empty"]
    blocked = [s for s, allowed in zip(w.scores, w.mask, strict=True) if not allowed]
    return NAN_HINTS["let through" if any("n" in s for s in blocked) else "overflow"]


def amount(f: Finding) -> str:
    """How large the error of the row that is shown is, in words."""
    error, budget = f.error, f.budget
    if least := f.minimal or f.smallest:
        error, budget = least.error, least.budget
    if error is None:
        return "not a number"
    if not budget:
        return f"{error:.3g}, where nothing but the exact value is allowed"
    return f"{error:.3g}, {used(error / budget)} times the budget of {budget:.3g}"


def row(w: Witness, *, minimal: bool = False) -> list[str]:
    """The offending entries of the row beside its first ones, as columns."""
    assert w.scores is not None
    assert w.mask is not None
    order = sorted(range(w.keys), key=lambda i: (i != w.index, not w.mask[i] if w.mask else False, i))[:SHOWN]
    shown = sorted(order)
    names = ["key", "allowed", "score"]
    columns = [
        [str(i) for i in shown],
        ["yes" if w.mask[i] else "no" for i in shown],
        [_short(w.scores[i]) for i in shown],
    ]
    for name, row in (("cotangent", w.cotangent), ("tangent", w.tangent), ("returned", w.returned), ("other", w.other)):
        if row is not None and len(row) == w.keys:
            names.append(name)
            columns.append([_short(row[i]) for i in shown])
    if w.exact is not None:
        names.append("true")
        columns.append([f"{float(w.exact[i].partition(' ')[0]):.8g}" for i in shown])
    lines = []
    for name, values in zip(names, columns, strict=True):
        lines.append(f"  {name:<10} " + " ".join(f"{v:>14}" for v in values).rstrip())
    place = f"batch {w.batch}, row {w.row}"
    remarks = [f"{len(shown)} of {w.keys} keys shown"] if len(shown) < w.keys else []
    remarks.append(f"smallest row found, from {place}" if minimal else place)
    if IN_COMPANY in w.note:
        remarks.append(IN_COMPANY)
    lines.append(f"             ({'; '.join(remarks)})")
    return lines


NUMBERS = 12
"""Numbers shown of one array of a problem."""


def problem(w: AttentionWitness, *, smallest: bool = False) -> list[str]:
    """An attention problem: its sizes, its arrays where they are small, and the place at fault."""
    batch, heads, groups, queries, keys, width, value_width = w.sizes
    sizes = f"B={batch} H={heads} Lq={queries} Lk={keys} d={width}"
    sizes += f" G={groups}" if groups != heads else ""
    sizes += f" dv={value_width}" if value_width != width else ""
    lines = [f"  problem    {sizes}" + ("" if w.scale is None else f", scale {float.fromhex(w.scale):.6g}")]
    for name, array in (("q", w.q), ("k", w.k), ("v", w.v), ("cotangent", w.cotangent)):
        if array is not None and len(array) <= NUMBERS and (name != "cotangent" or w.quantity.startswith("d")):
            lines.append(f"  {name:<10} " + " ".join(_short(x) for x in array))
    if w.mask is not None and len(w.mask) <= 4 * NUMBERS and keys:
        rows = ["".join("T" if x else "F" for x in w.mask[i : i + keys]) for i in range(0, len(w.mask), keys)]
        lines.append("  mask       " + " ".join(rows))
    if w.returned is not None and w.index and w.index[-1] >= 0:
        place = ",".join(map(str, w.index))
        true = "" if w.exact is None else f", true {float(w.exact[0]):.8g}"
        lines.append(f"  returned   {w.quantity}[{place}] = {float.fromhex(w.returned):.8g}{true}")
    remarks = [f"smallest problem found, from {w.problem}" if smallest else w.problem, *([w.note] if w.note else [])]
    lines.append(f"             ({'; '.join(remarks)})")
    return lines


def _short(hexadecimal: str) -> str:
    return f"{float.fromhex(hexadecimal):.8g}"
