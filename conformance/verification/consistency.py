"""What has to agree within a certificate, whatever was computed: ids, counts, verdicts, what belongs to what."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

from ...spec.contracts import contract
from ...spec.formats import DTYPES
from ...spec.rounding import ladder
from .. import __version__, records
from ..document import Certificate, SubjectRecord
from ..finding import Finding, combine, identity
from .asked import Asked
from .claims import CLOSE, by_name, named
from .ledger import Ledger
from .models import METHODS, attention_model_of, model_of, tiers_of

NOT_RUN = frozenset({"unsupported", "hypothesis-unmet"})
"""Verdicts of what was not judged: no row of such a finding counts as checked."""


def check_consistency(certificate: Certificate, asked: Asked | None, ledger: Ledger) -> None:
    """Note every contradiction between the parts of a certificate; ``asked``: its request, where it is one."""
    _environment(certificate, ledger)
    _audit(certificate, ledger)
    _declarations(certificate, ledger)
    subjects = _subjects(certificate, ledger)
    for f in certificate.findings:
        _finding(f, subjects.get(f.subject), certificate, ledger)
        ledger.checked["findings: id, counts, verdict, tier"] += 1
    for id, count in Counter(f.id for f in certificate.findings).items():
        ledger.expect(count == 1, f"id {id}", f"{count} findings have this id.")
    if asked is not None:
        _complete(certificate, asked, ledger)
    _measured(certificate, ledger)
    _sweeps(certificate, ledger)
    _deviations(certificate, ledger)
    if asked is not None:
        _not_shown(certificate, asked, ledger)


def _environment(certificate: Certificate, ledger: Ledger) -> None:
    """What the run ran on is said: without it a verdict is about nothing in particular."""
    there = certificate.environment
    for name in ("python", "system", "machine"):
        ledger.expect(isinstance(there.get(name), str), "environment", f"'{name}' is missing.")
    for name in ("frameworks", "libraries"):
        versions = there.get(name)
        good = isinstance(versions, dict) and all(isinstance(v, str) for v in versions.values())
        ledger.expect(good, "environment", f"The versions of its {name} are missing.")


def _audit(certificate: Certificate, ledger: Ledger) -> None:
    """The oracle kept what it states, on rows that were looked at."""
    audit = certificate.audit
    ledger.expect(0.0 <= audit.share <= 1.0, "audit", f"The oracle used {audit.share:g} of its stated error.")
    sampled = any(f.checked and not f.family.startswith("exhaustive ") for f in certificate.findings)
    looked = audit.rows > 0 or not sampled or not certificate.complete
    ledger.expect(looked, "audit", "Rows were judged, and none was recomputed by the referee.")
    ledger.checked["the audit of the oracle"] += 1


def _declarations(certificate: Certificate, ledger: Ledger) -> None:
    """The claims that were judged are those that hardmask knows under these names."""
    known = by_name()
    for name, entry in certificate.declarations.items():
        where, mine = f"declaration {name}", known.get(name)
        ledger.checked["declarations: known here, by the same fingerprint"] += 1
        if mine is None:
            ledger.wrong(where, f"hardmask {__version__} has no such declaration: its findings say nothing here.")
        elif entry.get("fingerprint") != mine.fingerprint:
            here = f"hardmask {__version__} states it otherwise"
            ledger.wrong(where, f"The claim was another one: {here}. Verify with hardmask {certificate.hardmask}.")
        elif (entry.get("statement"), entry.get("plain")) != (mine.statement, mine.plain):
            ledger.wrong(where, "Its fingerprint is right, and its words are not those of the claim.")
    for name in sorted({f.declaration for f in certificate.findings} - certificate.declarations.keys()):
        ledger.wrong(f"declaration {name}", "Findings name it, and the certificate does not list it.")


def _subjects(certificate: Certificate, ledger: Ledger) -> dict[str, SubjectRecord]:
    found: dict[str, SubjectRecord] = {}
    verdicts = defaultdict(list)
    for f in certificate.findings:
        verdicts[f.subject].append(f.verdict)
    for s in certificate.subjects:
        where = f"subject {s.id}"
        ledger.expect(s.id not in found, where, "It is listed twice.")
        found[s.id] = s
        combined = combine(verdicts[s.id])
        ledger.expect(s.verdict == combined, where, f"Its findings come to '{combined}', and not to '{s.verdict}'.")
        for name in {s.contract, s.declared_contract}:
            try:
                contract(name)
            except ValueError:
                ledger.wrong(where, f"There is no contract '{name}'.")
        for method, dtype in (key.partition(":")[::2] for key in s.tier):
            fits = dtype in s.dtypes and method in s.methods and bool(tiers_of(s, dtype, method))
            ledger.expect(fits, where, f"Its tier of '{method}:{dtype}' is none.")
        ledger.checked["subjects: combined verdict, contract, tiers"] += 1
    for name in sorted(verdicts.keys() - found.keys()):
        ledger.wrong(f"subject {name}", "Findings name it, and the certificate does not list it.")
    return found


def _finding(f: Finding, subject: SubjectRecord | None, certificate: Certificate, ledger: Ledger) -> None:
    where = named(f)

    def expect(holds: bool, sentence: str) -> None:
        ledger.expect(holds, where, sentence)

    expect(f.id == identity(f), f"Its id should be {identity(f)}.")
    expect(f.dtype in DTYPES, f"There is no dtype '{f.dtype}'.")
    expect(f.failed <= f.checked, f"{f.failed} rows failed of {f.checked} that were checked.")
    expect(f.deviation is None or f.verdict in ("fail", "error"), "A deviation is recorded, and it is no failure.")
    if f.verdict == "fail":
        expect(f.failed > 0, "It is a failure without a failed row.")
    elif f.verdict in ("pass", "permitted", "vacuous"):
        expect(f.failed == 0, f"{f.failed} rows failed, and the verdict is '{f.verdict}'.")
        expect(f.checked > 0, f"No row was checked, and the verdict is '{f.verdict}'.")
        expect(f.ratio is None or f.ratio <= 1.0 + CLOSE, f"The ratio is {f.ratio}, and the verdict is '{f.verdict}'.")
    elif f.verdict in NOT_RUN:
        expect(f.checked == 0 == f.failed, f"Rows were checked, and the verdict is '{f.verdict}'.")
    expect(f.elements >= f.checked or not f.elements, f"{f.checked} rows have {f.elements} entries.")
    expect(f.ratio is None or f.ratio >= 0.0, f"The ratio is {f.ratio}.")
    for name, value in (("error", f.error), ("budget", f.budget)):
        expect(value is None or value >= 0.0, f"The {name} is {value}.")
    if f.error is not None and f.budget and math.isfinite(f.error / f.budget):
        share = f.error / f.budget
        largest = f.ratio is not None and f.ratio >= share * (1.0 - CLOSE)
        exact = f.verdict != "fail" or (f.ratio is not None and f.ratio <= share * (1.0 + CLOSE))
        expect(largest and exact, f"The ratio is {f.ratio}, and error/budget is {share:.6g}.")
    both = f.witness is not None and f.attention is not None
    expect(not both, "It rests on a row and on a problem of attention.")
    if subject is not None:
        if f.checked and f.verdict != "error":
            _tier(f, subject, ledger)
        judged = f.verdict not in ("unsupported", "error")
        expect(not judged or f.dtype in subject.dtypes or not f.checked, f"The subject does not offer {f.dtype}.")


def _tier(f: Finding, subject: SubjectRecord, ledger: Ledger) -> None:
    words = {t for m in METHODS for t in tiers_of(subject, f.dtype, m)}
    known = attention_model_of if subject.operation != "masked-softmax" else model_of
    if f.tier not in words:
        ledger.wrong(named(f), f"It was judged by '{f.tier}', and the subject declares {', '.join(sorted(words))}.")
    elif known(f.tier, f.dtype) is None:
        ledger.wrong(named(f), f"There is no tier '{f.tier}'.")


def _complete(certificate: Certificate, asked: Asked, ledger: Ledger) -> None:
    """Every subject has a finding on every declaration of its operation in every dtype of the run."""
    if not certificate.complete or asked.effort is None:
        return
    from ..attention.checks import SERVED_BY as ATTENTION
    from ..checks import SERVED_BY as ROWS
    from ..promises import declared

    there = {(f.subject, f.declaration, f.dtype) for f in certificate.findings}
    names = {kind: [declared(key).name for key in keys] for kind, keys in (("r", ROWS), ("a", ATTENTION))}
    for s in certificate.subjects:
        for dtype in asked.judged:
            missing = [
                n for n in names["r" if s.operation == "masked-softmax" else "a"] if (s.id, n, dtype) not in there
            ]
            for name in missing[:1]:
                more = f", nor on {len(missing) - 1} others" if len(missing) > 1 else ""
                ledger.wrong(f"subject {s.id}", f"There is no finding on {name} in {dtype}{more}: it was taken out.")
        ledger.checked["subjects: a finding on every declaration in every dtype"] += 1
    _decided(certificate, {(f.subject, f.declaration, f.dtype, f.family) for f in certificate.findings}, ledger)


def _decided(certificate: Certificate, there: set[tuple[str, str, str, str]], ledger: Ledger) -> None:
    """Where outputs are recorded, the findings that rest on them are there too."""
    for o in certificate.outputs:
        for name in o.declarations:
            if (o.subject, name, o.dtype, o.family) not in there:
                ledger.wrong(
                    f"outputs ({o.subject} · {o.dtype} · {o.quantity} · {o.family})",
                    f"They decide {name}, and there is no finding on it.",
                )


def _measured(certificate: Certificate, ledger: Ledger) -> None:
    seen = set()
    operation = {s.id: s.operation for s in certificate.subjects}
    for m in certificate.measured:
        where = f"measured ({m.subject} · {m.declaration} · {m.dtype})"
        ledger.checked["measured tiers"] += 1
        name = m.subject, m.declaration, m.dtype
        ledger.expect(name not in seen, where, "It is listed twice.")
        seen.add(name)
        if m.subject not in operation or m.dtype not in DTYPES:
            ledger.wrong(where, "The subject or the dtype is not one of the run.")
            continue
        known = model_of if operation[m.subject] == "masked-softmax" else attention_model_of
        for words in (m.declared, m.strongest):
            ledger.expect(not words or known(words, m.dtype) is not None, where, f"There is no tier '{words}'.")
        if m.witness is not None:
            exceeds = m.error is None or (m.budget is not None and m.error > m.budget)
            ledger.expect(exceeds, where, "Its row does not exceed the strongest tier.")
            strongest = ladder(m.dtype)[0]
            ledger.expect(m.strongest != strongest, where, f"'{strongest}' is said to hold, and a row exceeds it.")


def _sweeps(certificate: Certificate, ledger: Ledger) -> None:
    failing = {(f.subject, f.dtype, f.family) for f in certificate.findings if f.verdict == "fail"}
    for s in certificate.sweeps:
        where = f"sweep ({s.subject} · {s.dtype} · {s.kind})"
        ledger.checked["sweeps"] += 1
        ledger.expect(s.first_scores <= s.sampled <= s.of, where, "More scores were enumerated than there are.")
        ledger.expect(
            s.violations + s.permitted <= s.rows or s.violations == 1, where, "More rows fail than there are."
        )
        failed = (s.subject, s.dtype, f"exhaustive {s.kind}") in failing
        ledger.expect(bool(s.violations) == failed, where, "Its violations and its findings contradict each other.")


def _deviations(certificate: Certificate, ledger: Ledger) -> None:
    """Every failure that is let pass is counted under one recorded deviation, with its very reason."""
    recorded: Counter[tuple[str, str, str]] = Counter()
    for d in certificate.deviations:
        recorded[d.reason, d.link, d.expires] += d.findings
        where = f"deviation of {d.subject} on {d.declaration}"
        ledger.expect(not d.findings or d.status == "used", where, f"It is {d.status}, and lets failures pass.")
    excused = Counter(
        (f.deviation.reason, f.deviation.link, f.deviation.expires)
        for f in certificate.findings
        if f.deviation is not None
    )
    for why in recorded.keys() | excused.keys():
        count = f"{excused[why]} failures are let pass because '{why[0]}', and the records count {recorded[why]}."
        ledger.expect(recorded[why] == excused[why], "deviations", count)
    ledger.checked["deviations"] += len(certificate.deviations)


def _not_shown(certificate: Certificate, asked: Asked, ledger: Ledger) -> None:
    """What the certificate does not show is said: caveats cannot be left out."""
    needed = [records.ISOLATED, *records.NEVER]
    if asked.effort is not None:
        needed += records.SAMPLED[1:]
        if any(s.operation == "masked-attention" for s in certificate.subjects):
            needed += records.ATTENTION
    else:
        needed += records.ENUMERATED
    ledger.checked["sentences on what is not shown"] += len(certificate.not_shown)
    if not certificate.not_shown:
        ledger.wrong("not_shown", "The certificate does not say what it does not show.")
    elif certificate.hardmask == __version__:
        for sentence in needed:
            if sentence not in certificate.not_shown:
                ledger.wrong("not_shown", f"A sentence is missing: {sentence}")
