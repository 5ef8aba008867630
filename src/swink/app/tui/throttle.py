"""Throttle: however often something changes, the screen is told at most twenty times a second."""

import asyncio
from collections.abc import Callable

INTERVAL = 0.05


class Throttle:
    """Calls `flush` soon after a `touch`; what is touched before `flushed` is called waits for the next one.

    So a slow screen is told less often, and keys are read in between.
    """

    def __init__(self, flush: Callable[[], object], interval: float = INTERVAL) -> None:
        self._flush = flush
        self._interval = interval
        self._last = float("-inf")
        self._scheduled: asyncio.TimerHandle | None = None
        self._is_touched = self._is_flushing = self._is_closed = False

    def touch(self) -> None:
        """Something changed: flush soon, unless that is scheduled already or under way."""
        self._is_touched = True
        if self._scheduled is None and not self._is_flushing and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._scheduled = loop.call_at(max(loop.time(), self._last + self._interval), self._run)

    def flushed(self) -> None:
        """What had changed is on the screen."""
        self._last = asyncio.get_running_loop().time()
        self._is_flushing = False
        if self._is_touched:
            self.touch()

    def close(self) -> None:
        """Drop the flush that is scheduled, and schedule no more."""
        self._is_closed = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _run(self) -> None:
        self._scheduled = None
        self._is_touched, self._is_flushing = False, True
        self._flush()
