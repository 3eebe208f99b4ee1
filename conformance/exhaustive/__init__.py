"""Exhaustive sweeps: every row of two 16-bit scores, every mask, nothing left to chance.

A sweep looks the returned codes up in tables of rigorous thresholds (:mod:`hardmask.spec.rounding.thresholds`) and
gives the rows that the tables leave open to the ordinary check. So its verdict on a row is that of the ordinary check.
"""

from __future__ import annotations

from .enumeration import Enumeration, Sample, sample
from .kinds import KINDS, PARTS, Kind, Part
from .report import sweep_findings
from .run import PieceDone, Swept, run_sweeps

__all__ = [
    "KINDS",
    "PARTS",
    "Enumeration",
    "Kind",
    "Part",
    "PieceDone",
    "Sample",
    "Swept",
    "run_sweeps",
    "sample",
    "sweep_findings",
]
