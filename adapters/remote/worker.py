"""A worker for the subjects of one adapter: started when it is needed, started again when it was lost."""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from threading import RLock
from typing import Any

from ..attention import AttentionAnswer
from ..errors import Lost, Relayed, TargetError, printable
from ..subject import Answer, Array
from ..worker.frames import Bytes, FrameError, Payload, array_of
from .options import LOADING, STRIKES, Options
from .process import Process

UNREADABLE = Lost("gave no usable answer", "its process sent an answer that says what cannot be")


class Worker:
    """The process in which one adapter's subjects run, and what each of them has cost so far.

    ``adapter``: the adapter among whose subjects the ``targets`` are looked for, None for a user's own code.
    """

    def __init__(self, options: Options, adapter: str | None, targets: tuple[str, ...], specimens: bool) -> None:
        self.options = options
        self._targets = targets
        self._open = {"do": "open", "adapter": adapter, "targets": targets, "specimens": specimens}
        self._process: Process | None = None
        self._number = 0
        self._lock = RLock()
        self._strikes: Counter[str] = Counter()
        self._spent: defaultdict[str, float] = defaultdict(float)
        self._last = ""

    def opened(self) -> dict[str, Any]:
        """What the worker says about its subjects.

        Raises TargetError when the targets cannot be resolved there, and when the worker is lost meanwhile.
        """
        with self._lock:
            self.close()
            try:
                return self._start()
            except Lost as lost:
                raise TargetError(self._loading(lost)) from None

    def owners(self, targets: Sequence[str]) -> list[list[str]]:
        """The names of the adapters that the targets look into, in the worker's interpreter. Raises TargetError."""
        with self._lock:
            process = Process(self.options)
            try:
                answer = self._ask(process, {"do": "owners", "targets": targets, "path": self._path})
                return [[str(name) for name in names] for names in answer["owners"]]
            except (KeyError, TypeError):
                raise TargetError(self._loading(UNREADABLE)) from None
            except Lost as lost:
                raise TargetError(self._loading(lost)) from None
            finally:
                process.kill()

    def call(self, subject: str, method: str, arrays: Sequence[Array], **more: Any) -> Any:
        """What a method of a subject returns. Arrays that it changed are changed here too.

        Raises Relayed for what it raised, and Lost when the worker gave no answer; another one is started then at the
        next call.
        """
        with self._lock:
            self._refuse(subject)
            payload = Payload()
            header = {
                "do": "call",
                "subject": subject,
                "method": method,
                "arrays": [payload.add(a) for a in arrays],
                **more,
            }
            return self._blamed(subject, header, payload, arrays)

    def question(self, subject: str, do: str, **more: Any) -> Any:
        """The answer to a question about a subject. Raises as :meth:`call` does."""
        with self._lock:
            self._refuse(subject)
            return self._blamed(subject, {"do": do, "subject": subject, **more}, None, ())

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process = None

    @property
    def _path(self) -> list[str] | None:
        return sys.path if self.options.python is None else None

    def _refuse(self, subject: str) -> None:
        if self._strikes[subject] >= STRIKES:
            raise Lost(
                "was not called", f"{STRIKES} calls of this subject crashed or did not return, and no more are made"
            )

    def _blamed(self, subject: str, header: dict[str, Any], payload: Payload | None, arrays: Sequence[Array]) -> Any:
        """Carry out a request for a subject, and count against it what it costs."""
        since = time.monotonic()
        try:
            process = self._running(subject)
            left = self.options.subject_timeout - self._spent[subject]
            total = self.options.subject_timeout if left < self.options.call_timeout else None
            self._last = subject
            since = time.monotonic()
            answer, found = self._exchange(process, header, payload, min(self.options.call_timeout, left), total)
            try:
                return _result(answer, found, arrays)
            except FrameError as problem:
                raise Lost("gave no usable answer", f"its process sent {problem}") from None
            except (KeyError, TypeError, ValueError, IndexError):
                raise UNREADABLE from None
        except Lost:
            self._strikes[subject] += 1
            self.close()
            if self.options.subject_timeout <= self._spent[subject] + time.monotonic() - since:
                self._strikes[subject] = STRIKES
            raise
        finally:
            self._spent[subject] += time.monotonic() - since

    def _running(self, subject: str) -> Process:
        """The process, started if there is none."""
        if self._process is not None and not self._process.alive:
            process, self._process = self._process, None
            lost = process.death()
            if self._last == subject:
                raise Lost(lost.did, f"{lost.why}, after the call before this one had been answered")
        if self._process is None:
            try:
                self._start()
            except (TargetError, Lost) as problem:
                why = problem.why if isinstance(problem, Lost) else str(problem).rstrip(".")
                raise Lost("could not be called", f"its worker could not be started again: {why}") from None
        assert self._process is not None
        return self._process

    def _start(self) -> dict[str, Any]:
        process = Process(self.options)
        answer = self._ask(process, {**self._open, "path": self._path})
        self._process = process
        return answer

    def _ask(self, process: Process, header: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request about targets. Raises TargetError for what the worker says about them."""
        try:
            answer, _ = self._exchange(process, header, None, max(self.options.call_timeout, LOADING), None)
        except Lost:
            if (why := process.refusal()) is not None:
                raise TargetError(
                    f"The interpreter '{self.options.python or sys.executable}' cannot run a worker: {why}."
                ) from None
            raise
        if isinstance(answer.get("target"), str):
            process.kill()
            raise TargetError(printable(answer["target"], 4000))
        if "raised" in answer:
            process.kill()
            raise Lost("could not be loaded", f"it raised {printable(str(answer['raised']))}")
        return answer

    def _exchange(
        self, process: Process, header: dict[str, Any], payload: Payload | None, timeout: float, total: float | None
    ) -> tuple[dict[str, Any], Bytes]:
        self._number = (self._number + 1) % (1 << 32)
        return process.exchange(self._number, header, payload, max(timeout, 0.0), total)

    def _loading(self, lost: Lost) -> str:
        names = ", ".join(f"'{t}'" for t in self._targets)
        return (
            f"Loading {names} {lost.did}: {lost.why}. Mend what it imports, or raise the limit; "
            "--in-process shows the crash itself."
        )


def _result(answer: dict[str, Any], payload: Bytes, arrays: Sequence[Array]) -> Any:
    if "raised" in answer:
        raise Relayed(printable(str(answer["raised"]), 400))
    if "refused" in answer:
        raise Lost("gave no usable answer", printable(str(answer["refused"])))
    if "is" in answer:
        return answer["is"]
    for index, spec in answer.get("changed", ()):
        changed, mine = array_of(spec, payload), arrays[index]
        if (changed.shape, changed.dtype) != (mine.shape, mine.dtype):
            raise FrameError("a changed argument of another shape or dtype")
        mine[...] = changed
    return _decoded(answer["result"], payload)


def _decoded(spec: Any, payload: Bytes) -> Any:
    """What was returned; where that was no array, an object of a type with its type's name."""
    if "answer" in spec:
        weights, valid = spec["answer"]
        return Answer(_decoded(weights, payload), None if valid is None else _decoded(valid, payload))
    if "attention" in spec:
        output, weights, valid = spec["attention"]
        rest = (None if part is None else _decoded(part, payload) for part in (weights, valid))
        return AttentionAnswer(_decoded(output, payload), *rest)
    if "list" in spec:
        parts = tuple(_decoded(part, payload) for part in spec["list"])
        return list(parts) if spec["type"] == "list" else parts
    if "array" in spec:
        return array_of(spec["array"], payload)
    return type(printable(str(spec["type"]), 100), (), {})()
