"""A certificate as a short Markdown page: the summary of a job."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..document import DeviationRecord
from ..finding import Finding
from .digest import Digest, worst_first
from .outcome import Outcome
from .safe import line, safe, web_link

LIMIT = 900_000
"""Bytes of the page, at most; GitHub refuses a summary of more than 1 MiB."""

BLOCKS, SUBJECTS, REASONS = 10, 300, 20
"""Kinds of failure, rows of a table, and reasons that are shown."""

SPECIAL = re.compile(r"([\\`*_{}\[\]<>#!|~&$@]|(?<=www)\.|:(?=[/\w])|^[-+=.)])", re.I)
"""What could be markup, a mention, an emoji or a link, and what could begin a list or a heading."""

COLUMNS = {
    "pass": "pass",
    "fail": "fail",
    "error": "error",
    "known": "known deviation",
    "permitted": "permitted",
    "vacuous": "vacuous",
    "unsupported": "unsupported",
    "hypothesis-unmet": "hypothesis unmet",
}
"""The columns of counts and their heads."""


def markdown(outcome: Outcome) -> str:
    """The page: the verdict, the subjects, the first failures, known deviations, and what is not shown."""
    digest = Digest(outcome.certificate)
    parts = (_head(outcome), _subjects(digest), _failures(outcome, digest), _deviations(digest), _unjudged(digest))
    text = "\n".join(entry for part in parts for entry in part)
    end = "\n".join(_end(outcome)) + "\n"
    room = LIMIT - len(end.encode())
    if len(text.encode()) > room:
        kept = text.encode()[: room - 200].decode(errors="ignore").rpartition("\n\n")[0]
        text = kept + "\n\nThe rest is too long for this page; the certificate has it.\n"
    return f"{text}\n{end}"


def escaped(text: str) -> str:
    """Text on one line in which nothing is markup, a mention or a cell's end.

    >>> escaped("a|b <i> @c")
    'a\\\\|b \\\\<i\\\\> \\\\@c'
    """
    return SPECIAL.sub(r"\\\1", line(text))


def code(text: str, *, in_table: bool = False) -> str:
    """Text on one line as code.

    >>> code("a`b|c"), code("a|c", in_table=True)
    ('``a`b|c``', '`a\\\\|c`')
    """
    shown = line(text).replace("|", "\\|") if in_table else line(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") or not shown else ""
    return f"{fence}{space}{shown}{space}{fence}"


def fenced(text: str) -> str:
    """Text of several lines as a block of code, whatever backticks it holds."""
    fence = "`" * max(3, max((len(run) for run in re.findall("`+", text)), default=0) + 1)
    return f"{fence}text\n{safe(text, 8000)}\n{fence}"


def _head(outcome: Outcome) -> Iterator[str]:
    certificate = outcome.certificate
    yield f"## {'✅' if outcome.certified else '❌'} hardmask"
    yield ""
    yield f"**{escaped(outcome.reason)}**"
    yield ""
    frameworks = certificate.environment.get("frameworks")
    versions = sorted(frameworks.items()) if isinstance(frameworks, dict) else ()
    told = [f"{name} {version}" for name, version in versions]
    told += [f"hardmask {certificate.hardmask}", f"seed {certificate.seed}"]
    told += [f"effort {certificate.request['effort']}"] if certificate.request.get("effort") else []
    yield escaped(", ".join(told)) + f", {code(certificate.digest[:23] + '…')}"
    yield ""


def _subjects(digest: Digest) -> Iterator[str]:
    subjects = worst_first(digest.certificate.subjects)
    counts = {s.id: digest.counts(s.id) for s in subjects[:SUBJECTS]}
    columns = [c for c in COLUMNS if c in ("pass", "fail") or any(mine[c] for mine in counts.values())]
    yield f"| subject | verdict | {' | '.join(COLUMNS[c] for c in columns)} | strongest tier that holds |"
    yield "|---|---|" + "--:|" * len(columns) + "---|"
    for s in subjects[:SUBJECTS]:
        mine = counts[s.id]
        word = "known deviations" if mine["known"] and not mine["fail"] and not mine["error"] else s.verdict
        verdict = f"**{escaped(word)}**" if word in ("fail", "error", "vacuous") else escaped(word)
        cells = " | ".join(f"{mine[c]:,}" if mine[c] else "" for c in columns)
        yield f"| {code(s.id, in_table=True)} | {verdict} | {cells} | {escaped(digest.strongest(s.id))} |"
    yield ""
    hidden = len(subjects) - SUBJECTS
    if hidden > 0:
        yield f"{hidden} more subjects are in the certificate."
        yield ""
    yield "The columns count findings: one is a theorem on one dtype and one family of rows."
    yield ""


def _failures(outcome: Outcome, digest: Digest) -> Iterator[str]:
    groups = digest.groups
    if not groups:
        return
    yield "### What fails"
    yield ""
    for group in _one_of_each_first(groups)[:BLOCKS]:
        f = group[0]
        many = f"{len(group)} finding{'s' if len(group) > 1 else ''}"
        yield f"<details><summary><code>{html_text(f.subject)}</code>: {html_text(f.diagnosis)}, {many}</summary>"
        yield ""
        yield fenced(digest.block(group))
        yield ""
        if f.id:
            yield f"Finding {code(f.id)}. Run it again: {code(outcome.replay(f.id))}"
            yield ""
        yield "</details>"
        yield ""
    if len(groups) > BLOCKS:
        yield f"{len(groups) - BLOCKS} more kinds of failure are in the certificate."
        yield ""


def _one_of_each_first(groups: list[list[Finding]]) -> list[list[Finding]]:
    """Groups in such an order that every subject comes once before any comes twice."""
    seen: dict[str, int] = {}
    order = []
    for group in groups:
        order.append(seen.get(group[0].subject, 0))
        seen[group[0].subject] = order[-1] + 1
    return [group for _, group in sorted(zip(order, groups, strict=True), key=lambda pair: pair[0])]


def html_text(text: str) -> str:
    """Text on one line inside of HTML inside of Markdown: no markup in either.

    >>> html_text("<b>`*")
    '&#60;b&#62;&#96;&#42;'
    """
    return SPECIAL.sub(lambda found: f"&#{ord(found[0])};", line(text))


def _deviations(digest: Digest) -> Iterator[str]:
    records = digest.certificate.deviations
    if not records:
        return
    yield "### Known deviations"
    yield ""
    yield "| status | subject | theorem | dtype | reason | expires | findings |"
    yield "|---|---|---|---|---|---|--:|"
    for record in sorted(records, key=lambda r: r.status == "used")[:SUBJECTS]:
        status = "used" if record.status == "used" else f"**{record.status}**"
        where = " | ".join(
            code(x, in_table=True) if x else "any" for x in (record.subject, record.declaration, record.dtype)
        )
        yield f"| {status} | {where} | {_reason(record)} | {escaped(record.expires)} | {record.findings:,} |"
    if len(records) > SUBJECTS:
        yield ""
        yield f"{len(records) - SUBJECTS} more are in the certificate."
    yield ""


def _reason(record: DeviationRecord) -> str:
    link = web_link(record.link).replace("|", "%7C")
    if not link:
        return escaped(f"{record.reason} {record.link}")
    return f"{escaped(record.reason)} ([link](<{link}>))"


def _unjudged(digest: Digest) -> Iterator[str]:
    found = digest.unjudged()
    if not found:
        return
    yield "<details><summary>What was not judged</summary>"
    yield ""
    for why, subjects, count in found[:REASONS]:
        named = ", ".join(code(s) for s in subjects[:5])
        more = f" and {len(subjects) - 5} more" if len(subjects) > 5 else ""
        yield f"- {escaped(why)} {count:,} finding{'s' if count > 1 else ''} of {named}{more}"
    if len(found) > REASONS:
        yield f"- {len(found) - REASONS} more reasons are in the certificate."
    yield ""
    yield "</details>"
    yield ""


def _end(outcome: Outcome) -> Iterator[str]:
    yield "<details><summary>What this does not show</summary>"
    yield ""
    for sentence in outcome.certificate.not_shown[:100]:
        yield f"- {escaped(sentence)}"
    yield ""
    yield "</details>"
