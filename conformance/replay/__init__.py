"""One case of a certificate again: the same row or problem, put to the same check."""

from .again import Again, replay
from .choice import chosen, failing

__all__ = ["Again", "chosen", "failing", "replay"]
