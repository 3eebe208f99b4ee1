"""Reports of a certificate for people and for services: HTML, JUnit, Markdown, a badge."""

from .badge import badge
from .junit import junit
from .markdown import markdown
from .outcome import Outcome, outcome_of

__all__ = ["Outcome", "badge", "junit", "markdown", "outcome_of"]
