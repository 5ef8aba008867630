"""Lines that match a pattern, found in a separate process that can be killed (see `supervisor/match.py`)."""

import marshal
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from swink.system.programs import python_script
from swink.tools import ToolError
from swink.tools.coding.text import Encoding

PATIENCE = 10.0
"""Seconds one block of text may take."""

_MATCH = str(Path(__file__).with_name("supervisor") / "match.py")


class Matcher:
    """One pattern; use it in a `with` block."""

    def __init__(self, pattern: str, flags: int, check_stop: Callable[[], None]) -> None:
        self._check_stop = check_stop
        self._process = python_script(_MATCH, env={}).popen(
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        for fd in (self._in, self._out):
            os.set_blocking(fd, False)
        self._deadline = 0.0
        self._send((pattern, flags))

    def lines(self, data: bytes, encoding: Encoding) -> list[int]:
        """The indices of the lines of some text that match."""
        return self._answer((encoding.name, encoding.errors, data))

    def run(self, argv: list[str], directory: str) -> tuple[int, bytes]:
        """Exit code and output of a program that is run without input, environment and stderr."""
        return self._answer((argv, directory), float("inf"))

    def __enter__(self) -> "Matcher":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)  # its own group, with the program it may be running
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def _answer(self, item: Any, patience: float | None = None) -> Any:
        self._send(item, patience)
        size = self._receive(8)
        return marshal.loads(self._receive(int.from_bytes(size, "big")))

    def _send(self, item: Any, patience: float | None = None) -> None:
        self._deadline = time.monotonic() + (PATIENCE if patience is None else patience)
        data = marshal.dumps(item)
        view = memoryview(len(data).to_bytes(8, "big") + data)
        while view:
            try:
                view = view[os.write(self._in, view) :]
            except BlockingIOError:
                self._wait([], [self._in])

    def _receive(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait([self._out], [])
            chunk = os.read(self._out, size - len(data))
            if not chunk:
                raise ToolError("the search process ended; simplify the pattern")
            data += chunk
        return bytes(data)

    def _wait(self, read: list[int], write: list[int]) -> None:
        while not any(select.select(read, write, [], 0.02)):
            self._check_stop()
            if time.monotonic() > self._deadline:
                raise ToolError(
                    "the pattern takes too long: a repeat inside a repeat, as in (a+)+, can take forever; "
                    "simplify it"
                )
