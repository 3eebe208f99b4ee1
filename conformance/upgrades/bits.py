"""Outputs whose bits are other ones, whatever their verdicts."""

from __future__ import annotations

from collections.abc import Iterator

from ..cases.build import SEARCHED
from ..document import OutputRecord
from ..finding import Finding, identity
from .causes import Item
from .pair import Key, Pair
from .record import Place

Output = tuple[str, str, str, str]
"""Subject, dtype, quantity and family of an output record."""


def pairs(pair: Pair) -> list[tuple[OutputRecord, OutputRecord]]:
    """The outputs on the very same rows on both sides. What a search bred from the answers is not among them."""
    if not pair.same_rows:
        return []
    old = {_key(o): o for o in pair.old.outputs}
    return [
        (a, b)
        for b in pair.new.outputs
        if (a := old.get(_key(b))) is not None
        and b.subject in pair.subjects
        and b.dtype in pair.dtypes
        and b.family != SEARCHED
    ]


def bits(pair: Pair) -> Iterator[Item]:
    """Every output that is another one in bits, and those that one side alone has though it was judged by both.

    ``note`` says whether the verdicts on these outputs are as they were.
    """
    compared = pairs(pair)
    of: dict[tuple[str, str], int] = {}
    for a, _ in compared:
        of[a.subject, a.dtype] = of.get((a.subject, a.dtype), 0) + 1
    changed = [(a, b) for a, b in compared if a.sha256 != b.sha256]
    signature: dict[str, set[str]] = {}
    for a, _ in changed:
        signature.setdefault(a.subject, set()).add(a.dtype)
    for a, b in changed:
        same = (a.batches, a.rows) == (b.batches, b.rows)
        names = list(dict.fromkeys((*b.declarations, *a.declarations)))
        held = all(_verdict(pair.findings[0], a, name) == _verdict(pair.findings[1], b, name) for name in names)
        yield Item(
            level="bits",
            direction="changed",
            kind="outputs",
            before="",
            after="other bits" if same else f"other calls answered ({b.batches} of {a.batches})",
            adapter=pair.adapters[a.subject],
            place=Place(
                subject=a.subject, declarations=names, dtype=a.dtype, family=a.family, quantity=a.quantity, id=_id(a)
            ),
            # Subjects whose outputs changed in the same dtypes may have one cause.
            link=frozenset({" ".join(sorted(signature[a.subject]))}),
            note="the verdicts on them are as they were" if held else "verdicts on them are other ones too",
            of=of[a.subject, a.dtype],
        )


def _key(o: OutputRecord) -> Output:
    return o.subject, o.dtype, o.quantity, o.family


def _verdict(findings: dict[Key, Finding], o: OutputRecord, declaration: str) -> str | None:
    found = findings.get((o.subject, declaration, o.dtype, o.family))
    return None if found is None else found.verdict


def _id(o: OutputRecord) -> str:
    """The id of the finding that these outputs decide: of the first declaration."""
    if not o.declarations:
        return ""
    return identity(
        Finding(
            subject=o.subject,
            declaration=o.declarations[0],
            dtype=o.dtype,
            family=o.family,
            verdict="pass",
            diagnosis="",
        )
    )
