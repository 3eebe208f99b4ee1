"""Compare two certificates."""

from __future__ import annotations

from .. import __version__
from ..document import Certificate
from . import bits as of_bits
from . import errors
from .causes import Item, changes
from .flips import flipped, flips
from .pair import Pair
from .policies import policies
from .record import LEVELS, SCHEMA, Change, Comparison, Level, Side


class IncomparableError(ValueError):
    """Two certificates have nothing that could be compared; the message is a sentence."""


def compare(old: Certificate, new: Certificate) -> Comparison:
    """What changed from one certificate to another.

    Raises IncomparableError when one of them is incomplete, or they have no subject and dtype in common.
    """
    for certificate, which in ((old, "old"), (new, "new")):
        if not certificate.complete:
            raise IncomparableError(
                f"The {which} certificate is incomplete: its run was cut short, so that what is missing there says "
                "nothing. Run it to the end."
            )
    pair = Pair(old, new)
    if not pair.subjects:
        raise IncomparableError(
            f"The two certificates have no subject in common: the old one judges {_some(old)}, the new one "
            f"{_some(new)}."
        )
    if not pair.dtypes:
        raise IncomparableError("The two certificates have no dtype in common, so that there is nothing to compare.")
    items: list[Item] = []
    if pair.same_rules:
        items += flips(pair)
        items += policies(pair, flipped(items))
    items += errors.drifts(pair)
    items += errors.sweeps(pair)
    items += of_bits.bits(pair)
    compared = {
        "verdict": len(pair.findings[0].keys() & pair.findings[1].keys()) if pair.same_rules else 0,
        "distribution": len(errors.pairs(pair)),
        "bits": len(of_bits.pairs(pair)),
    }
    return Comparison(
        schema=SCHEMA,
        hardmask=__version__,
        old=_side(old),
        new=_side(new),
        identical=old.digest == new.digest,
        paired=pair.same_rows,
        suite=pair.suite,
        differences=pair.differences(),
        compared=compared,
        not_compared=pair.not_compared,
        missing=pair.missing,
        changes=changes(items),
    )


def regressions(comparison: Comparison, fail_on: Level) -> list[Change]:
    """The changes that count against the new certificate at a level, or at one that is more serious."""
    counted = LEVELS[: LEVELS.index(fail_on) + 1]
    return [change for change in comparison.changes if change.regression and change.level in counted]


def unanswered(comparison: Comparison, fail_on: Level) -> list[Level]:
    """The levels that were asked for and could not be compared."""
    counted = LEVELS[: LEVELS.index(fail_on) + 1]
    return [level for level in comparison.missing if level in counted]


def exit_code(comparison: Comparison, fail_on: Level) -> int:
    """1 for a regression; 2 where there is none to be seen because a level that was asked for was not comparable."""
    if regressions(comparison, fail_on):
        return 1
    return 2 if unanswered(comparison, fail_on) else 0


def _side(certificate: Certificate) -> Side:
    frameworks = certificate.environment.get("frameworks")
    effort = certificate.request.get("effort")
    targets = certificate.request.get("targets")
    return Side(
        digest=certificate.digest,
        hardmask=certificate.hardmask,
        targets=[str(t) for t in targets] if isinstance(targets, list) else [],
        effort=None if effort is None else str(effort),
        seed=certificate.seed,
        python=str(certificate.environment.get("python", "")),
        frameworks={str(k): str(v) for k, v in frameworks.items()} if isinstance(frameworks, dict) else {},
        subjects=len(certificate.subjects),
        findings=len(certificate.findings),
    )


def _some(certificate: Certificate) -> str:
    ids = [s.id for s in certificate.subjects]
    return ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "") if ids else "none"
