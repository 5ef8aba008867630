"""Attention: tells a user who looks elsewhere that something waits, by bell, notification and title."""

import os
import time
from collections.abc import Callable, Mapping

from swink.app.tui.terminal.sequences import passed_through
from swink.system.oneline import shorten

LONG = 10.0
"""Seconds after which a run counts as long."""
_NOTIFYING = ("iTerm.app", "WezTerm", "ghostty", "kitty", "WarpTerminal")
_BELL = "\x07"


class Attention:
    """Writes to the terminal, and only while the user does not look at it."""

    def __init__(
        self,
        write: Callable[[str], None],
        *,
        is_wanted: bool = True,
        environ: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._write = write
        self._is_wanted = is_wanted
        self._environ = environ
        self._clock = clock
        self._title = ""
        self._began: float | None = None
        self._asked = 0
        self.is_focused = True  # what the terminal last said; one that says nothing is looked at

    def show_state(self, *, is_running: bool, waiting: int, subject: str) -> None:
        """Say in the title what goes on, and call the user when it ends or waits."""
        now = self._clock()
        mark = "⏸ " if waiting else "● " if is_running else ""
        title = f"{mark}{shorten(subject, 60)}"
        if title != self._title:
            self._title = title
            self._write(f"\x1b]2;{title}\x07")
        if waiting > self._asked:
            self.call("an approval is waiting")
        self._asked = waiting
        if is_running and self._began is None:
            self._began = now
        elif not is_running and self._began is not None:
            if now - self._began >= LONG:
                self.call("the reply is there")
            self._began = None

    def call(self, text: str) -> None:
        """Tell it now, if the user looks elsewhere and wants to be told."""
        if self._is_wanted and not self.is_focused:
            self._write(self._sequence(text))

    def _sequence(self, text: str) -> str:
        notification = f"\x1b]9;swink: {shorten(text, 100)}\x07"
        if self._environ.get("TMUX"):
            return passed_through(notification) + _BELL  # tmux marks the window by its bell
        program = self._environ.get("TERM_PROGRAM", "")
        is_kitty = bool(self._environ.get("KITTY_WINDOW_ID"))
        return notification if is_kitty or program in _NOTIFYING else _BELL
