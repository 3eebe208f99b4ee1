"""How it is judged: cases, checks, runner, certificate, reports, command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .certification import Report, Request, certify
    from .given import check_row

__all__ = ["Report", "Request", "__version__", "certify", "check_row"]


def __getattr__(name: str) -> Any:
    """Load the public functions on first use: importing the package stays quick."""
    if name in ("Report", "Request", "certify"):
        from . import certification as module

        return getattr(module, name)
    if name == "check_row":
        from . import given

        return given.check_row
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
