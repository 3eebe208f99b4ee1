"""Small attention problems, and three correct ways to attend, for the tests of budgets and oracle."""

from __future__ import annotations

from typing import Any

import numpy as np

from hardmask.spec.attention.problem import Problem
from hardmask.spec.formats import FORMATS

Array = Any

KINDS = ("normal", "wide", "offset", "ties", "one-hot", "skewed", "tiny", "large")
MASKS = ("full", "random", "empty", "causal", "bottom-right")


def problem(
    rng: np.random.Generator,
    dtype: str,
    sizes: tuple[int, int, int, int, int, int, int],
    kind: str = "normal",
    mask: str = "random",
    scale: float | None = None,
) -> Problem:
    """A problem of sizes ``(B, H, G, Lq, Lk, d, dv)``; blocked keys of ``empty`` masks hold large numbers."""
    batch, heads, groups, queries, keys, d, dv = sizes
    q, k, v, g = (
        rng.standard_normal(s)
        for s in (
            (batch, heads, queries, d),
            (batch, groups, keys, d),
            (batch, groups, keys, dv),
            (batch, heads, queries, dv),
        )
    )
    tangents = [rng.standard_normal(x.shape) for x in (q, k, v)]
    if kind == "wide":
        q, k = 4.0 * q, 4.0 * k
    elif kind == "offset":
        q, k, v = q + 8.0, k + 8.0, v + 100.0
    elif kind == "ties":
        k = np.broadcast_to(k[:, :, :1], k.shape).copy()
    elif kind == "one-hot":
        v = np.zeros_like(v)
        v[..., :1, :1] = 1.0
    elif kind == "skewed":
        k[:, :, :1] *= 20.0
    elif kind == "tiny":
        q, v, g = 1e-3 * q, 1e-3 * v, 1e-2 * g
    elif kind == "large":
        q, k = 20.0 * q, 20.0 * k
    allowed = np.ones((batch, heads, queries, keys), bool)
    if mask in ("random", "empty"):
        allowed &= rng.random(allowed.shape) < 0.6
    if mask == "random" and keys:
        allowed[..., 0] = True
    if mask == "empty":
        allowed[:, :, ::3] = False
        allowed[..., -1:] = False
        k[:, :, -1:] = 100.0
        v[:, :, -1:] = 1e4
    if mask in ("causal", "bottom-right"):
        allowed &= np.tril(np.ones((queries, keys), bool), keys - queries if mask == "bottom-right" else 0)
    stored = FORMATS[dtype].dtype
    return Problem(
        f"{kind} {mask}", kind, dtype, q.astype(stored), k.astype(stored), v.astype(stored), allowed,
        float(max(d, 1)) ** -0.5 if scale is None else scale, g.astype(stored),
        (tangents[0].astype(stored), tangents[1].astype(stored), tangents[2].astype(stored)),
    )  # fmt: skip


def heads(p: Problem, x: Array) -> Array:
    """Keys or values once per head."""
    return np.repeat(x, p.q.shape[1] // p.k.shape[1], axis=1)


def groups(p: Problem, x: Array) -> Array:
    """Gradients of all heads, added up within their groups."""
    return x.reshape(*p.k.shape[:2], -1, *x.shape[2:]).sum(axis=2)


def t(x: Array) -> Array:
    return np.swapaxes(x, -1, -2)


def centre(w: Array, g: Array) -> Array:
    return w * (g - (w * g).sum(axis=-1, keepdims=True))


def softmax(s: Array, mask: Array) -> Array:
    """Masked, materialised, in the precision of ``s``."""
    top = np.max(np.where(mask, s, -np.inf), axis=-1, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0).astype(s.dtype)
    e = np.where(mask, np.exp(np.where(mask, s - top, s.dtype.type(0))), s.dtype.type(0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, total.dtype.type(1))


def naive(p: Problem, **steps: Any) -> dict[str, Array]:
    """Materialised attention in the storage format; halves in float32, rounded at the end.

    ``steps`` replaces some of them: ``inputs``, ``scores`` and ``weights`` are functions of an array, ``softmax`` of
    scores and mask, ``centre`` of weights and cotangent, ``backward_scale`` is a number.
    """
    work = np.float64 if p.dtype == "float64" else np.float32
    q, k, v, g = (x.astype(work) for x in (p.q, heads(p, p.k), heads(p, p.v), p.cotangent))
    tq, tk, tv = (x.astype(work) for x in (p.tangents[0], heads(p, p.tangents[1]), heads(p, p.tangents[2])))
    mask, scale, same = p.full_mask, work(p.scale), lambda x: x
    inputs, cen = steps.get("inputs", same), steps.get("centre", centre)
    w = steps.get("softmax", softmax)(steps.get("scores", same)((inputs(q) @ t(inputs(k))) * scale), mask)
    w = steps.get("weights", same)(w)
    d_scores = cen(w, g @ t(v)) * work(steps.get("backward_scale", 1.0))
    moved = (tq @ t(k) + q @ t(tk)) * scale
    answers = {
        "output": inputs(w) @ inputs(v),
        "dq": (d_scores @ k) * scale,
        "dk": groups(p, (t(d_scores) @ q) * scale),
        "dv": groups(p, t(w) @ g),
        "jvp": cen(w, moved) @ v + w @ tv,
        "weights": w,
    }
    return {name: stored(p, x) for name, x in answers.items()}


def stored(p: Problem, x: Array) -> Array:
    """Rounded to the storage format, in float64."""
    return x.astype(FORMATS[p.dtype].dtype).astype(np.float64)


def tiled(p: Problem, tile: int = 16) -> dict[str, Array]:
    """An online softmax in base 2; the backward pass rebuilds the weights from the log-sum-exp.

    For halves weights and ``dS`` are cast to storage before they are multiplied.
    """
    work = np.float64 if p.dtype == "float64" else np.float32
    q, k, v, g = (x.astype(work) for x in (p.q, heads(p, p.k), heads(p, p.v), p.cotangent))
    mask, c = p.full_mask, work(p.scale * 1.4426950408889634)
    half = p.dtype in ("float16", "bfloat16")

    def cast(x: Array) -> Array:
        return x.astype(FORMATS[p.dtype].dtype).astype(work) if half else x

    top = np.full((*q.shape[:3], 1), -np.inf, work)
    total, out = np.zeros_like(top), np.zeros((*q.shape[:3], v.shape[3]), work)
    for j in range(0, k.shape[2], tile):
        s = np.where(mask[..., j : j + tile], (q @ t(k[:, :, j : j + tile])) * c, -np.inf).astype(work)
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        shift = np.where(np.isfinite(new), new, 0.0).astype(work)
        again = np.exp2(top - shift)
        e = np.exp2(s - shift)
        total, out, top = (
            total * again + e.sum(axis=-1, keepdims=True),
            out * again + cast(e) @ v[:, :, j : j + tile],
            new,
        )
    some = total > 0
    total = np.where(some, total, 1).astype(work)
    out = np.where(some, out / total, 0).astype(work)
    log_sum = np.where(some, top + np.log2(total), 0).astype(work)
    w = np.where(mask, np.exp2(np.where(mask, (q @ t(k)) * c - log_sum, -np.inf)), 0).astype(work)
    result = stored(p, out)
    delta = (g * result.astype(work)).sum(axis=-1, keepdims=True)
    d_scores = cast(w * (g @ t(v) - delta))
    answers = {
        "dq": (d_scores @ k) * work(p.scale),
        "dk": groups(p, (t(d_scores) @ q) * work(p.scale)),
        "dv": groups(p, t(cast(w)) @ g),
    }
    return {"output": result} | {name: stored(p, x) for name, x in answers.items()}


def half_ops(p: Problem) -> dict[str, Array]:
    """Everything materialised in the half format, sums in float32."""
    kind = FORMATS[p.dtype].dtype

    def product(a: Array, b: Array) -> Array:
        return (a.astype(np.float32) @ b.astype(np.float32)).astype(kind)

    def total(x: Array) -> Array:
        return x.astype(np.float32).sum(axis=-1, keepdims=True).astype(kind)

    q, k, v, g, mask, scale = p.q, heads(p, p.k), heads(p, p.v), p.cotangent, p.full_mask, kind.type(p.scale)
    s = product(q, t(k)) * scale
    top = np.max(np.where(mask, s.astype(np.float32), -np.inf), axis=-1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0).astype(kind)
    e = np.where(mask, np.exp(np.where(mask, s - top, kind.type(0))), kind.type(0))
    w = e / np.where(total(e) > 0, total(e), kind.type(1))
    d_weights = np.where(
        mask,
        product(g, np.where(np.any(mask, axis=-2)[..., None], t(t(v)), kind.type(0)).swapaxes(-1, -2)),
        kind.type(0),
    )
    d_scores = w * (d_weights - total(w * d_weights))
    grouped = (groups(p, x.astype(np.float32)) for x in (product(t(d_scores), q) * scale, product(t(w), g)))
    dk, dv = grouped
    return {
        name: stored(p, x)
        for name, x in {
            "output": product(w, v),
            "dq": product(d_scores, k) * scale,
            "dk": dk,
            "dv": dv,
            "weights": w,
        }.items()
    }
