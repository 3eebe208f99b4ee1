"""Rows whose weights reveal the exponentials that went into them.

A row holds ``zeros`` scores of 0, the maximum, then ``probes`` arguments, then perhaps a *ballast*, a score of its own
that makes its sum unlike that of other rows, then blocked keys: 16 keys in all, so that every row meets the same code
of a kernel. In arrays of arguments and of what is read about them the probes come first:
shape ``(probes, rows)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...adapters.subject import Subject
from ...spec.batch import Array, Bools, Floats
from ..calls import Fault, call

KEYS = 16

_FIRST = ((1, 15), (2, 11), (3, 8), (5, 6), (1, 6), (7, 4), (3, 2), (6, 5))


class UnusableError(Exception):
    """A subject's answer tells nothing about its exponential; the message is a sentence."""


@dataclass(frozen=True)
class Layout:
    """How many keys of a row hold the maximum, and how many hold an argument.

    Different layouts of one set of arguments divide the same numerators by different sums, whose roundings differ. With
    a ballast ``zeros + probes`` is at most 15.
    """

    zeros: int
    probes: int

    def rows(
        self, arguments: Array, ballast: np.random.Generator | None = None, offset: float = 0.0, step: float = 0.0
    ) -> tuple[Array, Bools]:
        """Scores and mask, shape ``(rows, 16)``; room that is left over is filled with the last argument.

        The number of rows is one of a few (:func:`round_up`), so that subjects which compile do so rarely.

        ``ballast`` draws the ballast, in ``[-4, 0]``. ``offset`` is added to all scores; the caller sees to it that
        the sums are exact, for which the ballast is made a multiple of ``step``.

        >>> Layout(1, 2).rows(np.array([-1.0, -2.0, -3.0, -4.0, -5.0]))[0][:, :3].tolist()
        [[0.0, -1.0, -5.0], [0.0, -2.0, -5.0], [0.0, -3.0, -5.0], [0.0, -4.0, -5.0]]
        """
        count = round_up(-(-len(arguments) // self.probes))
        padded = np.concatenate([arguments, np.repeat(arguments[-1:], count * self.probes - len(arguments))])
        scores = np.zeros((KEYS, count), arguments.dtype)
        scores[self.zeros : self.zeros + self.probes] = padded.reshape(self.probes, count)
        mask = np.zeros((count, KEYS), bool)
        allowed = self.zeros + self.probes
        if ballast is not None:
            score = -4.0 * ballast.random(count)
            scores[allowed] = np.round(score / step) * step if step else score
            allowed += 1
        mask[:, :allowed] = True
        if offset:
            scores = (scores.astype(np.float64) + offset).astype(arguments.dtype)
        return np.ascontiguousarray(scores.T), mask


def round_up(rows: int) -> int:
    """The next number of the form 4, 5, 6 or 7 times a power of two.

    >>> [round_up(n) for n in (1, 9, 65504)]
    [4, 10, 65536]
    """
    power = 1 << max(rows.bit_length() - 3, 0)
    return max(4, -(-rows // power)) * power


def layout(stage: int) -> Layout:
    """The layout of the nth look at a set of arguments.

    >>> layout(0)
    Layout(zeros=1, probes=15)
    """
    if stage < len(_FIRST):
        return Layout(*_FIRST[stage])
    return Layout(1 + 5 * stage % 8, 1 + 5 * stage % 7)


def ask(subject: Subject, scores: Array, mask: Bools) -> Floats:
    """The weights, exactly, in float64, shape ``(rows, keys)``.

    Raises UnusableError when the call fails, or returns weights that are not finite or vanish at the maximum.
    """
    answer = call(subject, "forward", scores, mask)
    if isinstance(answer, Fault):
        raise UnusableError(answer.sentence)
    values = answer.values
    bad = ~np.all(np.isfinite(values), axis=1) | ~(values[:, 0] > 0.0)
    if bad.any():
        row = int(bad.argmax())
        key = int((~np.isfinite(values[row])).argmax())
        raise UnusableError(
            f"{subject.id}.forward returned {values[row, key]} as the weight of key {key} of the row "
            f"[{', '.join(f'{float(s):.6g}' for s in scores[row, :3])}, …], which tells nothing of an exponential. "
            "Certify the subject first."
        )
    return values
