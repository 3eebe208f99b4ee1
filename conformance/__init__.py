"""How it is judged: cases, checks, runner, certificate, reports, command line."""

__version__ = "0.1.0"
