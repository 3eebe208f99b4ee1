"""One worker process: start it, exchange frames with it under limits, find out how it died."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from ..errors import Lost, TargetError, printable
from ..worker import frames
from ..worker.bootstrap import REFUSED
from ..worker.frames import Bytes, FrameError, Payload
from .options import MIB, Options, held

LOOK = 0.1
"""Seconds between two looks at the clock, the worker's memory and its state, while an answer is awaited."""

PACKAGES = ("spec", "adapters", "conformance")
KEPT = 4096
"""Bytes of what a worker last wrote to standard error."""

PIPE = 1 << 20
GRACE = 2.0


class Process:
    """A running worker. Raises TargetError when the interpreter cannot be started."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._limit = options.memory
        self._errors: deque[bytes] = deque(maxlen=64)
        self._ended = False
        command = [options.python or sys.executable, str(Path(frames.__file__).with_name("bootstrap.py")), *_folders()]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,  # Ctrl-C does not reach it, and what it starts dies with it
            )
        except OSError as problem:
            raise TargetError(
                f"The interpreter '{options.python}' cannot be started: {problem.strerror}. "
                "Give the path of a Python, such as 'venv/bin/python'."
            ) from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._to, self._from = self._process.stdin.fileno(), self._process.stdout.fileno()
        for fd in (self._to, self._from):
            os.set_blocking(fd, False)
            _widen(fd)
        self._drain = threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True)
        self._drain.start()

    def _listen(self, stream: IO[bytes]) -> None:
        with suppress(OSError, ValueError):
            while chunk := os.read(stream.fileno(), KEPT):
                self._errors.append(chunk[-KEPT:])

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def exchange(
        self, number: int, header: dict[str, Any], payload: Payload | None, timeout: float, total: float | None = None
    ) -> tuple[dict[str, Any], Bytes]:
        """Send a request and return the answer.

        ``timeout``: seconds until the worker is killed; ``total``: the seconds that the subject had left, if they are
        what ``timeout`` stems from. Raises Lost when there is no answer, or none that can be read; the worker is dead
        then.
        """
        until = time.monotonic() + timeout
        try:
            self._send(frames.frame(number, header, payload), until)
            prefix = frames.prefix_of(bytes(self._receive(frames.PREFIX.size, until)))
            if prefix.number != number:
                raise FrameError(f"the answer to another request ({prefix.number} in place of {number})")
            answer = frames.header_of(bytes(self._receive(prefix.header, until)))
            return answer, self._receive(prefix.payload, until)
        except FrameError as problem:
            self.kill()
            raise Lost("gave no usable answer", f"its process sent {problem}") from None
        except TimeoutError:
            self.kill()
            if total is not None:
                raise Lost(
                    "did not return", f"all calls of the subject together had {total:g} s, and these were used up"
                ) from None
            raise Lost("did not return", f"it was stopped after {timeout:g} s, the limit for one call") from None
        except MemoryError as problem:
            self.kill()
            raise Lost("took too much memory", str(problem)) from None
        except (EOFError, OSError):
            raise self.death() from None
        except BaseException:  # an interruption: the answer would be taken for that to the next request
            self.kill()
            raise

    def _send(self, pieces: list[memoryview], until: float) -> None:
        rest = list(pieces)
        while rest:
            try:
                sent = os.writev(self._to, rest[:64])
            except BlockingIOError:
                self._wait(self._to, select.POLLOUT, until)
                continue
            while rest and sent >= len(rest[0]):
                sent -= len(rest.pop(0))
            if sent:
                rest[0] = rest[0][sent:]

    def _receive(self, length: int, until: float) -> Bytes:
        found = frames.buffer(length)
        rest = found.data
        while rest:
            try:
                got = os.readv(self._from, [rest])
            except BlockingIOError:
                self._wait(self._from, select.POLLIN, until)
                continue
            if not got:
                raise EOFError
            rest = rest[got:]
        return found

    def _wait(self, fd: int, event: int, until: float) -> None:
        """Wait for a pipe. Raises TimeoutError, MemoryError at the worker's limit, and EOFError at its end."""
        poll = select.poll()
        poll.register(fd, event)
        while not poll.poll(1000 * LOOK):
            if time.monotonic() > until:
                raise TimeoutError
            holds = held(self._process.pid)
            if self._limit is not None and holds > self._limit:
                raise MemoryError(
                    f"its process held {holds // MIB} MiB and was stopped; the limit is {self._limit // MIB} MiB"
                )
            if not self.alive and not poll.poll(0):
                raise EOFError  # what it has started may still hold the pipe

    def death(self) -> Lost:
        """What to say of a worker that ended by itself."""
        code = self._code()
        last = self.last_words()
        heard = f", and its last words were '{last}'" if last else ""
        if code is None:
            return Lost("gave no usable answer", f"its process closed the connection and ran on{heard}")
        if code >= 0:
            return Lost("ended its process", f"it exited with status {code}{heard}")
        try:
            name = f" ({signal.Signals(-code).name})"
        except ValueError:
            name = ""
        why = f"it was killed by signal {-code}{name}"
        if -code == signal.SIGKILL:
            why += ", which is what the system does when memory runs out"
        return Lost("crashed its process", f"{why}{heard}")

    def refusal(self) -> str | None:
        """Why the interpreter cannot run a worker, in words, if that is what it said."""
        return self.last_words() if self._code() == REFUSED else None

    def _code(self) -> int | None:
        """The status with which it ended, None if it has not, and was killed."""
        try:
            code: int | None = self._process.wait(GRACE)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        return code

    def last_words(self) -> str:
        """The last line that it wrote to standard error, without what could steer a terminal."""
        self._drain.join(GRACE)
        lines = b"".join(self._errors).decode("utf-8", "replace").split("\n")
        return next((p for line in reversed(lines) if (p := printable(line).strip().rstrip("."))), "")

    def kill(self) -> None:
        """End it and all that it started."""
        if self._ended:
            return
        self._ended = True
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


def _folders() -> list[str]:
    """Where the packages of this hardmask are, as the bootstrap takes them; imports none of them."""
    found = {name: find_spec(f"hardmask.{name}") for name in PACKAGES}
    return [f"{name}={Path(spec.origin).parent}" for name, spec in found.items() if spec is not None and spec.origin]


def _widen(fd: int) -> None:
    """Let a pipe hold what a call usually takes, where the system allows it."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE)
