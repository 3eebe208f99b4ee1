"""One run for many tests: judged at most once, by whichever process comes first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from ..document import Certificate
from ..finding import Finding, combine
from .asked import Asked
from .known import stale


@dataclass(frozen=True)
class Outcome:
    """What one test comes to, and what there is to say about it."""

    kind: Literal["pass", "fail", "error", "known", "skip"]
    text: str = ""


class Shared(msgspec.Struct, frozen=True):
    """What one process leaves for the others: a certificate with its conclusion, or why there is none."""

    certificate: Certificate | None
    exit_code: int = 0
    reason: str = ""
    fault: bool = False


class Run:
    """The run of a test session. ``folder``: where several processes share what was judged."""

    def __init__(self, ask: Asked, folder: Path | None = None) -> None:
        self.ask = ask
        self.folder = folder
        self._subjects: dict[str, dict[str, list[str]]] = {}
        self._judged: Shared | None = None
        self._cells: dict[tuple[str, str], list[Finding]] = {}

    def declarations(self) -> dict[str, list[str]]:
        """The short names of the declarations that each subject is judged by; nothing is judged for it.

        Raises ValueError, with a sentence, when a target is not there.
        """
        from ...adapters.registry import resolve_all
        from ...adapters.subject import Subject
        from ..attention.checks import SERVED_BY as OF_ATTENTION
        from ..checks import SERVED_BY
        from ..promises import declared
        from ..terminal.matrix import short_name

        request = self.ask.request()
        rows, attention = ([short_name(declared(k).name) for k in served] for served in (SERVED_BY, OF_ATTENTION))
        found: dict[str, list[str]] = {}
        for target in request.targets:
            mine = resolve_all([target], specimens=request.specimens)
            self._subjects[target] = {s.id: rows if isinstance(s, Subject) else attention for s in mine}
            found.update(self._subjects[target])
        return found

    def select(self, subjects: set[str]) -> None:
        """Judge these subjects only; all of them where none is named, as for the verdict alone."""
        every = {id for mine in self._subjects.values() for id in mine}
        if not subjects or subjects >= every:
            return
        targets: list[str] = []
        for target, mine in self._subjects.items():
            wanted = [id for id in mine if id in subjects]
            # What comes from a file goes by the name of the file.
            targets += [target] * bool(wanted) if ":" in target else wanted
        values = self.ask.values | {"targets": tuple(dict.fromkeys(targets))}
        self.ask = replace(self.ask, values=values, restricted=True)

    def report(self) -> tuple[Certificate, int, str]:
        """The certificate, the exit code and its reason.

        Raises ValueError where the request cannot be carried out, and SuiteFault where hardmask is at fault.
        """
        from ..suite_fault import SuiteFault

        if self._judged is None:
            self._judged = self._judge() if self.folder is None else self._once(self.folder)
            if self._judged.certificate is not None:
                self._sort(self._judged.certificate)
        if self._judged.certificate is None:
            raise (SuiteFault if self._judged.fault else ValueError)(self._judged.reason)
        return self._judged.certificate, self._judged.exit_code, self._judged.reason

    def stale(self) -> list[str]:
        """A sentence for each deviation that does not hold any more."""
        return stale(self.report()[0].deviations)

    def outcome(self, subject: str, declaration: str) -> Outcome:
        """What the findings of a subject on a declaration, by its short name, come to."""
        certificate = self.report()[0]
        return outcome_of(self._cells.get((subject, declaration), []), certificate)

    def _sort(self, certificate: Certificate) -> None:
        from ..terminal.matrix import short_name

        for f in certificate.findings:
            self._cells.setdefault((f.subject, short_name(f.declaration)), []).append(f)

    def _judge(self) -> Shared:
        from ..certification import SuiteFault, certify

        try:
            report = certify(self.ask.request(), gate=self.ask.gate)
        except ValueError as problem:
            return Shared(None, reason=str(problem))
        except SuiteFault as problem:
            return Shared(None, reason=str(problem), fault=True)
        return Shared(report.certificate, report.exit_code, report.reason)

    def _once(self, folder: Path) -> Shared:
        """Judge, or wait for the process that does."""
        from filelock import FileLock

        from ..output import write_whole

        file = folder / "judged.json"
        with FileLock(folder / "lock"):
            if file.exists():
                return msgspec.json.decode(file.read_bytes(), type=Shared)
            judged = self._judge()
            write_whole(file, msgspec.json.encode(judged))
            return judged


def outcome_of(findings: Sequence[Finding], certificate: Certificate) -> Outcome:
    """What some findings of one subject on one declaration come to, by the rules of ``hardmask certify``."""
    from ..terminal.matrix import short_name
    from ..terminal.witness import grouped, text

    if not findings:
        return Outcome("skip", "The run ended before it was judged.")
    open_ones = [f for f in findings if f.verdict in ("fail", "error") and f.deviation is None]
    if open_ones:
        blocks = "\n\n".join(text(group, certificate.declarations) for group in grouped(open_ones))
        return Outcome("error" if combine(f.verdict for f in open_ones) == "error" else "fail", blocks)
    known = list(dict.fromkeys(f.deviation for f in findings if f.deviation is not None))
    if known:
        return Outcome("known", "; ".join(f"{d.reason} (known until {d.expires})" for d in known))
    for dtype in dict.fromkeys(f.dtype for f in findings):
        judged = [f for f in findings if f.dtype == dtype and f.checked]
        if judged and all(f.verdict == "vacuous" for f in judged):
            f = judged[0]
            sentence = f"The budget of {f.subject} says nothing about {short_name(f.declaration)} in {dtype}."
            return Outcome("fail", sentence)
    verdict = combine(f.verdict for f in findings)
    diagnoses = "; ".join(dict.fromkeys(f.diagnosis for f in findings if f.verdict == verdict and f.diagnosis))
    if verdict in ("unsupported", "hypothesis-unmet"):
        return Outcome("skip", f"{verdict}: {diagnoses}" if diagnoses else verdict)
    return Outcome("pass", "" if verdict == "pass" else f"{verdict}: {diagnoses}" if diagnoses else verdict)
