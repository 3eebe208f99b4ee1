"""The recipes of what people write in NumPy."""

from __future__ import annotations

from .recipe import Recipe

SOFTMAX = """
def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True, initial=-np.inf))
    return e / np.sum(e, axis=-1, keepdims=True)
"""

FILL = "    return softmax(np.where(mask, scores, np.full_like(scores, {fill})))"

ADD = "    return softmax(scores + np.where(mask, np.full_like(scores, 0.0), np.full_like(scores, {fill})))"

SCIPY = """
from scipy.special import softmax


def forward(scores, mask):
    return softmax(np.where(mask, scores, np.full_like(scores, -np.inf)), axis=-1)
"""

ADDITIVE = """
def forward(q, k, v, mask, scale):
    wide = [x if x.dtype in (np.float64, np.float32) else x.astype(np.float32) for x in (q, k, v)]
    heads = q.shape[1] // max(k.shape[1], 1)
    a, b, c = wide[0], np.repeat(wide[1], heads, axis=1), np.repeat(wide[2], heads, axis=1)
    scores = np.asarray(float(scale) * (a @ np.swapaxes(b, -1, -2)))
    scores = scores + np.where(mask, 0, -np.inf).astype(scores.dtype)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True, initial=-np.inf))
    return (e / np.sum(e, axis=-1, keepdims=True) @ c).astype(q.dtype)
"""


def _rows(body: str, fill: str) -> Recipe:
    return Recipe("numpy", f"{SOFTMAX.strip()}\n\n\ndef forward(scores, mask):\n{body.format(fill=fill)}")


LOWEST = "np.finfo(scores.dtype).min"

RECIPES: dict[str, Recipe] = {
    "numpy.fill-inf": _rows(FILL, "-np.inf"),
    "numpy.unguarded-inf": _rows(FILL, "-np.inf"),
    "numpy.replace-min": _rows(FILL, LOWEST),
    "numpy.additive-1e9": _rows(ADD, "-1e9"),
    "numpy.additive-min": _rows(ADD, LOWEST),
    "numpy.scipy-softmax": Recipe("numpy", SCIPY),
    "numpy.attention[-inf]": Recipe("numpy", ADDITIVE),
}
"""By the id of the subject."""
