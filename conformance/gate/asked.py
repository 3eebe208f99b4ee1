"""What to certify, from the command line and a configuration: the command line comes first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import configuration as configurations
from .configuration import DTYPES, Configuration
from .rule import Rule

if TYPE_CHECKING:
    from ..certification import Request
    from .known import Gate


@dataclass(frozen=True)
class Asked:
    """The values of a request, and how they relate to the configuration; ``values`` are keywords of ``Request``.

    ``restricted``, ``partial``: see :class:`~hardmask.conformance.gate.known.Gate`.
    """

    values: dict[str, Any]
    configuration: Configuration | None = None
    rules: tuple[Rule, ...] = ()
    restricted: bool = False
    partial: bool = False

    @property
    def gate(self) -> Gate:
        """The deviations to hold the run against."""
        from .known import Gate

        return Gate(self.rules, self.restricted, self.partial)

    def request(self) -> Request:
        """The request, with subjects in workers of their own where the system has them, as on the command line.

        Raises ValueError, with a sentence.
        """
        from ...adapters.remote import POSSIBLE
        from ..certification import Request

        return Request(**self.values, in_process=not POSSIBLE)

    def checked(self) -> None:
        """Have the values of the file checked. Raises ConfigurationError."""
        if self.configuration is not None:
            from ..certification import Request

            self.configuration.explained(Request)


def asked(
    targets: tuple[str, ...] = (),
    *,
    file: str | None = None,
    search: bool = True,
    contract: str | None = None,
    require: tuple[str, ...] = (),
    specimens: bool = False,
    dtypes: tuple[str, ...] = (),
    effort: str | None = None,
    rounds: int | None = None,
    seed: int | None = None,
    start: str | Path = ".",
    narrowed: bool = False,
) -> Asked:
    """The request of a command line over the configuration in ``file``, or in the nearest one from ``start``.

    What the command line leaves open the file decides, and what both leave open has its usual value. ``narrowed``: the
    command line asks for less than the file in yet another way. Raises ConfigurationError.
    """
    config = configurations.read(file) if file is not None else configurations.found(start) if search else None
    own = config or Configuration(Path())
    said = {
        "contract": contract, "require": tuple(require), "specimens": specimens, "dtypes": tuple(dict.fromkeys(dtypes)),
        "effort": effort, "rounds": rounds, "seed": seed,
    }  # fmt: skip
    # A value of 0 is one: only what was not given at all is left to the file.
    given = {key: value for key, value in said.items() if value not in (None, (), False) or (key, value) == ("seed", 0)}
    chosen = {key: given.get(key, getattr(own, key)) for key in said}
    partial = any(value != _usual(key, getattr(own, key)) for key, value in given.items())
    chosen["dtypes"] = chosen["dtypes"] or DTYPES
    chosen["seed"] = chosen["seed"] or 0
    chosen["effort"] = chosen["effort"] or "default"
    return Asked(
        {"targets": targets or own.targets, **chosen},
        config,
        own.rules,
        restricted=bool(targets),
        partial=partial or narrowed,
    )


def _usual(key: str, value: Any) -> Any:
    """The value in a file, or what a file means that has none."""
    if key == "dtypes":
        return value or DTYPES
    return {"effort": value or "default", "seed": value or 0}.get(key, value)
