"""The terminal itself: the settings it had, its size, and writing that neither fails nor waits for ever."""

import errno
import fcntl
import os
import select
import signal
import termios
import time
import tty as settings
from contextlib import suppress
from typing import Any

from swink.app.tui.terminal.sequences import END

PATIENCE = 2.0
"""Seconds to wait for a terminal that takes nothing, when something has to be restored."""


class Tty:
    """A terminal by a descriptor of our own, which no child inherits and nobody else writes to."""

    def __init__(self, descriptor: int) -> None:
        can_write = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDWR
        name = "" if can_write else os.ttyname(descriptor)  # `swink < /dev/tty`
        self.fd = os.dup(descriptor) if can_write else os.open(name, os.O_RDWR | os.O_NOCTTY)
        self.is_gone = False
        if not self.is_ours:  # started in the background: wait for `fg`
            os.killpg(0, signal.SIGTTOU)
        self.before: list[Any] = termios.tcgetattr(self.fd)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines; a terminal that does not know has 80 and 24."""
        try:
            columns, lines = os.get_terminal_size(self.fd)
        except OSError:
            return 80, 24
        return columns or 80, lines or 24

    @property
    def is_ours(self) -> bool:
        """Whether our process group is the one that may use it."""
        try:
            return os.tcgetpgrp(self.fd) == os.getpgrp()
        except OSError as error:
            return error.errno == errno.ENOTTY  # not the terminal of our session: nobody else can take it

    @property
    def during(self) -> list[Any]:
        """The settings of the interface: every key is read as it is pressed, and shown by nobody else."""
        attributes: list[Any] = [*self.before[:6], [*self.before[6]]]
        attributes[settings.LFLAG] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
        changing = termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR
        attributes[settings.IFLAG] &= ~changing
        attributes[settings.CC][termios.VMIN] = 1
        attributes[settings.CC][termios.VTIME] = 0
        return attributes

    def remember(self) -> None:
        """Take the settings of now as those to restore, unless a program that died has left them behind."""
        with suppress(termios.error):
            now = termios.tcgetattr(self.fd)
            if now[settings.LFLAG] & termios.ECHO and now[settings.LFLAG] & termios.ICANON:
                self.before = now

    def set(self, attributes: list[Any]) -> None:
        with suppress(termios.error):
            termios.tcsetattr(self.fd, termios.TCSANOW, attributes)

    def drop_input(self) -> None:
        """Forget what was typed and not read: reports of the mouse must not reach the shell."""
        with suppress(termios.error):
            termios.tcflush(self.fd, termios.TCIFLUSH)

    def write(self, text: str, patience: float | None = None) -> bool:
        """Write everything; whether the terminal took it, within `patience` seconds if they are given."""
        data = text.encode("utf-8", "replace")
        deadline = None if patience is None else time.monotonic() + patience
        while data and not self.is_gone:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            try:
                if not select.select([], [self.fd], [], wait)[1]:
                    return False
                # A terminal that is ready takes so much without waiting.
                data = data[os.write(self.fd, data[:1024] if deadline else data) :]
            except BlockingIOError:
                continue
            except OSError:
                self.is_gone = True
        return not self.is_gone

    def restore(self) -> bool:
        """End every mode and set what was set before; whether the terminal took it."""
        if not self.is_ours:
            return False
        is_done = self.write(END, PATIENCE)
        self.drop_input()
        self.set(self.before)
        return is_done

    def close(self) -> None:
        os.close(self.fd)
