"""The guard: whatever happens to the program, the terminal is given back as it was.

quit, exception             the driver stops, and everything is as it was
SIGINT, SIGTERM, SIGHUP     the run is aborted and saved first; a second one leaves at once
the terminal is gone        like SIGHUP
the event loop is stuck     Ctrl+C a few times leaves at once
SIGKILL, a crash in C       the restorer restores the terminal
"""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

from swink.app.tui.terminal.restore import Restorer
from swink.app.tui.terminal.streams import Streams
from swink.app.tui.terminal.tty import Tty
from swink.system import startup
from swink.system.interrupts import Interruption


class TerminalGuard:
    """What a program holds while it has the terminal."""

    def __init__(self, resume: Callable[[], str | None]) -> None:
        self._resume = resume
        self.tty = Tty(0)
        self.restorer = Restorer(self.tty.fd)
        self.streams = Streams()
        self._gone: Callable[[], object] = lambda: None

    def take_terminal(self) -> None:
        """The terminal is the program's."""
        self.streams.take_descriptors()
        startup.last_words = self._last_words

    def give_back(self) -> None:
        startup.last_words = None
        self.streams.give_back()
        self.restorer.close()
        self.tty.close()
        for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGWINCH):
            signal.signal(number, signal.SIG_DFL)

    def listen(self, interruption: Interruption) -> None:
        """Tell it of a terminal that is gone."""
        loop = asyncio.get_running_loop()
        self._gone = lambda: loop.call_soon_threadsafe(interruption.receive, signal.SIGHUP)

    def hang_up(self) -> None:
        """The terminal is gone; in any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._gone()

    def _last_words(self) -> None:
        if self.tty.restore():
            self.restorer.stand_by()
            if command := self._resume():
                self.tty.write(f"swink: to go on: {command}\n", 0.2)
