"""Audit an upgrade: what changed between two certificates, grouped by cause, most serious first."""

from __future__ import annotations

from .compare import IncomparableError, compare, exit_code
from .record import Change, Comparison

__all__ = ["Change", "Comparison", "IncomparableError", "compare", "exit_code"]
