"""The frames between a worker and its parent, and a parent that believes nothing of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hardmask.adapters.errors import Lost, Relayed, said
from hardmask.adapters.remote import POSSIBLE, Options
from hardmask.adapters.remote.worker import Worker
from hardmask.adapters.worker.frames import (
    ALIGNED,
    MAGIC,
    PREFIX,
    FrameError,
    Payload,
    array_of,
    buffer,
    frame,
    header_of,
    prefix_of,
)

Array = np.ndarray[Any, np.dtype[Any]]
ROWS = np.arange(24, dtype=np.float32).reshape(4, 6)


def travelled(array: Array) -> Array:
    """What arrives of an array, by way of a frame and a description in JSON."""
    payload = Payload()
    spec = json.loads(json.dumps(payload.add(array)))
    raw = b"".join(bytes(p) for p in frame(7, {}, payload))
    prefix = prefix_of(raw[: PREFIX.size])
    assert prefix.number == 7
    body = buffer(prefix.payload)
    body[:] = np.frombuffer(raw[PREFIX.size + prefix.header :], np.uint8)
    return array_of(spec, body)


@pytest.mark.parametrize(
    "array",
    [
        ROWS,
        ROWS.T,
        ROWS[::-1, ::-2],
        ROWS[1:, 1:],
        np.broadcast_to(ROWS[:1], (4, 6)),
        np.zeros((0, 5), np.float64),
        np.zeros((3, 0), bool),
        np.array(2.5, np.float16),
        np.array([[np.nan, -0.0, np.inf]], ml_dtypes.bfloat16),
        np.array([[True, False], [False, True]])[:, ::-1],
        np.lib.stride_tricks.as_strided(np.zeros(4, np.float32), (3, 4), (0, 4)),
    ],
)
def test_an_array_arrives_as_it_lies_in_memory(array: Array) -> None:
    found = travelled(array)
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable == array.flags.writeable
    if array.size:
        assert found.strides == array.strides
        assert (found.ctypes.data - array.ctypes.data) % ALIGNED == 0


@pytest.mark.parametrize("array", [np.zeros((2, 3), complex), np.array(["a"]), np.zeros(2, ml_dtypes.float8_e4m3fn)])
def test_of_an_array_that_nobody_may_return_dtype_and_shape_arrive(array: Array) -> None:
    found = travelled(array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)


GOOD = {"dtype": "float32", "shape": [2, 2], "strides": [8, 4], "offset": 0, "write": True}


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "float64"},  # 32 bytes, of which 16 are there
        {"dtype": "object"},
        {"shape": [2, 3]},
        {"shape": [-1, 2]},
        {"shape": [2.0, 2]},
        {"shape": [True, 2]},
        {"shape": "22"},
        {"shape": [1] * 40},
        {"shape": [1 << 40, 1 << 40]},
        {"strides": [8]},
        {"strides": [8, 400]},
        {"strides": [-8, 4]},
        {"offset": 4},
        {"offset": -4},
        {"offset": None},
        {"dtype": "bool", "strides": [2, 1]},
        {"odd": "nonsense"},
        {"odd": "V9999999"},
    ],
)
def test_a_description_that_lies_is_refused(change: dict[str, Any]) -> None:
    body = buffer(16)
    body[:] = 7
    array_of(GOOD, body)
    with pytest.raises(FrameError):
        array_of({**GOOD, **change}, body)


def test_prefixes_and_headers_that_are_none_are_refused() -> None:
    for raw in (
        PREFIX.pack(b"HMF0", 1, 1, 1),
        PREFIX.pack(MAGIC, (1 << 32) - 1, 1, 1),
        PREFIX.pack(MAGIC, 1, 1 << 60, 1),
    ):
        with pytest.raises(FrameError):
            prefix_of(raw)
    for text in (b"", b"{", b"[1]", b"[" * 100_000, b"\xff", b'"' + b"a" * 10):
        with pytest.raises(FrameError):
            header_of(text)


FAKE = """#!{python}
import json, os, struct, sys, time
P = struct.Struct("<4sIQI")

def read(n):
    found = b""
    while len(found) < n:
        got = os.read(0, n - len(found))
        if not got:
            os._exit(0)
        found += got
    return found

def request():
    _, header, payload, number = P.unpack(read(20))
    header = json.loads(read(header))
    read(payload)
    return number, header

def send(raw):
    while raw:
        raw = raw[os.write(1, raw):]

def answer(number, header, payload=b"", magic=b"HMF1", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    send(P.pack(magic, len(text), len(payload) if length is None else length, number) + text + payload)

number, _ = request()
answer(number, {{"python": "3", "chosen": [], "subjects": [], "versions": {{}}}})
number, header = request()
GOOD = {{"dtype": "float32", "shape": [4, 6], "strides": [24, 4], "offset": 0, "write": True}}
def result(spec, payload=bytes(96), **more):
    answer(number, {{"result": {{"array": spec}}, **more}}, payload)
{lie}
time.sleep(60)
"""

LIES = {
    "answer(number, {}, magic=b'GARB')": "bytes that begin no frame",
    "send(b'hello, world, this is a line of text')": "bytes that begin no frame",
    "send(P.pack(b'HMF1', 1 << 31, 0, number))": "beyond the limits",
    "answer(number, {}, length=1 << 62)": "beyond the limits",
    "answer(number + 1, {})": "the answer to another request",
    "answer(number, b'{')": "a header that is no JSON",
    "answer(number, b'[' * 200000)": "a header that is no JSON",
    "answer(number, b'[]')": "a header that is no JSON object",
    "answer(number, {})": "an answer that says what cannot be",
    "answer(number, {'result': None})": "an answer that says what cannot be",
    "result({**GOOD, 'dtype': 'float64'})": "an array that reaches beyond its frame",
    "result({**GOOD, 'shape': [400, 6]})": "an array that reaches beyond its frame",
    "result(GOOD, bytes(95))": "an array that reaches beyond its frame",
    "result(GOOD, changed=[[0, {**GOOD, 'shape': [4, 5]}]])": "a changed argument of another shape or dtype",
    "result(GOOD, changed=[[9, GOOD]])": "an answer that says what cannot be",
    "answer(number, {}, length=50); os._exit(3)": "it exited with status 3",
    "send(P.pack(b'HMF1', 100, 0, number)); os._exit(0)": "it exited with status 0",
    "answer(number, {}, length=50)": "it was stopped after 1 s",
    "os.close(1)": "closed the connection",
}


@pytest.mark.skipif(not POSSIBLE, reason="workers need a POSIX system")
@pytest.mark.parametrize("lie", LIES)
def test_a_worker_that_lies_is_found_out_and_ended(tmp_path: Path, lie: str) -> None:
    fake = tmp_path / "python"
    fake.write_text(FAKE.format(python=sys.executable, lie=lie))
    fake.chmod(0o755)
    worker = Worker(Options(python=str(fake), call_timeout=1.0), "numpy", ("numpy",), False)
    try:
        with pytest.raises(Lost) as caught:
            worker.call("x.y", "forward", [ROWS, ROWS > 3])
        assert LIES[lie] in caught.value.why
        assert worker._process is None
    finally:
        worker.close()


@pytest.mark.skipif(not POSSIBLE, reason="workers need a POSIX system")
def test_an_exception_in_a_worker_is_said_as_it_was_there() -> None:
    worker = Worker(Options(), "numpy", ("numpy.softmax-where",), False)
    try:
        with pytest.raises(Relayed) as caught:
            worker.call("numpy.softmax-where", "forward", [ROWS, np.zeros((3, 7), bool)])
        assert said(caught.value).startswith("ValueError: operands could not be broadcast")
        answer = worker.call("numpy.softmax-where", "forward", [ROWS, ROWS > 3])
        assert answer.weights.shape == ROWS.shape
    finally:
        worker.close()
