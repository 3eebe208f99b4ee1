"""Masked softmaxes that end, hang or flood their process, on one kind of rows or at once; judged by name in workers."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from typing import Any

import numpy as np

from hardmask.adapters.attention import Attention
from hardmask.adapters.numpy_rows import softmax_where
from hardmask.adapters.subject import Subject


def good(scores: Any, mask: Any) -> Any:
    return softmax_where(scores, mask).weights


def killed(scores: Any, mask: Any) -> Any:
    print("about to \x1b[31mfall\x07 over", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def aborted(scores: Any, mask: Any) -> Any:
    os.abort()


def null(scores: Any, mask: Any) -> Any:
    return ctypes.string_at(0)


def left(scores: Any, mask: Any) -> Any:
    os._exit(0)


def left_by_exit(scores: Any, mask: Any) -> Any:
    sys.exit(3)


def asleep(scores: Any, mask: Any) -> Any:
    time.sleep(600)


def busy(scores: Any, mask: Any) -> Any:
    """Hold the interpreter's lock for ever, in C."""
    return sum(iter(int, 1))


def hungry(scores: Any, mask: Any) -> Any:
    held = []
    while True:
        held.append(np.ones(1 << 22))
        time.sleep(0.001)


def no_keys(scores: Any, mask: Any) -> Any:
    """Right, but for a key axis of length zero, on which it divides by zero in C."""
    if scores.shape[1] == 0:
        os.kill(os.getpid(), signal.SIGFPE)
    return good(scores, mask)


def loud(scores: Any, mask: Any) -> Any:
    """Right, and prints to both streams, from Python and past it."""
    print("HMF1 garbage" * 1000)
    os.write(1, b"HMF1\0\0\0\0" * 1000)
    os.write(2, b"noise\n" * 20000)
    return good(scores, mask)


def listed(scores: Any, mask: Any) -> Any:
    return good(scores, mask).tolist()


def wider(scores: Any, mask: Any) -> Any:
    return good(scores, mask).astype(np.complex128)


def refusing(scores: Any, mask: Any) -> Any:
    raise ValueError("not \x1b[31mtoday\x1b[0m.\nsecond line")


def spoiling(scores: Any, mask: Any, axis: int = -1) -> Any:
    """Right, but it writes over its scores, which only rows of its own allow."""
    rows, allowed = (np.moveaxis(a, axis, -1) for a in (scores, np.broadcast_to(mask, scores.shape)))
    result = np.moveaxis(good(rows, allowed), -1, axis)
    scores[...] = 0
    return result


def falling(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    os.abort()


def over_q(q: Any, k: Any, v: Any, mask: Any, scale: float) -> Any:
    q[...] = 0
    return np.zeros((*q.shape[:3], v.shape[3]), q.dtype)


FUNCTIONS = (killed, aborted, null, left, left_by_exit, asleep, busy, hungry, no_keys, loud, listed, wider, refusing)

every = {f.__name__: Subject(f"bad.{f.__name__}", f, dtypes=("float32",)) for f in FUNCTIONS}
every["spoiling"] = Subject("bad.spoiling", spoiling, dtypes=("float32",), any_axis=True)
GOOD = Subject("bad.good", good, dtypes=("float32",))


def __getattr__(name: str) -> Any:
    """``with_killed`` and so on: that subject between two calls of the good one."""
    if not name.startswith("with_"):
        raise AttributeError(name)
    return [GOOD, every[name.removeprefix("with_")]]


attentions = [
    Attention("bad.falling", falling, dtypes=("float32",)),
    Attention("bad.over-q", over_q, dtypes=("float32",)),
]
