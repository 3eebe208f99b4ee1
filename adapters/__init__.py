"""What is judged: one small module per framework, plus the contract that a user's own adapter meets."""

from .subject import Answer, Subject

__all__ = ["Answer", "Subject"]
