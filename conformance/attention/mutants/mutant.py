"""The records of the self-test of attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ....adapters.attention import Attention
from ...mutants.mutant import KINDS as ROW_KINDS

KINDS: dict[str, str] = {**ROW_KINDS, "J": "forward mode", "M": "heads, groups or broadcasting"}
"""Kinds of fault, by the letter under which a mutant names its own: those of masked softmax, and two more."""


@dataclass(frozen=True, eq=False)
class AttentionMutant:
    """A masked attention that is wrong on some input, which every run must catch.

    - ``name``: kebab-case and unique; the subject's id is ``mutant.attention.NAME``.
    - ``kind``: a key of :data:`KINDS`. ``story``: one sentence that says what is wrong.
    - ``subject``: the implementation over NumPy arrays, with the dtypes in which the fault can be written.
    - ``survivors``: dtype -> why it cannot be caught there.

    Raises ValueError for an unknown kind, an id that is not the name's, and a survivor in a dtype that is not offered.
    """

    name: str
    kind: str
    story: str
    subject: Attention
    survivors: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _named("mutant", self.name, self.subject)
        if self.kind not in KINDS:
            raise ValueError(f"Mutant '{self.name}' has the kind '{self.kind}'; use one of: {', '.join(KINDS)}.")
        for dtype in self.survivors:
            if dtype not in self.subject.dtypes:
                raise ValueError(f"Mutant '{self.name}' survives in {dtype}, which its subject does not offer.")

    @property
    def caught(self) -> tuple[str, ...]:
        """The dtypes in which it must be caught."""
        return tuple(dtype for dtype in self.subject.dtypes if dtype not in self.survivors)

    @property
    def numeric(self) -> bool:
        """Whether it is wrong by its accuracy alone, so that a wide rounding model might let it through."""
        return self.kind == "numeric"


@dataclass(frozen=True, eq=False)
class AttentionVariant:
    """A correct masked attention, which no run may fail under the tier and the contract that its subject declares.

    ``name``: kebab-case and unique; the subject's id is ``variant.attention.NAME``. ``story``: one sentence that says
    how it computes. Raises ValueError for an id that is not the name's.
    """

    name: str
    story: str
    subject: Attention

    def __post_init__(self) -> None:
        _named("variant", self.name, self.subject)


def _named(what: str, name: str, subject: Attention) -> None:
    expected = f"{what}.attention.{name}"
    if subject.id != expected:
        raise ValueError(f"The subject of the {what} '{name}' has the id '{subject.id}'; call it '{expected}'.")
