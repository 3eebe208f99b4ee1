"""One recorded deviation: which failures it lets pass, why, and until when."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase

from ..finding import Finding

UNJUDGED = ("unsupported", "hypothesis-unmet")
FAILED = ("fail", "error")


@dataclass(frozen=True)
class Rule:
    """Lets the failures of one subject on one declaration pass, with a reason, until the end of a day.

    ``subject`` and ``declaration`` are names or globs, in which only ``*`` and ``?`` are special; a declaration may go
    by its full Lean name or by the last part of it. An empty ``dtype`` or ``family`` means every one.

    >>> rule = Rule("numpy.*", "*empty-row", "float32", "", "known", "", date(2030, 1, 31))
    >>> rule.names("numpy.fill-inf"), rule.names("torch.fill-inf")
    (True, False)
    >>> rule.expired(date(2030, 1, 31)), rule.expired(date(2030, 2, 1))
    (False, True)
    """

    subject: str
    declaration: str
    dtype: str
    family: str
    reason: str
    link: str
    expires: date

    def names(self, subject: str) -> bool:
        """Whether it speaks of a subject."""
        return _like(subject, self.subject)

    def matches(self, finding: Finding) -> bool:
        """Whether it speaks of a finding, whatever the verdict."""
        name = finding.declaration
        short = name if name.startswith("extension:") else name.rpartition(".")[2]
        return (
            self.names(finding.subject)
            and (_like(name, self.declaration) or _like(short, self.declaration))
            and self.dtype in ("", finding.dtype)
            and (not self.family or _like(finding.family, self.family))
        )

    def expired(self, today: date) -> bool:
        """Whether its last day is over."""
        return today > self.expires

    @property
    def what(self) -> str:
        """What it is about, in words."""
        dtype = f" in {self.dtype}" if self.dtype else ""
        return f"{self.subject} on {self.declaration}{dtype}" + (f" ({self.family})" if self.family else "")


def _like(name: str, pattern: str) -> bool:
    # Names have brackets, torch.sdpa[math], which are not special here.
    return fnmatchcase(name, pattern.replace("[", "[[]"))
