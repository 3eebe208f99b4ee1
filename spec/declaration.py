"""A declaration: one Lean definition or theorem, or one extension, as data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Kind = Literal["definition", "theorem", "extension"]
Predicate = Callable[[Any, Any], npt.NDArray[np.bool_]]


@dataclass(frozen=True)
class Hypothesis:
    """A named condition, executable on many rows at once.

    ``holds(mask, scores)`` takes arrays of shape ``(..., n)`` (mask Boolean, True = allowed) and returns a Boolean
    array of shape ``(...)``: which rows meet the condition.
    """

    name: str
    statement: str
    holds: Predicate


@dataclass(frozen=True)
class Declaration:
    """What is stated, under which name, and what it means when it fails.

    - ``key``: the frozen file-name key; Lean names may move, keys do not.
    - ``name``: the full Lean name, or ``extension:...`` for what TorchLean does not state.
    - ``module``: the Lean module of the declaration; None for an extension.
    - ``statement``: plain mathematics; ``plain``: what a failure means, for a newcomer.
    - ``derivation``: for an extension, why it is true; empty for Lean declarations.

    Raises ValueError when an extension has no derivation, or a Lean declaration has no module.
    """

    key: str
    name: str
    kind: Kind
    module: str | None
    statement: str
    plain: str
    hypotheses: tuple[Hypothesis, ...] = ()
    derivation: str = ""

    def __post_init__(self) -> None:
        if self.kind == "extension" and not self.derivation:
            raise ValueError(f"The extension '{self.name}' has no derivation; say in a few lines why it is true.")
        if (self.module is None) != (self.kind == "extension"):
            raise ValueError(f"'{self.name}' is a {self.kind}; exactly the Lean declarations name a Lean module.")

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the name, the statement and the hypotheses: it changes when the claim changes."""
        claim = [self.name, self.statement, [[h.name, h.statement] for h in self.hypotheses]]
        return hashlib.sha256(json.dumps(claim, ensure_ascii=True).encode()).hexdigest()

    def holds(self, mask: Any, scores: Any) -> npt.NDArray[np.bool_]:
        """Which rows meet every hypothesis; ``mask`` and ``scores`` of shape ``(..., n)``, result ``(...)``."""
        mask = np.asarray(mask, dtype=bool)
        met = np.ones(mask.shape[:-1], dtype=bool)
        for hypothesis in self.hypotheses:
            met &= hypothesis.holds(mask, scores)
        return met
