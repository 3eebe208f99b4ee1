"""The frames that a worker and its parent exchange: a JSON header, then arrays as raw bytes.

A frame begins with 20 bytes, little-endian: the magic ``HMF1``, the length of the header (4 bytes), the length of the
payload (8 bytes) and the number of the exchange (4 bytes). An answer carries the number of its request.

An array is described in the header and lies in the payload as the range of memory that backs it, whatever its strides:
``dtype``, ``shape``, ``strides``, ``offset`` of the first element and ``write`` (whether it may be written to). The
range begins at an address that is congruent to the original one modulo 64, so that a kernel which looks at alignment
or strides sees what it would see in the process of its caller.
"""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...spec.formats import FORMATS

Array = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

PREFIX = struct.Struct("<4sIQI")
MAGIC = b"HMF1"

MAX_HEADER = 1 << 26
MAX_PAYLOAD = 1 << 31
ALIGNED = 64
RANK = 32
"""The largest rank that every supported NumPy has."""

PLAIN = ("float64", "float32", "float16", "bfloat16", "bool")
"""The dtypes whose arrays travel with their contents."""

SPARSE = 4
"""A range of memory that is more than so many times as large as its elements is not sent whole."""


class FrameError(Exception):
    """Bytes that are no frame, or a frame that says what cannot be; the message completes 'sent ...'."""


class Prefix(NamedTuple):
    """The lengths that a frame announces, and the number of its exchange."""

    header: int
    payload: int
    number: int


def prefix_of(raw: bytes) -> Prefix:
    """The prefix of a frame. Raises FrameError for another magic, and for lengths beyond the limits."""
    magic, *lengths = PREFIX.unpack(raw)
    prefix = Prefix(*lengths)
    if magic != MAGIC:
        raise FrameError(f"bytes that begin no frame ({magic!r})")
    if prefix.header > MAX_HEADER or prefix.payload > MAX_PAYLOAD:
        raise FrameError(f"a frame that announces {prefix.header} and {prefix.payload} bytes, beyond the limits")
    return prefix


def header_of(raw: bytes | bytearray) -> dict[str, Any]:
    """The header of a frame. Raises FrameError for what is no JSON object."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        raise FrameError("a header that is no JSON") from None
    if not isinstance(found, dict):
        raise FrameError("a header that is no JSON object")
    return found


def buffer(length: int) -> Bytes:
    """Fresh memory that begins at a multiple of :data:`ALIGNED`."""
    raw = np.empty(length + ALIGNED, np.uint8)
    skip = -raw.ctypes.data % ALIGNED
    return raw[skip : skip + length]


class Payload:
    """Collects arrays; ``pieces`` are what has to be sent behind the header, one after the other."""

    def __init__(self) -> None:
        self.pieces: list[memoryview] = []
        self.length = 0
        self._kept: list[Array] = []

    def add(self, array: Array) -> dict[str, Any]:
        """The description of an array, whose bytes are appended.

        An array of a dtype that no subject may return is described only.
        """
        name = _name(array.dtype)
        if name not in PLAIN or array.ndim > RANK:
            return {"odd": name if name.startswith(("bfloat", "float8")) else array.dtype.str, "shape": array.shape}
        low, high = _range(array)
        if high - low > SPARSE * array.nbytes + 4096:
            array = array.copy(order="K")
            low, high = _range(array)
        address = array.ctypes.data
        gap = (address + low - self.length) % ALIGNED
        if gap:
            self.pieces.append(memoryview(b"\0" * gap))
        start = self.length + gap
        if high > low:
            self.pieces.append(memoryview((ctypes.c_char * (high - low)).from_address(address + low)).cast("B"))
            self._kept.append(array)
        self.length = start + high - low
        return {
            "dtype": name,
            "shape": array.shape,
            "strides": array.strides,
            "offset": start - low,
            "write": array.flags.writeable,
        }


def frame(number: int, header: dict[str, Any], payload: Payload | None = None) -> list[memoryview]:
    """The pieces of a frame, to be sent one after the other. Raises FrameError for one beyond the limits."""
    text = json.dumps(header, separators=(",", ":"), default=_plain).encode()
    length = 0 if payload is None else payload.length
    if len(text) > MAX_HEADER or length > MAX_PAYLOAD:
        raise FrameError(f"a frame of {len(text)} and {length} bytes, beyond the limits")
    first = memoryview(PREFIX.pack(MAGIC, len(text), length, number) + text)
    return [first, *(payload.pieces if payload is not None else ())]


def array_of(spec: Any, payload: Bytes) -> Array:
    """The array that a description speaks of, over the payload's own memory.

    One of which only the dtype and the shape travelled holds zeros. Raises FrameError for a description that does not
    fit the payload.
    """
    if not isinstance(spec, dict):
        raise FrameError("a description of an array that is no object")
    shape = _numbers(spec.get("shape"), 0)
    if "odd" in spec:
        return np.broadcast_to(np.zeros((), _odd(spec["odd"])), shape)
    strides = _numbers(spec.get("strides"), -MAX_PAYLOAD)
    (offset,) = _numbers([spec.get("offset")], 0)
    name = spec.get("dtype")
    if name not in PLAIN:
        raise FrameError("an array of a dtype that does not travel")
    dtype = np.dtype(np.bool_) if name == "bool" else FORMATS[name].dtype
    if len(strides) != len(shape):
        raise FrameError("an array with other strides than axes")
    low, high = _reach(shape, strides, dtype.itemsize)
    if offset + low < 0 or offset + high > len(payload):
        raise FrameError("an array that reaches beyond its frame")
    if not high:
        return np.empty(shape, dtype)
    array: Array = np.ndarray(shape, dtype, payload.data, offset, strides)
    if dtype == np.bool_ and payload[offset + low : offset + high].max() > 1:
        raise FrameError("Booleans that are neither 0 nor 1")
    if spec.get("write") is not True:
        array.flags.writeable = False
    return array


@cache
def _name(dtype: np.dtype[Any]) -> str:
    return dtype.name  # which NumPy works out anew each time


def _range(array: Array) -> tuple[int, int]:
    return _reach(array.shape, array.strides, array.dtype.itemsize)


def _reach(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The range of memory that an array spans, relative to its first element; empty if it has no element."""
    low, high = 0, itemsize
    for n, stride in zip(shape, strides, strict=True):
        if n == 0:
            return 0, 0
        if stride < 0:
            low += (n - 1) * stride
        else:
            high += (n - 1) * stride
    return low, high


def _numbers(given: Any, least: int) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) > RANK:
        raise FrameError("an array without a shape")
    for n in given:
        if type(n) is not int or not least <= n <= MAX_PAYLOAD:
            raise FrameError("an array whose sizes are no sizes")
    return tuple(given)


def _odd(name: Any) -> np.dtype[Any]:
    """A dtype that no subject may return, for the sentence that says so."""
    try:
        if isinstance(name, str) and name.startswith(("bfloat", "float8")):
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, name))
        found = np.dtype(name)
    except Exception:
        raise FrameError("an array of an unknown dtype") from None
    if found.itemsize > 1 << 16:
        raise FrameError("an array of a dtype beyond the limits")
    return found


def _plain(value: Any) -> Any:
    """NumPy's numbers, as a declared model may hold them, as Python's."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return dict(value)
