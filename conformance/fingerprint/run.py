"""Take the fingerprints of all subjects that a request names."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from ...adapters.attention import Attention
from ...adapters.attention_rows import rows_through
from ...adapters.registry import Anything, resolve_all, versions
from ...spec.formats import DTYPES
from ...spec.oracle.referee import engine_name
from .. import __version__
from ..environment import environment
from .attention import fingerprint_attention
from .consistency import consistency
from .record import SCHEMA, Disagreement, Fingerprint, PathRecord, Record, Skipped
from .rows import fingerprint_rows


def fingerprint(
    targets: Sequence[str],
    *,
    dtypes: Sequence[str] = DTYPES,
    specimens: bool = False,
    subjects: Sequence[Anything] | None = None,
    listen: Callable[[str], None] = lambda what: None,
) -> Record:
    """Probe each subject in each dtype, compare the paths of each group with each other, and return the record.

    ``subjects``: values to probe instead of the targets. ``listen`` hears what is probed next. The softmax inside an
    attention is probed on its own only where it is named without the attention. Ctrl-C ends the run early; the record
    then says that it is not complete.

    Raises ValueError (of which ``TargetError`` is one) for a target or a dtype that is not there.

    >>> record = fingerprint(["numpy.fill-inf"], dtypes=["float32"])
    >>> record.fingerprints[0].empty_row.forward
    'NaN'
    """
    started = time.time()
    for dtype in dtypes:
        if dtype not in DTYPES:
            raise ValueError(f"There is no dtype '{dtype}'. Choose from: {', '.join(DTYPES)}.")
    chosen = list(subjects) if subjects is not None else _alone(resolve_all(list(targets), specimens=specimens))
    found: list[Fingerprint] = []
    skipped: list[Skipped] = []
    paths: list[PathRecord] = []
    disagreements: list[Disagreement] = []
    complete = True
    try:
        for subject in chosen:
            for dtype in dtypes:
                if dtype not in subject.dtypes:
                    reason = subject.unsupported.get(dtype, "The subject does not offer this dtype.")
                    skipped.append(Skipped(subject=subject.id, dtype=dtype, reason=reason))
                    continue
                listen(f"{subject.id} {dtype}")
                if isinstance(subject, Attention):
                    found.append(fingerprint_attention(subject, dtype))
                else:
                    found.append(fingerprint_rows(subject, dtype))
        paths, disagreements = consistency([s for s in chosen if isinstance(s, Attention)], dtypes, listen=listen)
    except KeyboardInterrupt:
        complete = False
    return Record(
        schema=SCHEMA,
        hardmask=__version__,
        environment=environment(versions(chosen), engine_name()),
        dtypes=list(dtypes),
        complete=complete,
        fingerprints=found,
        skipped=skipped,
        paths=paths,
        disagreements=disagreements,
        seconds=round(time.time() - started, 3),
    )


def _alone(found: list[Anything]) -> list[Anything]:
    """Without the softmaxes inside those attentions that are there themselves."""
    inside = {rows_through(s).id for s in found if isinstance(s, Attention) and s.rows}
    return [s for s in found if s.id not in inside]
