"""The empty-row contracts: what a backend promises to do with a row that allows no key.

The softmax formula does not decide this case (its denominator is 0), so the answer is a declared policy. A uniform row,
or the softmax of the unmasked scores, is never a contract: it reads what the mask forbids.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["zero", "zero+valid", "nan", "reject", "fallback"]


@dataclass(frozen=True)
class Contract:
    """One declared policy for rows without an allowed key.

    ``weights``, ``derivatives`` and ``others`` say in words what the suite judges; ``lean`` tells whether it is the
    policy of TorchLean's ``hardMaskedSoftmaxVecSpec``, under which every theorem holds on the empty row too.
    """

    kind: Kind
    weights: str
    derivatives: str
    valid: str
    others: str
    lean: bool = False
    key: int | None = None

    @property
    def name(self) -> str:
        """The name used on the command line, ``fallback(0)`` for a fallback to key 0."""
        return f"fallback({self.key})" if self.kind == "fallback" else self.kind

    @property
    def zero(self) -> bool:
        """Whether the weights of an empty row must be exactly zero."""
        return self.kind in ("zero", "zero+valid")


_UNAFFECTED = "unaffected"

ZERO = Contract("zero", "exactly 0", "exactly 0", "not asked", _UNAFFECTED, lean=True)
ZERO_VALID = Contract(
    "zero+valid", "exactly 0", "exactly 0", "False for that row, True elsewhere", _UNAFFECTED, lean=True
)
NAN = Contract(
    "nan",
    "NaN in the whole row",
    "NaN or 0",
    "not asked",
    "other rows unaffected; NaN in shared gradients is permitted and named",
)
REJECT = Contract("reject", "the call raises", "not asked", "not asked", "sent in batches without empty rows")


def fallback(key: int) -> Contract:
    """The contract that an empty row puts all weight on one declared key.

    >>> fallback(0).name
    'fallback(0)'
    """
    if key < 0:
        raise ValueError(f"A fallback key is counted from 0; {key} is negative. Name the key that empty rows use.")
    return Contract("fallback", f"one-hot at key {key}", "exactly 0", "False or not offered", _UNAFFECTED, key=key)


CONTRACTS: dict[str, Contract] = {c.name: c for c in (ZERO, ZERO_VALID, NAN, REJECT, fallback(0))}


def contract(name: str) -> Contract:
    """Look a contract up by its name; ``fallback(i)`` takes any key ``i``.

    Raises ValueError naming the known contracts.

    >>> contract("fallback(2)").key
    2
    """
    if name in CONTRACTS:
        return CONTRACTS[name]
    if name == "fallback":
        return fallback(0)
    if name.startswith("fallback(") and name.endswith(")") and name[9:-1].isdigit():
        return fallback(int(name[9:-1]))
    known = ", ".join([*(c for c in CONTRACTS if not c.startswith("fallback")), "fallback(KEY)"])
    raise ValueError(f"There is no empty-row contract '{name}'. Choose one of: {known}.")
