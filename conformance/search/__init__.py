"""Directed search: rows that are bred to use as much of an error budget as a subject can be brought to use."""

from .climb import GENERATIONS, OBJECTIVES, Climb, climb
from .schedule import searches

__all__ = ["GENERATIONS", "OBJECTIVES", "Climb", "climb", "searches"]
