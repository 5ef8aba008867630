"""Interruption: the first signal asks a run to stop, the second one stops waiting for it."""

import asyncio
import signal
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType

from swink.system.startup import heeded_signals, leave

_ONE_KEYSTROKE = 0.3
"""Seconds within which signals count as one: a process may get one directly and again with its group."""


class Terminated(KeyboardInterrupt):
    """A signal other than Ctrl-C asks the process to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Interruption:
    """Whether a signal came, and which."""

    def __init__(self, stop: Callable[[], object]) -> None:
        self._stop = stop
        self._since = 0.0
        self.signal: int | None = None

    @property
    def exit_code(self) -> int:
        """What a shell expects of a command that a signal ended."""
        return 128 + (self.signal or signal.SIGINT)

    def receive(self, number: int, frame: FrameType | None = None) -> None:
        """Note the first signal and stop; a later one ends the process at once."""
        now = time.monotonic()
        if self.signal is None:
            self.signal, self._since = number, now
            self._stop()
        elif now - self._since > _ONE_KEYSTROKE:
            leave(number)


@contextmanager
def interruptible(stop: Callable[[], object]) -> Generator[Interruption, None, None]:
    """While the block runs, in the event loop of the main thread, a signal calls `stop` there.

    The handlers are Python's own and not the loop's, so that the second signal is heard even while the
    loop is busy, or waits for a reader of its output.
    """
    loop = asyncio.get_running_loop()
    interruption = Interruption(lambda: loop.call_soon_threadsafe(stop))
    before = {number: signal.signal(number, interruption.receive) for number in heeded_signals()}
    try:
        yield interruption
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def raise_interrupts() -> None:
    """From now on a signal is an exception: `KeyboardInterrupt`, `Terminated` for others than Ctrl-C."""
    for number in heeded_signals():
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated(number)
