"""Interruption: the first Ctrl-C (or SIGTERM) asks a run to stop, the second one stops waiting for it."""

import asyncio
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_ONE_KEYSTROKE = 0.3
"""Seconds within which signals count as one: a process may get one directly and again with its group."""


class Interruption:
    """Whether a signal came, and which."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._since = 0.0
        self.signal: signal.Signals | None = None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a command that a signal ended."""
        return 128 + (self.signal or signal.SIGINT)

    def receive(self, number: signal.Signals) -> None:
        """Take a signal."""
        now = time.monotonic()
        if self.signal is None:
            self.signal, self._since = number, now
            self._stop()
        elif now - self._since > _ONE_KEYSTROKE:
            raise KeyboardInterrupt


@contextmanager
def interruptible(stop: Callable[[], None]) -> Generator[Interruption, None, None]:
    """While the block runs, in the event loop of the main thread, a signal calls `stop`."""
    loop = asyncio.get_running_loop()
    interruption = Interruption(stop)
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, interruption.receive, number)
        except NotImplementedError:  # Windows
            signal.signal(number, _threadsafe(loop, interruption, number))
    try:
        yield interruption
    finally:
        for number in _SIGNALS:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(number)
            signal.signal(number, before[number])


def _threadsafe(
    loop: asyncio.AbstractEventLoop, interruption: Interruption, number: signal.Signals
) -> Callable[[int, Any], None]:
    return lambda received, frame: loop.call_soon_threadsafe(interruption.receive, number) and None
