"""The error of a target that cannot be judged."""

from __future__ import annotations


class TargetError(ValueError):
    """A target cannot be turned into subjects; the message is one sentence or two: what, why, and the mend."""
