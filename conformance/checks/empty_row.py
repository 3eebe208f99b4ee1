"""The empty row: weights, VJP, JVP and the ``valid`` flag, against the declared contract."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...spec.batch import Floats
from ...spec.rounding import Mode
from ..contracted import contracted
from ..diagnosis import derivative_fault, weights_fault
from ..judgement import Codes, Names, Outcome, from_rows
from ..truth import Side
from ..view import DERIVATIVES, View

EMPTY = ("empty_row",)


def check(view: View) -> Iterator[Outcome]:
    """Outcomes on the rows that allow no key, and on all rows for the flag."""
    empty = view.batch.empty
    if view.values is not None:
        if empty.any():
            yield contracted(view, _outcome(view, view.values), view.values)
        offered = getattr(view.forward, "valid", None) is not None
        if view.contract.kind == "zero+valid" or (view.contract.kind == "fallback" and offered):
            yield _flag(view)
    if not empty.any():
        return
    for mode, side in DERIVATIVES:
        values = view.derivative_values(mode, side)
        if values is not None:
            yield contracted(view, _outcome(view, values, mode, side), values)


def _outcome(view: View, values: Floats, mode: Mode | None = None, side: Side | None = None) -> Outcome:
    """The rows that the contract is to judge, not judged yet."""
    zero = np.zeros(len(values))
    with np.errstate(invalid="ignore"):
        error = np.abs(values).max(axis=1, initial=0.0)

    def diagnose(rows: Codes) -> Names:
        if mode is None or side is None:
            return weights_fault(view, rows)
        return derivative_fault(view, mode, side, rows)

    return from_rows(
        EMPTY,
        mode or "weights",
        error,
        zero,
        zero > 0.0,
        # A vector that is not real, on an empty row, is the business of the promise ``isolation``.
        view.batch.empty if mode is None else view.batch.empty & view.batch.real,
        diagnose=diagnose,
        returned=values,
        tier=view.tier(mode or "forward"),
        side=side,
        remark=mode.upper() if mode else "weights",
    )


def _flag(view: View) -> Outcome:
    """The flag is False exactly on the rows that allow no key, whatever their scores; ``zero+valid`` demands it."""
    assert view.values is not None
    flags = getattr(view.forward, "valid", None)
    expected = ~view.batch.empty
    wrong = np.ones(len(expected), bool) if flags is None else flags != expected
    name = "no valid flag" if flags is None else "wrong valid flag"
    shown = np.zeros((len(expected), 1)) if flags is None else flags[:, None].astype(np.float64)
    zero = np.zeros(len(expected))
    return from_rows(
        EMPTY,
        "valid",
        wrong.astype(np.float64),
        zero,
        wrong,
        np.ones(len(expected), bool),
        diagnose=lambda r: np.full(len(r), name, dtype=object),
        returned=shown,
        tier=view.tier("forward"),
        remark="valid flag",
    )
