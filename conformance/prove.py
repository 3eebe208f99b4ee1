"""``hardmask prove``: both legs and every negative control of the declarations.

sympy and mpmath are imported when a proof runs, not before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..spec.catalogue import find_all, proofs
from ..spec.declaration import Declaration
from ..spec.proofs.definitions_record import SHIPPED, Definitions
from ..spec.proofs.proof import Proof

if TYPE_CHECKING:
    from ..spec.proofs.numeric import NumericLeg
    from ..spec.proofs.symbolic import SymbolicLeg

MAX_N = 6
LIMIT_N = 10
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class ControlResult:
    """Whether each leg rejects one deliberate mistake."""

    name: str
    symbolic: bool
    numeric: bool


@dataclass(frozen=True)
class ProofResult:
    """What both legs and the controls found about one declaration; ``seconds`` is the time each of the three took,
    ``attention`` whether it is about heads instead of rows."""

    declaration: Declaration
    symbolic: SymbolicLeg
    numeric: NumericLeg
    controls: tuple[ControlResult, ...]
    seconds: tuple[float, float, float]
    attention: bool = False

    @property
    def suite_fault(self) -> str | None:
        """Why the suite itself is wrong, or None: the legs disagree, or a leg lets a mistake through."""
        if self.symbolic.passed != self.numeric.passed:
            held, failed = ("symbolic", "numeric") if self.symbolic.passed else ("numeric", "symbolic")
            return f"the {held} leg accepts '{self.declaration.name}' and the {failed} leg rejects it"
        for control in self.controls:
            for leg, rejected in (("symbolic", control.symbolic), ("numeric", control.numeric)):
                if not rejected:
                    return f"the {leg} leg accepts '{self.declaration.name}' with the mistake '{control.name}'"
        return None

    @property
    def verdict(self) -> Literal["pass", "fail", "error"]:
        """``pass`` when both legs hold, ``fail`` when both fail, ``error`` when the suite is at fault."""
        if self.suite_fault:
            return "error"
        return "pass" if self.symbolic.passed else "fail"

    @property
    def failures(self) -> tuple[str, ...]:
        """The first false claim of each failing leg, and the suite's own fault, as sentences."""
        return tuple(s for s in (self.symbolic.failure, self.numeric.failure, self.suite_fault) if s)


def prove(names: Iterable[str], *, max_n: int = MAX_N, progress: Progress | None = None) -> list[ProofResult]:
    """Prove the named declarations (all for no names): keys, Lean names, last components, or globs.

    ``max_n`` is the largest length whose masks are all enumerated. ``progress(done, total, name)`` is called before
    each declaration and once at the end.

    Raises ValueError for a name that nothing bears, and for a ``max_n`` outside 1 to 10.
    """
    if not 1 <= max_n <= LIMIT_N:
        raise ValueError(
            f"max_n is {max_n}; choose 1 to {LIMIT_N}. The masks double with every key, and the generic proof "
            "covers every length anyway."
        )
    chosen = find_all(names)
    results = []
    for done, declaration in enumerate(chosen):
        if progress:
            progress(done, len(chosen), declaration.name)
        results.append(prove_one(proofs()[declaration.key], max_n=max_n))
    if progress and chosen:
        progress(len(chosen), len(chosen), chosen[-1].name)
    return results


def prove_one(proof: Proof, *, max_n: int = MAX_N, definitions: Definitions = SHIPPED) -> ProofResult:
    """Run both legs of one proof, for the given definitions, and its negative controls."""
    from ..spec.proofs import numeric, symbolic

    clock = [time.perf_counter()]
    symbolic_leg = symbolic.prove_symbolic(proof, definitions, max_n=max_n)
    clock.append(time.perf_counter())
    numeric_leg = numeric.prove_numeric(proof, definitions)
    clock.append(time.perf_counter())
    controls = tuple(
        ControlResult(control.name, symbolic.rejects(proof, control), numeric.rejects(proof, control))
        for control in proof.controls
    )
    clock.append(time.perf_counter())
    seconds = (clock[1] - clock[0], clock[2] - clock[1], clock[3] - clock[2])
    return ProofResult(proof.declaration, symbolic_leg, numeric_leg, controls, seconds, proof.attention)


def exit_code(results: Iterable[ProofResult]) -> int:
    """3 when the suite is at fault, else 1 when a declaration is false of the shipped definitions, else 0."""
    verdicts = {result.verdict for result in results}
    return 3 if "error" in verdicts else 1 if "fail" in verdicts else 0
