"""What a run was asked for, as its certificate has it: read strictly, since everything else is judged by it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ...spec.formats import DTYPES
from ..certification import Request
from ..document import Certificate
from ..exhaustive import Enumeration

Texts = list[str]


class Sweep(msgspec.Struct, frozen=True):
    """An exhaustive sweep that was asked for."""

    dtypes: Texts
    fraction: float
    parts: Texts


class Asked(msgspec.Struct, frozen=True):
    """The request of a certificate; what later versions add to it is not read."""

    targets: Texts
    dtypes: Texts
    effort: str | None
    rounds: Annotated[int, msgspec.Meta(ge=1)] | None
    contract: str | None
    require: Texts
    exhaustive: Sweep | None
    specimens: bool = False

    @property
    def judged(self) -> list[str]:
        """The dtypes, each once, in their order."""
        return list(dict.fromkeys(self.dtypes))


def asked_of(certificate: Certificate) -> tuple[Asked, Request] | None:
    """The request as it stands, and as a run would have had it; None where no run can have had it."""
    try:
        asked = msgspec.convert(certificate.request, Asked)
        if not set(asked.dtypes) <= set(DTYPES):
            return None
        sweep, enumeration = asked.exhaustive, None
        if sweep is not None:
            alone = asked.effort is None
            enumeration = Enumeration(tuple(sweep.dtypes), sweep.fraction, tuple(sweep.parts), alone=alone)  # type: ignore[arg-type]
        elif asked.effort is None:
            return None
        request = Request(
            targets=tuple(asked.targets),
            contract=asked.contract,
            require=tuple(asked.require),
            specimens=asked.specimens,
            dtypes=tuple(asked.dtypes),
            effort=asked.effort or "default",
            seed=certificate.seed,
            rounds=asked.rounds,
            enumeration=enumeration,
        )
    except (msgspec.ValidationError, ValueError):
        return None
    return asked, request
