"""What is written at blocked scores: whatever stands there, the weights must not change."""

from __future__ import annotations

import numpy as np

from ...spec.batch import Bools, Floats
from ...spec.formats import Format

POISONS: tuple[str, ...] = ("nan", "+inf", "-inf", "+max", "-max", "+30", "+1e4")


def poisoned(scores: Floats, mask: Bools, form: Format, which: np.ndarray) -> Floats:
    """Replace the blocked scores of row ``r`` by the poison numbered ``which[r]``; ``+30`` lies 30 above the row's
    largest allowed score."""
    top = np.where(mask, scores, -np.inf).max(axis=1, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    values = {
        "nan": np.nan,
        "+inf": np.inf,
        "-inf": -np.inf,
        "+max": form.max,
        "-max": -form.max,
        "+30": top + 30.0,
        "+1e4": 1e4,
    }
    table = np.stack([np.broadcast_to(np.asarray(values[p], dtype=np.float64), top.shape) for p in POISONS])
    return np.where(mask, scores, table[which, np.arange(len(which))][:, None])
