"""Exact values: fast vectorised engines with rigorous enclosures, and a referee in arbitrary precision."""

from __future__ import annotations

from .audit import Audit, audit, audit_rows, draw
from .dd_engine import DoubleDoubleEngine
from .exact import Engine, Exact, ExactWeights
from .float64 import Float64Engine

__all__ = [
    "Audit",
    "DoubleDoubleEngine",
    "Engine",
    "Exact",
    "ExactWeights",
    "Float64Engine",
    "audit",
    "audit_rows",
    "draw",
    "engine_for",
]


def engine_for(dtype_name: str) -> Engine:
    """The fast engine whose error is far below one rounding of the format: double-double for float64.

    >>> engine_for("float64").name
    'double-double'
    """
    return DoubleDoubleEngine() if dtype_name == "float64" else Float64Engine()
