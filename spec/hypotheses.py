"""The hypotheses that declarations share, each executable on rows of shape ``(..., n)``.

The Lean statements speak of real scores by their types; a floating-point row has to be asked.
"""

from __future__ import annotations

import numpy as np

from .declaration import Hypothesis

REAL_SCORES = Hypothesis(
    "real_scores",
    "every allowed score is a real (finite) number",
    lambda mask, scores: (
        ~np.any(np.asarray(mask, dtype=bool) & ~np.isfinite(np.asarray(scores, dtype=np.float64)), axis=-1)
    ),
)
SOME_ALLOWED = Hypothesis(
    "some_allowed", "some key is allowed", lambda mask, scores: np.any(np.asarray(mask, dtype=bool), axis=-1)
)
NONE_ALLOWED = Hypothesis(
    "none_allowed", "no key is allowed", lambda mask, scores: ~np.any(np.asarray(mask, dtype=bool), axis=-1)
)
SOME_BLOCKED = Hypothesis(
    "some_blocked", "the key is blocked", lambda mask, scores: ~np.all(np.asarray(mask, dtype=bool), axis=-1)
)
ONE_ALLOWED = Hypothesis(
    "one_allowed",
    "the key is allowed and no other key is",
    lambda mask, scores: np.sum(np.asarray(mask, dtype=bool), axis=-1) == 1,
)
ALL_ALLOWED = Hypothesis(
    "all_allowed", "every key is allowed", lambda mask, scores: np.all(np.asarray(mask, dtype=bool), axis=-1)
)
FUTURE = Hypothesis(
    "future",
    "i < j",
    lambda mask, scores: np.full(np.shape(mask)[:-1], np.shape(mask)[-1] > 1),
)
PAST = Hypothesis(
    "past",
    "j <= i",
    lambda mask, scores: np.full(np.shape(mask)[:-1], np.shape(mask)[-1] > 0),
)
