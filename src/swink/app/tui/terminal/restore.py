"""The restorer: a process that outlives the interface by a moment and puts the terminal back."""

import marshal
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from swink.system.programs import python_script

PROGRAM = Path(__file__).with_name("restore_process.py")
_WORDS = 2000  # so few bytes that a message is written whole


class Restorer:
    """Knows the restorer's process; without one, for whatever reason, the interface works all the same."""

    def __init__(self, tty: int) -> None:
        self.pid: int | None = None
        theirs, self._pipe = os.pipe()
        # A group of its own, so that Ctrl-C in the terminal is not meant for it; the same session, because
        # only there it may ask who has the terminal.
        with suppress(OSError, NotImplementedError):
            pipes = [(os.POSIX_SPAWN_DUP2, theirs, 0), (os.POSIX_SPAWN_DUP2, tty, 1)]
            actions = [*pipes, (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
            self.pid = python_script(PROGRAM).spawn(file_actions=actions, setpgroup=0)
        os.close(theirs)

    def watch(self, before: list[Any], during: list[Any], reset: str) -> None:
        """From now on the death of the interface leaves the terminal to be restored."""
        leader, parent = os.getsid(0), os.getppid()
        groups = {os.getpgrp()}
        for pid in (leader, parent):  # the shell takes the terminal back before anybody else can
            with suppress(OSError):
                groups.add(os.getpgid(pid))
        self._tell(b"n", marshal.dumps((before, during, [*groups], reset.encode()), 4))

    def stand_by(self) -> None:
        """The terminal is as it was: there is nothing to restore."""
        self._tell(b"f")

    def say_at_death(self, text: str) -> None:
        """What to tell a user who finds the interface killed."""
        self._tell(b"w", text.encode()[:_WORDS])

    def close(self) -> None:
        os.close(self._pipe)

    def _tell(self, letter: bytes, rest: bytes = b"") -> None:
        with suppress(OSError):  # it was killed
            os.write(self._pipe, letter + len(rest).to_bytes(4, "big") + rest)
