"""What is told of a finding: who is asked, by what rule, in whose arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...adapters.recipe import Recipe, Which
from ...spec.batch import Array, Floats
from ...spec.contracts import Contract
from ..cases import Case
from ..document import Certificate
from ..finding import Finding
from ..runner import Policy
from ..verification.asked import Asked
from ..verification.rebuilt import planned
from .literals import array, booleans, exactly

Body = tuple[list[str], tuple[Which, ...]]
"""The lines of a script that judge, and the methods that they call."""


@dataclass(frozen=True, eq=False)
class Told:
    """A finding with all that its script is made from."""

    certificate: Certificate
    finding: Finding
    recipe: Recipe
    rule: Contract
    policy: Policy
    asked: Asked

    def given(self, name: str, values: Floats | Array, dtype: str = "") -> str:
        """The line that gives an array a name, in the dtype of the finding."""
        with np.errstate(all="ignore"):
            flat = np.asarray(values).astype(np.float64).reshape(-1).tolist()
        return f"{name} = {array(self.recipe, flat, np.shape(values), dtype or self.finding.dtype)}"

    def allowed(self, mask: Array, name: str = "mask") -> str:
        """The line that gives a mask a name."""
        source = booleans(self.recipe, np.asarray(mask).reshape(-1).tolist(), np.shape(mask))
        return f"{name} = {source}  # True = allowed"

    def exactly(self, expression: str) -> str:
        """The source that turns an array of the library into float64 of NumPy."""
        return exactly(self.recipe, expression)

    def case(self, batch: str) -> Case | None:
        """The batch of that name, as the seed gives it."""
        return planned(self.asked, self.certificate.seed, [batch]).get(batch)

    @property
    def cases(self) -> Sequence[Case]:
        """The batches that the seed gives."""
        return list(planned(self.asked, self.certificate.seed, []).values())

    def refused(self, why: str, instead: str = "") -> ValueError:
        """The error that says why there is no script, and what to do instead."""
        id = self.finding.id
        return ValueError(f"Finding {id} {why} {instead or f'Run `hardmask replay CERTIFICATE {id}` instead.'}")
