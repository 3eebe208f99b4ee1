"""Enumerate one piece of a sweep: call the subject on block after block and count what came back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ...adapters.subject import Subject
from ...spec.batch import Array, Bools
from ...spec.contracts import Contract, contract
from ...spec.rounding.thresholds import Codes
from ..calls import Fault, Raw, call_raw
from .counts import SHOWN, STOP, Counts, Row
from .enumeration import SHORT
from .filters import PairFilter, contract_kept, infinity_code, not_one_hot, one_code
from .kinds import Kind, finite_scores, partners, patterns
from .ordinary import Open, violating

FLUSH = 1 << 16
"""Open rows that are decided together."""


def enumerate_piece(
    subject: Subject, kind: Kind, dtype: str, firsts: npt.NDArray[np.int64], contract_name: str
) -> Counts:
    """The counts of the rows whose first score is one of ``firsts``, indices into the finite scores.

    An answer that cannot be accepted ends the piece, and so do :data:`STOP` violations.
    """
    piece = _Piece(subject, kind, dtype, contract(contract_name))
    piece.run(firsts)
    return piece.counts


@dataclass(frozen=True, eq=False)
class Block:
    """Rows for one call, and how many first scores they belong to; rows from ``used`` on only fill the shape."""

    scores: Array
    mask: Bools
    firsts: int
    used: int
    first: float = 0.0

    @cached_property
    def allowed(self) -> npt.NDArray[np.int64]:
        """How many keys each row allows, shape ``(used,)``."""
        return self.mask[: self.used].sum(axis=1)


class _Piece:
    def __init__(self, subject: Subject, kind: Kind, dtype: str, declared: Contract) -> None:
        self.subject, self.kind, self.dtype, self.contract = subject, kind, dtype, declared
        self.rounding = subject.rounding_for(kind.method, dtype)
        self.counts = Counts()
        self.one, self.infinity = one_code(dtype), infinity_code(dtype)
        self._open: list[Open] = []
        self._pairs: PairFilter | None = None
        if kind.mask is not None and all(kind.mask):
            own = None if kind.cotangent is None else kind.cotangent.index(1.0)
            self._pairs = PairFilter(self.rounding, partners(kind, dtype).astype(np.float64), own)
        elif kind.mask is not None and any(kind.mask):
            self.counts.misrounded, self.counts.distance = [0, 0], [0, 0]
        # Whether the contract speaks of the flag; a fallback may leave it out.
        self.flagged = declared.kind in ("zero+valid", "fallback") and kind.cotangent is None

    def run(self, firsts: npt.NDArray[np.int64]) -> None:
        scores = finite_scores(self.dtype)[firsts]
        blocks = _pair_blocks(self.kind, self.dtype, scores) if self.kind.keys == 2 else self._short_blocks(scores)
        if self.kind.part == "empty" and self.contract.kind == "reject":
            self._must_raise(next(blocks))
            return
        for block in blocks:
            self._block(block)
            if self.counts.over:
                break
        self._decide()
        if self._pairs is not None:
            self.counts.misrounded = [r.count for r in self._pairs.rounding]
            self.counts.distance = [r.distance for r in self._pairs.rounding]

    def _short_blocks(self, scores: Array) -> Iterator[Block]:
        rows, masks, places = patterns(self.kind.keys, self.dtype)
        if self.contract.kind == "reject":
            some = np.any(masks, axis=1)
            rows, masks, places = rows[some], masks[some], places[some]
        size = SHORT[self.kind.keys]
        for k in range(0, len(scores), size):
            part = scores[k : k + size]
            running = np.resize(part, size)  # repeats: a call of another shape would be compiled anew
            block = np.repeat(rows[None], size, axis=0)
            block[:, np.arange(len(rows)), places] = running[:, None]
            yield Block(
                block.reshape(-1, self.kind.keys),
                np.repeat(masks[None], size, axis=0).reshape(-1, self.kind.keys),
                len(part),
                len(part) * len(rows),
            )

    def _must_raise(self, block: Block) -> None:
        answer = call_raw(self.subject, "forward", block.scores, block.mask)
        self.counts = Counts(firsts=1, rows=block.used, outputs=2 * block.used)
        self.counts.rejected = isinstance(answer, Fault) and answer.raised
        self.counts.permitted = block.used if self.counts.rejected else 0
        if isinstance(answer, Fault) and not answer.raised:
            self.counts.errors.append(answer.sentence)
        elif isinstance(answer, Raw):
            self.counts.violations = block.used
            self._keep(block, answer, np.arange(SHOWN))

    def _block(self, block: Block) -> None:
        arrays = [block.scores, block.mask]
        if self.kind.cotangent is not None:
            vector = np.broadcast_to(np.array(self.kind.cotangent, block.scores.dtype), block.scores.shape)
            arrays.append(vector)
        answer = call_raw(self.subject, self.kind.method, *arrays)
        if isinstance(answer, Fault):
            self.counts.errors.append(answer.sentence)
            return
        counts, used = self.counts, block.used
        counts.firsts += block.firsts
        counts.rows += used
        counts.outputs += used * self.kind.keys
        codes = np.ascontiguousarray(answer.array[:used]).view(np.uint16)
        if self._pairs is not None:
            rows = self._pairs.open_rows(block.first, codes)
        elif self.kind.mask is not None and any(self.kind.mask):
            rows = self._one_hot(codes)
        elif self.kind.mask is not None:
            rows = self._empty(codes)
        else:
            rows = self._mixed(block, codes)
        wrong = self._flags(block, answer)
        if len(wrong):
            counts.violations += len(wrong)
            self._keep(block, answer, wrong)
            rows = np.setdiff1d(rows, wrong)
        if len(rows):
            self._open.append(Open(block.scores[rows], block.mask[rows], answer.array[rows]))
            if sum(len(o.scores) for o in self._open) >= FLUSH:
                self._decide()

    def _one_hot(self, codes: Codes) -> npt.NDArray[np.int64]:
        mask = np.array(self.kind.mask)
        # Both outputs of a row as one number: nearly all rows are settled by one comparison.
        exact = np.where(mask, self.one, 0).astype(np.uint16).view(np.uint32)
        rows = np.flatnonzero(codes.view(np.uint32)[:, 0] != exact)
        wrong = not_one_hot(codes[rows], mask, self.one)
        counts = self.counts
        assert counts.misrounded is not None
        assert counts.distance is not None
        for key in (0, 1):
            bad = codes[rows[wrong[:, key]], key].astype(np.int64)
            counts.misrounded[key] += len(bad)
            bad = bad[(bad & 0x7FFF) < self.infinity]
            if len(bad):
                ordered = np.where(bad >= 0x8000, 0x8000 - bad, bad)
                apart = np.abs(ordered - (self.one if mask[key] else 0))
                counts.distance[key] = max(counts.distance[key], int(apart.max()))
        return rows[np.any(wrong, axis=1)]

    def _empty(self, codes: Codes) -> npt.NDArray[np.int64]:
        """Rows that do not keep the contract, of rows that allow nothing."""
        broken = np.flatnonzero(~contract_kept(self.contract, codes, self.dtype))
        if self.contract.kind in ("nan", "fallback"):
            self.counts.permitted += len(codes) - len(broken)
        return broken

    def _mixed(self, block: Block, codes: Codes) -> npt.NDArray[np.int64]:
        """Rows of any mask: the contract where it allows nothing, one-hot where it allows one key."""
        empty, single = np.flatnonzero(block.allowed == 0), np.flatnonzero(block.allowed == 1)
        wrong = not_one_hot(codes[single], block.mask[: block.used][single], self.one)
        still = [empty[self._empty(codes[empty])], single[np.any(wrong, axis=1)], np.flatnonzero(block.allowed > 1)]
        return np.sort(np.concatenate(still))

    def _flags(self, block: Block, answer: Raw) -> npt.NDArray[np.int64]:
        """Rows whose ``valid`` flag is wrong, or missing where the contract asks for it."""
        if not self.flagged or (answer.valid is None and self.contract.kind == "fallback"):
            return np.empty(0, np.int64)
        if answer.valid is None:
            return np.arange(block.used)
        return np.flatnonzero(answer.valid[: block.used] != self._expected_flags(block))

    def _expected_flags(self, block: Block) -> Bools:
        if self.kind.mask is None:
            return block.allowed > 0
        return np.full(block.used, any(self.kind.mask))

    def _keep(self, block: Block, answer: Raw, rows: npt.NDArray[np.int64]) -> None:
        valid = answer.valid
        for r in rows[: SHOWN - len(self.counts.first)].tolist():
            flag = None if valid is None else bool(valid[r])
            self.counts.first.append(_row(block.scores[r], block.mask[r], answer.array[r], flag))

    def _decide(self) -> None:
        """Let the ordinary check judge the rows that are open."""
        if not self._open:
            return
        rows, self._open = Open.joined(self._open), []
        bad = np.flatnonzero(violating(rows, self.dtype, self.rounding, self.contract, self.kind.cotangent))
        counts = self.counts
        counts.judged += len(rows.scores)
        counts.violations += len(bad)
        for r in bad[: SHOWN - len(counts.first)].tolist():
            # Flags were looked at before.
            flag = bool(rows.mask[r].any()) if self.contract.kind == "zero+valid" and self.flagged else None
            counts.first.append(_row(rows.scores[r], rows.mask[r], rows.returned[r], flag))
        counts.stopped = counts.stopped or counts.violations >= STOP


def _row(scores: Array, mask: Bools, returned: Array, valid: bool | None) -> Row:
    return Row(scores.view(np.uint16).tolist(), mask.tolist(), returned.view(np.uint16).tolist(), valid)


def _pair_blocks(kind: Kind, dtype: str, firsts: Array) -> Iterator[Block]:
    """One block for each first score; it stands at the allowed key, at key 0 where both or none are allowed."""
    assert kind.mask is not None
    place = 1 if kind.mask == (False, True) else 0
    second = partners(kind, dtype)
    scores = np.empty((len(second), 2), second.dtype)
    scores[:, 1 - place] = second
    mask = np.broadcast_to(np.array(kind.mask), scores.shape).copy()
    for first in firsts:
        scores[:, place] = first
        yield Block(scores, mask, 1, len(scores), float(first))
