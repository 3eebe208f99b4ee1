"""A certificate as one HTML page."""

from .html import html

__all__ = ["html"]
