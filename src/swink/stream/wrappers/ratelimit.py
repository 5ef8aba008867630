"""Rate limits: so many requests at once, so many a minute, first come, first served."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from math import inf
from threading import RLock

from swink.stream.watch import in_line


class RateLimiter:
    """Limits how many tasks are inside and how often one enters, over all event loops and threads.

    The first waiter in line lets itself in. No place is handed over, so none is lost with a waiter that is
    cancelled at that moment.
    """

    def __init__(self, concurrent: float, interval: float) -> None:
        self._free = concurrent
        self._interval = interval
        self._opens = -inf
        self._line: deque[_Waiter] = deque()
        self._lock = RLock()  # garbage collection may run inside it, and close a stream

    @asynccontextmanager
    async def inside(self) -> AsyncGenerator[None]:
        """Wait for one's turn; the place is free again at the end."""
        if self._seconds(None):
            with in_line():
                await self._wait(_Waiter())
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._call_first()

    async def _wait(self, waiter: "_Waiter") -> None:
        with self._lock:
            self._line.append(waiter)
        try:
            while seconds := self._seconds(waiter):
                await asyncio.wait([waiter.called], timeout=None if seconds == inf else seconds)
                waiter.called = waiter.loop.create_future()
        finally:
            with self._lock:
                if waiter in self._line:
                    self._line.remove(waiter)
                self._call_first()

    def _seconds(self, waiter: "_Waiter | None") -> float:
        """0 and it is inside; or how long to wait at most before it looks again."""
        with self._lock:
            if self._free < 1 or (self._line and self._line[0] is not waiter):
                return inf
            now = time.monotonic()
            if now < self._opens:
                return self._opens - now
            self._free -= 1
            self._opens = now + self._interval
            return 0.0

    def _call_first(self) -> None:
        """Let the first in line look again; one whose event loop is closed is gone."""
        while self._line:
            try:
                self._line[0].call()
                return
            except RuntimeError:
                self._line.popleft()


class _Waiter:
    """One in line: `called` is done when it may be its turn."""

    __slots__ = ("called", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.called: asyncio.Future[None] = self.loop.create_future()

    def call(self) -> None:
        self.loop.call_soon_threadsafe(self._call)

    def _call(self) -> None:
        if not self.called.done():
            self.called.set_result(None)
