"""What is judged: one small module per framework, plus the contract that a user's own adapter meets."""

from .attention import Attention, AttentionAnswer
from .errors import TargetError
from .registry import Adapter, Available, available, resolve, resolve_all, versions
from .subject import Answer, Subject

__all__ = [
    "Adapter",
    "Answer",
    "Attention",
    "AttentionAnswer",
    "Available",
    "Subject",
    "TargetError",
    "available",
    "resolve",
    "resolve_all",
    "versions",
]
