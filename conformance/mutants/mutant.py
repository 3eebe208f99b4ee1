"""The records of the suite's own measure: softmaxes that are wrong on purpose, and correct ones that look unusual."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...adapters.subject import Subject

KINDS: dict[str, str] = {
    "A": "empty row not finite",
    "B": "empty row finite, not zero",
    "C": "empty row or padding poisons derivatives",
    "D": "finite sentinel instead of exclusion",
    "E": "blocked key reaches an allowed result",
    "F": "mask dropped, ignored or replaced",
    "G": "mask convention",
    "H": "causal alignment",
    "I": "tile edge or layout",
    "K": "derivative formula",
    "L": "normalisation or shift",
    "O": "depends on the rest of the batch",
    "P": "over-correction",
    "numeric": "accuracy",
}
"""Kinds of fault, by the letter under which a mutant names its own."""


@dataclass(frozen=True, eq=False)
class Mutant:
    """A masked softmax that is wrong on some input, which every run must catch.

    - ``name``: kebab-case and unique; the subject's id is ``mutant.NAME``.
    - ``kind``: a key of :data:`KINDS`. ``story``: one sentence that says what is wrong.
    - ``subject``: the implementation over NumPy arrays, with the dtypes in which the fault can be written.
    - ``survivors``: dtype -> why this run cannot catch it, beginning with what kind of reason it is ("equivalent: …",
      "below half an ulp for random rows: …"). A listed survivor that is caught is a fault of the list.

    Raises ValueError for an unknown kind, an id that is not the name's, and a survivor in a dtype that is not offered.

    >>> from hardmask.conformance.mutants import mutants
    >>> next(m for m in mutants() if m.name == "additive-1e4").numeric
    False
    """

    name: str
    kind: str
    story: str
    subject: Subject
    survivors: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _named("mutant", self.name, self.subject)
        if self.kind not in KINDS:
            raise ValueError(f"Mutant '{self.name}' has the kind '{self.kind}'; use one of: {', '.join(KINDS)}.")
        for dtype in self.survivors:
            if dtype not in self.subject.dtypes:
                raise ValueError(f"Mutant '{self.name}' survives in {dtype}, which its subject does not offer.")

    @property
    def numeric(self) -> bool:
        """Whether it is wrong by its accuracy alone, so that a wide rounding model might let it through."""
        return self.kind == "numeric"


@dataclass(frozen=True, eq=False)
class Variant:
    """A correct masked softmax, which no run may fail under the tier and the contract that its subject declares.

    ``name``: kebab-case and unique; the subject's id is ``variant.NAME``. ``story``: one sentence that says how it
    computes. Raises ValueError for an id that is not the name's.
    """

    name: str
    story: str
    subject: Subject

    def __post_init__(self) -> None:
        _named("variant", self.name, self.subject)


def _named(what: str, name: str, subject: Subject) -> None:
    if subject.id != f"{what}.{name}":
        raise ValueError(f"The subject of the {what} '{name}' has the id '{subject.id}'; call it '{what}.{name}'.")
