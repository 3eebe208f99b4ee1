"""Run the sweeps: piece after piece, on several processes where asked for, with a checkpoint."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ...adapters.remote import InProcess, Source
from ...adapters.subject import Subject
from ..runner import Policy
from ..workers import Workers
from .checkpoint import CheckpointError, Progress, identity_of, load, save
from .counts import Counts
from .enumeration import Enumeration, Sample, sample
from .kinds import BY_KEY, Kind
from .piece import enumerate_piece

EVERY = 5.0
"""Seconds between two checkpoints."""

NOTHING = InProcess(())


@dataclass(frozen=True)
class Sweep:
    """One kind of rows for one subject and dtype."""

    subject: Subject
    kind: Kind
    dtype: str

    @property
    def name(self) -> str:
        """The key under which a checkpoint stores it."""
        return f"{self.subject.id} {self.dtype} {self.kind.key}"


@dataclass(frozen=True)
class PieceDone:
    """A piece of a sweep was enumerated. ``rows`` of ``total`` are done in the whole run, ``resumed`` before it."""

    sweep: str
    rows: int
    total: int
    resumed: int


Swept = dict[str, Progress]
"""Keyed by the name of the sweep."""


def sweeps_of(subjects: Sequence[Subject], enumeration: Enumeration) -> list[Sweep]:
    """The sweeps of a run, in order: those that each subject's dtypes and methods allow."""
    return [
        Sweep(subject, kind, dtype)
        for subject in subjects
        for dtype in enumeration.dtypes
        if dtype in subject.dtypes
        for kind in enumeration.kinds
        if kind.method in subject.methods
    ]


def run_sweeps(
    subjects: Sequence[Subject],
    enumeration: Enumeration,
    policy: Policy,
    seed: int,
    results: Swept,
    *,
    source: Source = NOTHING,
    given: bool = False,
) -> Generator[PieceDone, None, None]:
    """Enumerate every sweep and put what came out into ``results``, piece by piece in the order of enumeration.

    With ``given`` the subjects are values that no name resolves to, and are called in this process.
    Raises CheckpointError for a checkpoint that cannot be continued or written.
    """
    identity = identity_of(enumeration, source.targets, subjects, policy.contract, seed)
    path = None if enumeration.checkpoint is None else Path(enumeration.checkpoint).absolute()
    if path is not None:
        results.update(load(path, identity))
        _save(path, identity, results)  # a file that cannot be written is found out before the work
    samples = {dtype: sample(dtype, enumeration.fraction, seed) for dtype in enumeration.dtypes}
    todo = sweeps_of(subjects, enumeration)
    total = sum(_rows(s, samples[s.dtype]) for s in todo)
    resumed = done = sum(p.counts.rows for p in results.values())
    saved = time.monotonic()
    executor = nullcontext() if given or enumeration.jobs == 1 else Workers(enumeration.jobs, single=True)
    try:
        with executor as pool:
            for sweep in todo:
                progress = results.setdefault(sweep.name, Progress())
                pieces = samples[sweep.dtype].pieces()
                since = time.monotonic()
                if progress.pieces and _over(sweep, policy, progress.counts):
                    pieces = pieces[: progress.pieces]
                for counts in _counted(sweep, pieces[progress.pieces :], policy, pool, enumeration.jobs, source):
                    progress.counts.add(counts)
                    progress.pieces += 1
                    progress.seconds += time.monotonic() - since
                    since = time.monotonic()
                    done += counts.rows
                    if path is not None and time.monotonic() - saved > EVERY:
                        _save(path, identity, results)
                        saved = time.monotonic()
                    yield PieceDone(sweep.name, done, total, resumed)
                    if _over(sweep, policy, progress.counts):
                        break
                total -= _rows(sweep, samples[sweep.dtype]) - progress.counts.rows
    finally:
        if path is not None:
            _save(path, identity, results)


def _over(sweep: Sweep, policy: Policy, counts: Counts) -> bool:
    """Whether nothing more is to be enumerated: a call that has to raise has to do so once."""
    once = sweep.kind.part == "empty" and policy.contract_of(sweep.subject) == "reject"
    return counts.over or once


def _rows(sweep: Sweep, taken: Sample) -> int:
    return len(taken.indices) * sweep.kind.rows(sweep.dtype)


def _counted(
    sweep: Sweep,
    pieces: Sequence[npt.NDArray[np.int64]],
    policy: Policy,
    pool: Executor | None,
    jobs: int,
    source: Source,
) -> Iterator[Counts]:
    """The counts of each piece, in order."""
    contract = policy.contract_of(sweep.subject)
    if pool is None:
        for piece in pieces:
            yield enumerate_piece(sweep.subject, sweep.kind, sweep.dtype, piece, contract)
        return
    # A few pieces ahead, so that an interruption or a failing subject throws little away.
    waiting: deque[Future[Counts]] = deque()
    following = iter(pieces)
    where = source, sweep.subject.id, sweep.kind.key, sweep.dtype
    try:
        while True:
            for piece in islice(following, 2 * jobs - len(waiting)):
                waiting.append(pool.submit(piece_by_name, *where, piece, contract))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def piece_by_name(
    source: Source,
    subject: str,
    kind: str,
    dtype: str,
    firsts: npt.NDArray[np.int64],
    contract: str,
) -> Counts:
    """:func:`enumerate_piece` for another process: subjects do not travel, their names do."""
    return enumerate_piece(_resolved(source)[subject], BY_KEY[kind], dtype, firsts, contract)


@cache
def _resolved(source: Source) -> dict[str, Subject]:
    return {s.id: s for s in source.subjects if isinstance(s, Subject)}


def _save(path: Path, identity: dict[str, object], results: Swept) -> None:
    try:
        save(path, identity, results)
    except OSError as problem:
        raise CheckpointError(f"The checkpoint cannot be written to '{path}': {problem.strerror}.") from None
