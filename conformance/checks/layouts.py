"""Checks of arrays of any rank: each row of the answer against the same truth and budgets as a plain row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from ..judgement import Outcome
from ..view import View
from . import derivative, empty_row, forward

NAMES = frozenset(
    (*forward.VALUES, *forward.ZEROS, *derivative.VJP, *derivative.JVP, *derivative.BLOCKED, *empty_row.EMPTY)
)
"""The declarations that say what each entry of an answer is; a wrong axis breaks one of them."""


def check(view: View) -> Iterator[Outcome]:
    """Every outcome about values, zeros and empty rows; what other theorems say of a row is judged on plain rows."""
    for outcome in chain(forward.check(view), empty_row.check(view), derivative.check(view)):
        if NAMES.issuperset(outcome.declarations):
            yield outcome
