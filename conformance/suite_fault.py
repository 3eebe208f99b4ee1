"""The exception for what is hardmask's own fault."""

from __future__ import annotations


class SuiteFault(Exception):
    """Two engines of hardmask contradict each other: hardmask is wrong, not the subject. Exit code 3."""
