"""What each entry point does where the formula does not decide, read from its answers; and paths that disagree."""

from .record import Fingerprint, Isolation, Record
from .run import fingerprint

__all__ = ["Fingerprint", "Isolation", "Record", "fingerprint"]
