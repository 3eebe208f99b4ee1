"""A configuration drafted from a run: what was asked, and one deviation for each cause, with its reason left open."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

from ..document import Certificate, DeviationRecord
from ..finding import Finding
from ..output import OutputError, writable
from ..terminal.matrix import short_name
from ..terminal.witness import grouped
from ..text import printable
from .configuration import DTYPES
from .known import today
from .rule import Rule

DAYS = 90
"""For how long a drafted deviation lets a failure pass."""


def unwritten(file: str | None) -> Path | None:
    """The absolute path of a file that is not there yet, found out before the run; None stays None.

    Raises OutputError: a file with reasons that somebody wrote is never replaced.
    """
    path = writable(file, "configuration")
    if path is not None and os.path.lexists(path):
        raise OutputError(f"'{file}' is there already, and is not replaced. Name a file that is not there.")
    return path


def write_draft(certificate: Certificate, rules: Sequence[Rule], path: Path) -> str:
    """Write what :func:`drafted` makes to a new file; the sentence to be printed about it. Raises OutputError."""
    if not certificate.complete:
        raise OutputError("No deviations were drafted: the run is not complete.")
    text = drafted(certificate, rules, today(), path.parent)
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except OSError as problem:
        raise OutputError(f"The configuration cannot be written to '{path.name}': {problem.strerror}.") from None
    count = text.count('\nreason = ""\n')
    if not count:
        return f"Drafted {path.name}: nothing fails that is not recorded."
    return f"Drafted {path.name}: {count} deviation{'s' * (count > 1)}, each to be given a reason before it counts."


def drafted(certificate: Certificate, kept: Sequence[Rule], day: date, folder: Path) -> str:
    """A complete TOML file for ``folder``: the request, the deviations in use, and drafts for all other failures.

    Every draft has an empty reason, so that the file is refused until a person has filled it in.
    """
    return "\n".join([*_request(certificate, folder), *_kept(kept, certificate), *_drafts(certificate, day)]) + "\n"


def _request(certificate: Certificate, folder: Path) -> Iterator[str]:
    asked = certificate.request
    yield "# Drafted by 'hardmask certify --write-deviations'. Give every deviation a reason, and a link if any;"
    yield "# until then the file is refused. A deviation that is fixed, has expired or matches nothing fails the gate."
    yield f"targets = {_list([_beside(t, folder) for t in asked['targets']])}"
    if asked["specimens"]:
        yield "specimens = true"
    for key in ("dtypes", "require"):
        if asked[key] and tuple(asked[key]) != DTYPES:
            yield f"{key} = {_list(asked[key])}"
    for key in ("contract", "effort"):
        if asked[key] is not None:
            yield f"{key} = {_text(asked[key])}"
    if asked["rounds"] is not None:
        yield f"rounds = {asked['rounds']}"
    yield f"seed = {certificate.seed}"


def _beside(target: str, folder: Path) -> str:
    """A target as a configuration in ``folder`` names it: files by their way from there."""
    file, _, name = target.rpartition(":")
    return f"{os.path.relpath(file, folder)}:{name}" if file.endswith(".py") else target


def _kept(rules: Sequence[Rule], certificate: Certificate) -> Iterator[str]:
    """The deviations that are in use already, as they are."""
    used = {_about(r) for r in certificate.deviations if r.status == "used" and r.findings}
    for rule in rules:
        if _about(rule) in used:
            dtypes = [rule.dtype] if rule.dtype else []
            yield ""
            yield from _table(
                rule.subject, [rule.declaration], dtypes, rule.reason, rule.link, rule.expires, rule.family
            )


def _about(record: Rule | DeviationRecord) -> tuple[str, str, str, str]:
    return record.subject, record.declaration, record.dtype, record.family


def _drafts(certificate: Certificate, day: date) -> Iterator[str]:
    """One table for each subject, cause and set of dtypes; a dtype that does not fail is not let pass."""
    cells: dict[tuple[str, str, str], list[Finding]] = {}
    for f in (f for group in grouped(f for f in certificate.findings if f.deviation is None) for f in group):
        # One cell may fail in two ways; the first of them says where it belongs.
        cells.setdefault((f.subject, f.declaration, f.dtype), []).append(f)
    dtypes: dict[tuple[str, str, str], list[str]] = {}
    for (subject, name, dtype), mine in cells.items():
        cause = mine[0].diagnosis if mine[0].verdict == "fail" else "error"
        dtypes.setdefault((subject, cause, name), []).append(dtype)
    tables: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (subject, cause, name), failing in dtypes.items():
        tables.setdefault((subject, cause, tuple(failing)), []).append(name)
    for (subject, _, where), names in tables.items():
        part = [cells[subject, name, dtype] for name in names for dtype in where]
        judged = {f.dtype for f in certificate.findings if f.subject == subject and (f.checked or f.verdict == "error")}
        yield ""
        for diagnosis in dict.fromkeys(f.diagnosis for mine in part for f in mine):
            yield f"# {printable(diagnosis, 110)}"
        count = sum(map(len, part))
        yield f"# {count} finding{'s' * (count > 1)}; one of each declaration and dtype:"
        yield from _wrapped([mine[0].id for mine in part])
        narrow = [] if set(where) >= judged else list(where)
        yield from _table(subject, [short_name(n) for n in names], narrow, "", "", day + timedelta(DAYS))


def _table(
    subject: str,
    names: Sequence[str],
    dtypes: Sequence[str],
    reason: str,
    link: str,
    expires: date,
    family: str = "",
) -> Iterator[str]:
    yield "[[deviation]]"
    yield f"subject = {_text(subject)}"
    yield f"declaration = {_text(names[0])}" if len(names) == 1 else f"declarations = {_list(names)}"
    if dtypes:
        yield f"dtype = {_text(dtypes[0])}" if len(dtypes) == 1 else f"dtypes = {_list(dtypes)}"
    if family:
        yield f"family = {_text(family)}"
    yield f"reason = {_text(reason)}"
    if link or not reason:
        yield f"link = {_text(link)}"
    yield f"expires = {expires.isoformat()}"


def _wrapped(ids: Sequence[str]) -> Iterator[str]:
    """Names of findings as comments, a few to a line."""
    for start in range(0, len(ids), 8):
        yield "# " + " ".join(ids[start : start + 8])


def _list(values: Sequence[str]) -> str:
    line = "[" + ", ".join(map(_text, values)) + "]"
    if len(line) <= 90:
        return line
    return "[\n" + "".join(f"    {_text(v)},\n" for v in values) + "]"


def _text(value: str) -> str:
    """A TOML string: JSON writes the same, but for one character."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
