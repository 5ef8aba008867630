"""The clock of event loops, which stands still while the machine lets its thread wait for a core.

A test may say that something takes 0.05 s and that something else comes before it: on a busy machine a thread stands
in line for longer than that between two steps, and the order would be the scheduler's. Linux counts that time for each
thread, and it is left out here. What a thread computes and what it waits for counts as everywhere.
"""

import asyncio
import os
import threading
import time
from typing import Any

_OFTEN = 0.001
"""Seconds for which the last look at the system's count is good enough."""


class RunningClock:
    """Seconds of the main thread, without those in which it could have run and did not."""

    def __init__(self) -> None:
        self._file = os.open("/proc/self/schedstat", os.O_RDONLY)
        self._looked = self._now = 0.0
        self._waited = self._count()

    def __call__(self) -> float:
        now = time.monotonic()
        if now - self._looked > _OFTEN:
            self._looked, self._waited = now, self._count()
        self._now = max(self._now, now - self._waited)
        return self._now

    def _count(self) -> float:
        return int(_read_again(self._file).split()[1]) / 1e9


def _read_again(file: int) -> bytes:
    if hasattr(os, "pread"):  # the only way where several threads look, as they do beside a page in a browser
        return os.pread(file, 100, 0)
    os.lseek(file, 0, os.SEEK_SET)  # tests that run as on Windows
    return os.read(file, 100)


def leave_out_the_wait_for_a_core() -> None:
    """Give every event loop that the main thread makes such a clock; where the system counts nothing, the usual one."""
    try:
        clock = RunningClock()
    except (OSError, IndexError):
        return
    usual = asyncio.BaseEventLoop.__init__

    def begin(loop: Any) -> None:
        usual(loop)
        if threading.current_thread() is threading.main_thread():
            loop.time = clock

    def begin_as_usual() -> None:
        asyncio.BaseEventLoop.__init__ = usual  # type: ignore[method-assign]

    asyncio.BaseEventLoop.__init__ = begin  # type: ignore[method-assign]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=begin_as_usual)  # the count is that of the parent
