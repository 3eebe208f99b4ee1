"""What is judged: one small module per framework, plus the contract that a user's own adapter meets."""

from .errors import TargetError
from .registry import Adapter, Available, available, resolve, versions
from .subject import Answer, Subject

__all__ = ["Adapter", "Answer", "Available", "Subject", "TargetError", "available", "resolve", "versions"]
