"""Bridge: however often something changes, the screen is told at most twenty times a second."""

import asyncio
from collections.abc import Callable

INTERVAL = 0.05


class Bridge:
    """Calls `flush` soon after a `touch`; touches in between cost nothing."""

    def __init__(self, flush: Callable[[], None], interval: float = INTERVAL) -> None:
        self._flush = flush
        self._interval = interval
        self._last = float("-inf")
        self._scheduled: asyncio.TimerHandle | None = None
        self._is_closed = False

    def touch(self) -> None:
        """Something changed."""
        if self._scheduled is None and not self._is_closed:
            loop = asyncio.get_running_loop()
            self._scheduled = loop.call_at(max(loop.time(), self._last + self._interval), self._run)

    def close(self) -> None:
        """Flush no more."""
        self._is_closed = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None

    def _run(self) -> None:
        self._scheduled = None
        try:
            self._flush()
        finally:
            # From the end of the flush: a slow screen is told less often, and keys are read in between.
            self._last = asyncio.get_running_loop().time()
