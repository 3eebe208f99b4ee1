"""The loop of a worker: read a request, carry it out, answer."""

from __future__ import annotations

import os
import platform
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..attention import Attention
from ..builds import builds
from ..errors import TargetError, said
from ..memory import keep_freed_memory
from ..registry import Anything, one_name_twice, owners, reported, resolve_within, versions
from .answers import encoded
from .describe import described, possible
from .frames import PREFIX, Bytes, FrameError, Payload, array_of, buffer, frame, header_of, prefix_of

EVERY = 1.0
"""Seconds between two looks at whether the parent is still there."""

MOST = 64
"""Pieces that are written at once; every system takes so many."""


def serve(read: int, write: int) -> None:
    """Answer requests until the parent closes its end. Does not return."""
    _outlive_no_parent()
    keep_freed_memory()
    warnings.simplefilter("ignore")
    session = Session()
    try:
        while True:
            prefix = prefix_of(bytes(_read(read, PREFIX.size)))
            header = header_of(bytes(_read(read, prefix.header)))
            payload = _read(read, prefix.payload)
            reply = Payload()
            try:
                answer = session.answer(header, payload, reply)
            except BaseException as problem:  # whatever a subject raises, a stray sys.exit() included
                refused = isinstance(problem, TargetError) and header.get("do") in ("owners", "open")
                answer, reply = {"target": str(problem)} if refused else {"raised": said(problem)}, Payload()
            try:
                pieces = frame(prefix.number, answer, reply)
            except FrameError as problem:
                pieces = frame(prefix.number, {"refused": f"it gave {problem}"})
            _write(write, pieces)
            del header, payload, answer, reply, pieces
    except (EOFError, OSError):
        pass
    finally:
        # A framework's own threads may never end.
        os._exit(0)


class Session:
    """The subjects of one worker, by id, and what can be asked of them."""

    def __init__(self) -> None:
        self.subjects: dict[str, Anything] = {}
        self.operations: dict[str, Callable[[dict[str, Any], Bytes, Payload], dict[str, Any]]] = {
            "owners": self._owners,
            "open": self._open,
            "call": self._call,
            "widths": self._widths,
            "ran": self._ran,
        }

    def answer(self, header: dict[str, Any], payload: Bytes, reply: Payload) -> dict[str, Any]:
        """Carry out one request. Raises what the subject raises, and TargetError for targets that name nothing."""
        with np.errstate(all="ignore"):
            return self.operations[header["do"]](header, payload, reply)

    def _owners(self, header: dict[str, Any], payload: Bytes, reply: Payload) -> dict[str, Any]:
        _look_along(header["path"])
        return {"owners": [owners(target) for target in header["targets"]]}

    def _open(self, header: dict[str, Any], payload: Bytes, reply: Payload) -> dict[str, Any]:
        _look_along(header["path"])
        chosen: list[list[str]] = []
        found: dict[str, Anything] = {}
        for target in header["targets"]:
            mine = resolve_within(target, header["adapter"], specimens=header["specimens"])
            for subject in mine:
                if found.setdefault(subject.id, subject) is not subject:
                    raise one_name_twice(subject.id)
            chosen.append([s.id for s in mine])
        self.subjects = {id: possible(subject) for id, subject in found.items()}
        return {
            "python": platform.python_version(),
            "chosen": chosen,
            "subjects": [described(s) for s in self.subjects.values()],
            "versions": {id: versions([s]) for id, s in _one_of_each(self.subjects.values())},
            "builds": builds(reported(self.subjects.values())),
        }

    def _call(self, header: dict[str, Any], payload: Bytes, reply: Payload) -> dict[str, Any]:
        subject = self.subjects[header["subject"]]
        method = header["method"]
        arrays = [array_of(spec, payload) for spec in header["arrays"]]
        watched = isinstance(subject, Attention) or "axis" in header
        # What lies between the elements of an array is not part of it, so the whole is only a first look.
        before = payload.copy() if watched else None
        function = getattr(subject, method)
        if not isinstance(subject, Attention):
            result = function(*arrays, axis=header["axis"]) if watched else function(*arrays)
        else:
            more: list[Any] = list(arrays[4:])
            result = function(*arrays[:4], header["scale"], *([tuple(more)] if method == "jvp" else more))
        answer: dict[str, Any] = {"result": encoded(result, reply)}
        if before is not None and not np.array_equal(payload, before):
            answer["changed"] = [
                [index, reply.add(array)]
                for index, array in enumerate(arrays)
                if array.tobytes() != array_of(header["arrays"][index], before).tobytes()
            ]
        return answer

    def _widths(self, header: dict[str, Any], payload: Bytes, reply: Payload) -> dict[str, Any]:
        subject = self.subjects[header["subject"]]
        assert isinstance(subject, Attention)
        return {"is": bool(subject.widths(header["width"]))}

    def _ran(self, header: dict[str, Any], payload: Bytes, reply: Payload) -> dict[str, Any]:
        subject = self.subjects[header["subject"]]
        assert isinstance(subject, Attention)
        assert subject.ran is not None
        return {"is": str(subject.ran())}


def _one_of_each(subjects: Any) -> list[tuple[str, Anything]]:
    """A subject of each adapter, by the adapter's name."""
    return list({s.adapter: s for s in subjects}.items())


def _look_along(path: list[str] | None) -> None:
    """Import from where the parent does, if this is its own interpreter."""
    if path is not None:
        sys.path[:] = path


def _read(fd: int, length: int) -> Bytes:
    """So many bytes in fresh memory, which the subject may keep. Raises EOFError when the parent is gone."""
    found = buffer(length)
    rest = found.data
    while rest:
        got = os.readv(fd, [rest])
        if not got:
            raise EOFError
        rest = rest[got:]
    return found


def _write(fd: int, pieces: list[memoryview]) -> None:
    rest = list(pieces)
    while rest:
        sent = os.writev(fd, rest[:MOST])
        while rest and sent >= len(rest[0]):
            sent -= len(rest.pop(0))
        if sent:
            rest[0] = rest[0][sent:]


def _outlive_no_parent() -> None:
    """End with the parent, also from inside a call that does not return."""
    parent = os.getppid()
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG

    def watch() -> None:
        import time

        while os.getppid() == parent:
            time.sleep(EVERY)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()
