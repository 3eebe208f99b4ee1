"""The contract ``reject``: the call must raise when a query may see nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..calls import Fault
from .checks.values import EMPTY
from .judgement import Judged, of_bits
from .view import AttentionView


def rejects(view: AttentionView) -> Iterator[Judged]:
    """One outcome for the problem; its queries that may see something are judged on other problems."""
    answer = view.answer("forward")
    raised = isinstance(answer, Fault) and answer.raised
    shown = np.zeros((*view.problem.empty.shape, 1))
    every = view.empty
    wrong = np.full(len(every), not raised)
    yield of_bits(
        (EMPTY,), "output", wrong, every, shown, view.tier("forward"), "not rejected", permitted=every & raised
    )
