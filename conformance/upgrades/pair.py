"""Two certificates side by side: what may be compared, and why the rest may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..document import Certificate, SubjectRecord
from ..finding import Finding, Verdict
from .record import Difference, Level

Key = tuple[str, str, str, str]
"""Subject, declaration, dtype and family of a finding."""

ROWS = ("effort", "rounds", "exhaustive")
"""What, besides the seed, decides which rows are put to a subject."""

JUDGED: frozenset[Verdict] = frozenset({"pass", "permitted", "vacuous", "fail", "error"})
"""Verdicts that rest on answers of the subject."""

DEPTH = 4
"""How deep the environment is looked into."""


@dataclass
class Pair:
    """The two certificates, and what of them is comparable.

    ``suite``: what differs in hardmask itself. ``stated``: the declarations whose statement is the same in both.
    """

    old: Certificate
    new: Certificate
    not_compared: list[str] = field(default_factory=list)
    missing: list[Level] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.suite = list(self._suite())
        self._explain()

    @cached_property
    def stated(self) -> frozenset[str]:
        """Declarations that say the same in both certificates."""
        old, new = self.old.declarations, self.new.declarations
        return frozenset(n for n in old if n in new and _print(old[n]) == _print(new[n]))

    @cached_property
    def restated(self) -> frozenset[str]:
        """Declarations that are in both certificates and do not say the same."""
        return frozenset(self.old.declarations) & frozenset(self.new.declarations) - self.stated

    @property
    def same_version(self) -> bool:
        """Whether one version of hardmask made both."""
        return self.old.hardmask == self.new.hardmask

    @property
    def same_plan(self) -> bool:
        """Whether the same families of rows, and as many of them, were put to the subjects."""
        return self.same_version and all(self._asked(self.old, name) == self._asked(self.new, name) for name in ROWS)

    @property
    def same_rows(self) -> bool:
        """Whether the very same rows were put to the subjects: the answers are paired."""
        return self.same_plan and self.old.seed == self.new.seed

    @property
    def same_rules(self) -> bool:
        """Whether the same contracts and promises were asked for."""
        return all(self._asked(self.old, name) == self._asked(self.new, name) for name in ("contract", "require"))

    @property
    def same_targets(self) -> bool:
        """Whether the same subjects were asked for."""
        return all(self._asked(self.old, name) == self._asked(self.new, name) for name in ("targets", "specimens"))

    @cached_property
    def dtypes(self) -> frozenset[str]:
        """The dtypes that both runs asked for."""
        return frozenset(self._dtypes(self.old)) & frozenset(self._dtypes(self.new))

    @cached_property
    def subjects(self) -> dict[str, tuple[SubjectRecord, SubjectRecord]]:
        """The subjects in both certificates."""
        new = {s.id: s for s in self.new.subjects}
        return {s.id: (s, new[s.id]) for s in self.old.subjects if s.id in new}

    @cached_property
    def adapters(self) -> dict[str, str]:
        """The adapter of every subject."""
        return {s.id: s.adapter for s in (*self.new.subjects, *self.old.subjects)}

    @cached_property
    def findings(self) -> tuple[dict[Key, Finding], dict[Key, Finding]]:
        """The findings of both sides that may be compared: of subjects, dtypes and statements in both."""
        return self._findings(self.old), self._findings(self.new)

    @cached_property
    def reached(self) -> frozenset[tuple[str, str, str]]:
        """Subject, declaration and dtype of everything that the new run judged."""
        return frozenset((f.subject, f.declaration, f.dtype) for f in self.new.findings if f.verdict in JUDGED)

    def _findings(self, certificate: Certificate) -> dict[Key, Finding]:
        return {
            (f.subject, f.declaration, f.dtype, f.family): f
            for f in certificate.findings
            if f.subject in self.subjects and f.dtype in self.dtypes and f.declaration not in self.restated
        }

    def differences(self) -> list[Difference]:
        """What differs in the request, and in what the runs ran on."""
        old = {"seed": self.old.seed, **self.old.request}
        new = {"seed": self.new.seed, **self.new.request}
        return [*_differences(old, new), *_differences(self.old.environment, self.new.environment)]

    @staticmethod
    def _asked(certificate: Certificate, name: str) -> Any:
        return certificate.request.get(name)

    @staticmethod
    def _dtypes(certificate: Certificate) -> list[str]:
        asked = certificate.request.get("dtypes")
        return [d for d in asked if isinstance(d, str)] if isinstance(asked, list) else []

    def _suite(self) -> Iterator[str]:
        if not self.same_version:
            yield f"hardmask {self.old.hardmask} made the old certificate, {self.new.hardmask} the new one"
        for name in sorted(self.restated):
            yield f"the statement of {name} is another one"
        if not self.same_version:
            for name in sorted(set(self.old.declarations) - set(self.new.declarations)):
                yield f"{name} is in the old certificate only"
            for name in sorted(set(self.new.declarations) - set(self.old.declarations)):
                yield f"{name} is in the new certificate only"

    def _explain(self) -> None:
        """Say what cannot be compared, and which levels are missing because of it."""
        say = self.not_compared.append
        if not self.same_rules:
            say(
                "Verdicts and policies: the two runs judged by other rules ("
                + "; ".join(f"{d.what}: {d.old or 'none'} → {d.new or 'none'}" for d in self._rules())
                + ")."
            )
            self.missing += ["verdict", "policy"]
        if self.restated:
            say(f"Verdicts, policies and errors on {len(self.restated)} declarations whose statement is another one.")
        why = f"the seeds differ ({self.old.seed}, {self.new.seed})"
        if not self.same_plan:
            why = (
                "other rows were asked for" if self.same_version else "other versions of hardmask may build other rows"
            )
            say(f"Distributions of errors: {why}, and the mix of rows shapes a distribution.")
            self.missing.append("distribution")
        if not self.same_rows:
            say(f"Bits: {why}.")
            self.missing.append("bits")
        for mine, other, which in ((self.old, self.new, "old"), (self.new, self.old, "new")):
            alone = sorted(set(self._dtypes(mine)) - set(self._dtypes(other)))
            if alone:
                say(f"{', '.join(alone)}: asked for by the {which} run only.")

    def _rules(self) -> list[Difference]:
        rules = ("contract", "require")
        return _differences(*({name: c.request.get(name) for name in rules} for c in (self.old, self.new)))


def _print(declaration: Mapping[str, str]) -> str | None:
    return declaration.get("fingerprint")


def _differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Difference]:
    a, b = dict(_flat(old, "", DEPTH)), dict(_flat(new, "", DEPTH))
    return [
        Difference(what=name, old=a.get(name, ""), new=b.get(name, ""))
        for name in dict.fromkeys((*a, *b))
        if a.get(name, "") != b.get(name, "")
    ]


def _flat(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """A nested record as pairs of a dotted name and a text."""
    if isinstance(value, Mapping) and depth:
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key), depth - 1)
    elif isinstance(value, list | tuple):
        yield name, ", ".join(map(str, value))
    elif value is not None:
        yield name, str(value)
