"""``hardmask selftest``: the suite measured on itself, by wrong softmaxes and correct ones."""

from .result import SelfTest
from .run import selftest

__all__ = ["SelfTest", "selftest"]
