"""Two pipes of lines: each is read or written in a thread of its own, whole and in order.

start      hands each line on as it comes; what is not handled yet waits in the thread, where it is bounded
lines      the same for a consumer that takes one line after the other
send       never waits; `drained` does, so that a slow reader holds up whoever writes, and nothing else
aclose     writes what is left

An end of the pipe in the midst of a line drops that line.

Tools, libraries in C and their processes write to the descriptor 1 and read from 0, whatever Python's
`sys.stdout` is. So the pipes leave these numbers (`claimed_descriptors`): what is written to 1 goes to
standard error, and 0 is empty. Their new numbers are not inherited by any process.
"""

import asyncio
import os
import select
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any

from swink.errors import MisuseError
from swink.system.aio import wait_through_cancel
from swink.system.threads import start_thread

LONGEST = 64 << 20
"""Bytes of a line."""
_AT_ONCE = 256
"""Lines that may wait for the event loop."""
_FULL = 1 << 20
"""Bytes not written yet, past which writers wait."""
_CHUNK = 1 << 16
_FAREWELL = 1.0
"""Seconds in which the last lines are written at the end; an editor that does not read misses them."""


class LinePipes:
    """Takes lines from one descriptor and writes them to another, from `start` on; both stay the caller's."""

    def __init__(self, source: int, sink: int, *, longest: int = LONGEST) -> None:
        self._source, self._sink, self._longest = source, sink, longest
        self.is_gone = False
        """Whether nobody reads what is written."""
        self._is_ending = False
        self._unwritten = 0
        self._lines: SimpleQueue[bytes | None] = SimpleQueue()
        self._room = threading.Semaphore(_AT_ONCE)
        self._waiting: list[asyncio.Future[None]] = []
        self._written: asyncio.Future[None] | None = None
        """Done when all is written; there from the beginning on."""

    def start(self, take: Callable[[bytes | None], None], ended: Callable[[], None]) -> None:
        """Call `take` with each line, None for one that is too long, and `ended` when there are no more."""

        def handle(line: bytes | None) -> None:
            try:
                take(line)
            finally:
                self._room.release()

        self._begin(handle, ended)

    async def lines(self) -> AsyncGenerator[bytes | None, None]:
        """Each line, None for one that is too long; in place of `start`."""
        arrived: asyncio.Queue[tuple[bytes | None] | None] = asyncio.Queue()
        self._begin(lambda line: arrived.put_nowait((line,)), lambda: arrived.put_nowait(None))
        while (found := await arrived.get()) is not None:
            self._room.release()
            yield found[0]

    def _begin(self, handle: Callable[[bytes | None], None], ended: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._written = self._loop.create_future()
        self._handle, self._ended = handle, ended
        start_thread(self._read, "lines-in")
        start_thread(self._write, "lines-out")

    def send(self, line: bytes) -> None:
        """Have a line written after those before it; without effect once nobody reads."""
        if not self.is_gone:
            self._unwritten += len(line) + 1
            self._lines.put(line)

    async def drained(self) -> None:
        """Return when there is room for more, or nobody reads any more."""
        while self._unwritten > _FULL and not (self.is_gone or self._is_ending):
            waiter = self._loop.create_future()
            self._waiting.append(waiter)
            await waiter

    def hurry(self) -> None:
        """Let nobody wait for room any more: the end has come, also if the editor does not read."""
        self._is_ending = True
        self._wake()

    async def aclose(self) -> None:
        """Write what is left, as far as it is read soon."""
        self._lines.put(None)
        if self._written is not None:
            await wait_through_cancel(self._written, timeout=_FAREWELL)
        self._lose()

    def _read(self) -> None:
        line = bytearray()
        is_too_long = False
        while data := self._next_bytes():
            *whole, rest = data.split(b"\n")
            for piece in whole:
                line += piece
                is_too_long = is_too_long or len(line) > self._longest
                if (line or is_too_long) and not self._deliver(None if is_too_long else bytes(line)):
                    return
                line.clear()
                is_too_long = False
            line += rest
            if is_too_long or len(line) > self._longest:
                line.clear()
                is_too_long = True
        self._call(self._ended)

    def _next_bytes(self) -> bytes:
        while True:
            try:
                return os.read(self._source, _CHUNK)
            except BlockingIOError:  # the other end made the pipe non-blocking
                select.select([self._source], [], [])
            except OSError:
                return b""

    def _deliver(self, line: bytes | None) -> bool:
        while not self._room.acquire(timeout=_FAREWELL):
            if self._loop.is_closed():
                return False
        return self._call(self._handle, line)

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            if not self._write_whole(line + b"\n"):
                self._call(self._lose)
                break
            self._call(self._note_written, len(line) + 1)
        self._call(self._settle)

    def _write_whole(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._sink, view) :]
            except BlockingIOError:
                select.select([], [self._sink], [])
            except OSError:
                return False
        return True

    def _call(self, function: Callable[..., None], *arguments: object) -> bool:
        """Call something in the event loop; False if that has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *arguments)
            return True
        return False

    def _note_written(self, count: int) -> None:
        self._unwritten -= count
        if self._unwritten <= _FULL:
            self._wake()

    def _lose(self) -> None:
        self.is_gone = True
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    def _settle(self) -> None:
        if self._written is not None and not self._written.done():
            self._written.set_result(None)


@contextmanager
def claimed_descriptors() -> Generator[tuple[int, int], None, None]:
    """The pipes to read from and to write to; at the end they are 0 and 1 again."""
    try:
        source, sink = os.dup(0), os.dup(1)
    except OSError as error:
        raise MisuseError("standard input and output are needed, and they are closed here") from error
    _flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # standard error is closed
            os.dup2(nothing, 1)
        reconfigure: Any = getattr(sys.stdout, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(line_buffering=True)  # what is printed is seen when it is printed
        yield source, sink
    finally:
        _flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(nothing)
        os.close(sink)  # the other one may still be read by a thread


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
