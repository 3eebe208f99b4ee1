"""A failure as a script that needs only the framework and NumPy: ready for a bug report."""

from .script import script

__all__ = ["script"]
