"""The standard streams while the interface has the terminal: nothing written to them reaches the screen.

Tools, libraries in C and their processes write to the descriptors 1 and 2 and read from 0, whatever Python's
`sys.stdout` is. So the terminal leaves these numbers: what is written comes out of a pipe, in lines.
"""

import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

KEPT = 500
"""How many lines are kept."""
LONGEST = 2_000
"""Characters of a line; the rest of it is dropped."""


class Streams:
    """Takes the descriptors 0, 1 and 2 off the terminal; those that are no terminal stay as they are."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT)
        self.told: Callable[[], object] = lambda: None
        """Called in another thread when there are new lines."""
        self.count = 0  # how many lines there were so far
        self._rest = b""
        self._kept: dict[int, int] = {}
        self._reader: threading.Thread | None = None

    def take_descriptors(self) -> None:
        """From now on nothing that is written to them reaches the terminal."""
        _flush()
        out, into = os.pipe()
        for number in (0, 1, 2):
            if os.isatty(number):
                self._kept[number] = os.dup(number)
                if number == 0:
                    nothing = os.open(os.devnull, os.O_RDONLY)
                    os.dup2(nothing, 0)
                    os.close(nothing)
                else:
                    os.dup2(into, number)
        os.close(into)
        self._wake, self._woken = os.pipe()
        pipes = out, self._wake
        self._reader = threading.Thread(target=self._read, args=pipes, name="stray-output", daemon=True)
        self._reader.start()

    def give_back(self) -> None:
        """They are what they were. What processes that still run write from now on is dropped."""
        _flush()
        for number, descriptor in self._kept.items():
            os.dup2(descriptor, number)
            os.close(descriptor)
        self._kept.clear()
        if self._reader is not None:
            os.close(self._woken)
            self._reader.join(1.0)
            self._reader = None

    @contextmanager
    def lent(self) -> Generator[None, None, None]:
        """While the block runs they are the terminal, for a program that needs one."""
        taken = {number: os.dup(number) for number in self._kept}
        for number, descriptor in self._kept.items():
            os.dup2(descriptor, number)
        try:
            yield
        finally:
            _flush()
            for number, descriptor in taken.items():
                os.dup2(descriptor, number)
                os.close(descriptor)

    def _read(self, out: int, wake: int) -> None:
        try:
            while True:
                ready, _, _ = select.select([out, wake], [], [])
                if out not in ready:
                    return  # all was read before the end
                if not (data := os.read(out, 65_536)):
                    return
                self._take_output(data)
        finally:
            os.close(out)
            os.close(wake)

    def _take_output(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        if len(self._rest) > LONGEST:
            lines.append(self._rest)
            self._rest = b""
        new = [text for line in lines if (text := line[:LONGEST].decode("utf-8", "replace").rstrip())]
        if new:
            self.count += len(new)
            self.lines.extend(new)
            self.told()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
