"""A certificate with what it comes to, as all reports take it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ..conclusion import conclusion
from ..document import Certificate
from ..verification.asked import asked_of


@dataclass(frozen=True)
class Outcome:
    """A certificate, the exit code that it calls for, the sentence behind that, and the ``name`` of its file."""

    certificate: Certificate
    exit_code: int
    reason: str
    name: str = "certificate.json"

    @property
    def certified(self) -> bool:
        """Whether every subject keeps what it declares, recorded deviations aside."""
        return self.exit_code == 0

    def replay(self, finding: str) -> str:
        """The command that runs the case of a finding again."""
        return f"hardmask replay {shlex.quote(self.name)} {finding}"


def outcome_of(certificate: Certificate, name: str = "certificate.json") -> Outcome:
    """What a certificate that was read from a file comes to: the rule of a run, applied to what the file holds.

    Raises ValueError, with a sentence, where the request or the findings in the file are none that a run can have had.
    """
    asked = asked_of(certificate)
    try:
        if asked is not None:
            code, reason = conclusion(asked[1], certificate, "The run was cut short")
            return Outcome(certificate, code, reason, name)
    except StopIteration:  # a finding names a subject that the certificate does not list
        pass
    raise ValueError(
        "It cannot be told what this certificate came to: its request and its findings do not go together. "
        "'hardmask verify' says more."
    )
